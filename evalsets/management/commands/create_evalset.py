from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from evalsets.commands import FairpoolCommand, find_user, read_scale
from evalsets.models import EvalSet
from evalsets.services.evalsets import create_evalset


class Command(FairpoolCommand):
    help = "Make an eval set. Questions, chunks, runs and labels are imported into it afterwards."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "slug", metavar="SLUG", help="Short name: lower-case letters, digits and hyphens."
        )
        parser.add_argument("--name", required=True, help="Its name for people.")
        parser.add_argument(
            "--scale",
            metavar="FILE",
            help='A JSON list of the grades from 0 upwards: [{"grade": 0, "name": …, "definition": …}, …]. '
            "Default: 0 irrelevant to 3 direct.",
        )
        parser.add_argument(
            "--threshold", type=int, metavar="N", help="Relevant from this grade upward. Default: 1."
        )
        parser.add_argument("--description", default="")
        parser.add_argument("--lead", metavar="USER", help="Who leads it.")

    def perform(self, **options: Any) -> dict[str, Any]:
        settings: dict[str, Any] = {"description": options["description"]}
        if options["scale"]:
            settings["scale"] = read_scale(options["scale"])
        if options["threshold"] is not None:
            settings["threshold"] = options["threshold"]
        with transaction.atomic():
            evalset: EvalSet = create_evalset(
                by=find_user(options["lead"]) if options["lead"] else None,
                slug=options["slug"],
                name=options["name"],
                **settings,
            )
        return {
            "slug": evalset.slug,
            "name": evalset.name,
            "scale": evalset.scale,
            "threshold": evalset.threshold,
            "lead": options["lead"],
        }

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(f"Eval set {document['slug']} was made: {document['name']}.")
        for item in document["scale"]:
            mark = "relevant" if item["grade"] >= document["threshold"] else "not relevant"
            self.stdout.write(f"  {item['grade']} {item['name']} ({mark}): {item['definition']}")
        if not document["lead"]:
            self.stdout.write(f"Nobody leads it yet: manage.py create_user NAME --lead-of {document['slug']}")

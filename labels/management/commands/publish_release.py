from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from evalsets.progress import terminal_progress
from labels.services.publishing import publish_release


class Command(FairpoolCommand):
    help = (
        "Freeze the labels of an eval set as its next numbered release. Where nothing has changed since the latest "
        "release, none is made and that one is named."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "--notes", default="", metavar="TEXT", help="What readers of the release should know."
        )
        parser.add_argument(
            "--include-judge",
            action="append",
            default=[],
            metavar="NAME",
            dest="judges",
            help="Let this outside judge's grades be labels of pairs that no person has labelled; they are marked in "
            "every file. May be given several times. `judges SLUG` says how far each agrees with people.",
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        by = lead_of(evalset, options)
        with terminal_progress("question") as progress:
            published = publish_release(
                evalset=evalset,
                by=by,
                notes=options["notes"],
                judges=options["judges"],
                progress=progress,
            )
        return published.as_json()

    def show(self, document: dict[str, Any]) -> None:
        if document["created"]:
            self.stdout.write(f"Published release {document['release']} ({document['hash']}).")
        else:
            self.stdout.write(
                f"Nothing has changed since release {document['release']} ({document['hash']})."
            )
        if document["judges"]:
            self.stdout.write(
                f"{document['from_models']} of the labels came from a model ({', '.join(document['judges'])}): "
                "no person has judged these pairs, and every file marks them."
            )
        self.stdout.write(
            f"{document['labels']} labels of {document['questions']} questions, {document['classes']} classes; "
            f"without a label: {document['contested']} contested, {document['skipped_only']} skipped only."
        )

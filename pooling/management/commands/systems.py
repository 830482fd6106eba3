from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Count

from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from evalsets.errors import BadInput
from pooling.services.finding import find_system
from pooling.services.systems import change_family


class Command(FairpoolCommand):
    help = "List the systems of an eval set with their families, after changing the family of one."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("system", metavar="SYSTEM", nargs="?", help="The system to change.")
        parser.add_argument(
            "--family",
            metavar="NAME",
            help="Systems of one family are related: `reusability` leaves them out together. '' ends that.",
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        if (options["system"] is None) != (options["family"] is None):
            raise BadInput("To change a system's family name both SYSTEM and --family.")
        if options["system"] is not None:
            system = find_system(evalset, options["system"])
            change_family(system=system, family=options["family"], by=lead_of(evalset, options))
        latest_run = dict(evalset.runs.latest_of_each_system().values_list("system_id", "name"))
        return {
            "evalset": evalset.slug,
            "systems": [
                {
                    "system": system.name,
                    "family": system.family,
                    "runs": system.run_count,
                    "latest_run": latest_run.get(system.pk),
                }
                for system in evalset.systems.annotate(run_count=Count("runs")).order_by("name")
            ],
        }

    def show(self, document: dict[str, Any]) -> None:
        for one in document["systems"]:
            family = f", family {one['family']}" if one["family"] else ""
            self.stdout.write(f"{one['system']}: latest run {one['latest_run']}, of {one['runs']}{family}")
        if not document["systems"]:
            self.stdout.write("There are no systems yet; import_run brings one.")

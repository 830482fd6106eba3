from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, find_user
from evalsets.progress import terminal_progress
from labels.services.carrying import carry_by_rule, plan_by_rule
from labels.services.mapping import find_mappings


class Command(FairpoolCommand):
    help = (
        "Put new texts beside the old, judged ones they stand for, and say how many labels a rule would carry over and "
        "for how many a person is needed (page Carry labels over). With --by-rule the former are carried."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "--by-rule", metavar="USER", help="Carry over in this user's name what a rule allows."
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        user = find_user(options["by_rule"]) if options["by_rule"] else None
        with terminal_progress("text") as progress:
            found = find_mappings(evalset=evalset, by=user, progress=progress)
        if user is None:
            plan, carried = plan_by_rule(evalset), 0
        else:
            with terminal_progress("text") as progress:
                plan = carry_by_rule(evalset=evalset, by=user, progress=progress)
            carried = plan.by_rule
        return {"mappings": found._asdict(), **plan._asdict(), "carried": carried}

    def show(self, document: dict[str, Any]) -> None:
        found = document["mappings"]
        self.stdout.write(
            f"New texts that stand for old ones: {found['revision']:,} by revision, {found['span']:,} by place, "
            f"{found['text']:,} by likeness."
        )
        verb = "were carried" if document["carried"] else "can be carried"
        self.stdout.write(
            f"{document['by_rule']:,} labels {verb} by rule; {document['to_ask']:,} wait for a person."
        )

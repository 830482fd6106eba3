from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from judging.services.import_verdicts import import_verdicts
from pooling.import_command import ImportCommand
from pooling.services.importing import ImportReport


class Command(ImportCommand):
    kind = "verdicts"
    help = "Import the answers to a remainder that was judged elsewhere, as judgments of an assessor."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--assessor", metavar="USER", required=True, help="Whose judgments they are.")

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        return import_verdicts(
            evalset=evalset, by=by, progress=progress, assessor=options["assessor"], **self.common(options)
        )

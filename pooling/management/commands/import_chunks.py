from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from pooling.import_command import ImportCommand
from pooling.services.importing import ImportReport, import_chunks


class Command(ImportCommand):
    kind = "chunks"
    help = "Import chunks. The same ID with another text is a new revision; labels stay with the text that was read."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--only-referenced",
            action="store_true",
            help="Keep only the chunks that a run or a label has named. Import the runs first.",
        )

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        return import_chunks(
            evalset=evalset,
            by=by,
            progress=progress,
            only_referenced=options["only_referenced"],
            **self.common(options),
        )

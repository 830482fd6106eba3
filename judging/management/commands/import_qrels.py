from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from judging.services.import_qrels import import_qrels
from pooling.formats import Kind
from pooling.import_command import ImportCommand
from pooling.services.importing import ImportReport


class Command(ImportCommand):
    kind: Kind = "qrels"
    help = "Import existing labels. Each becomes a judgment by the file; a pair that has the same grade is left alone."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--negative",
            choices=["skip", "zero"],
            help="What a grade below zero means: no label (skip) or grade 0 (zero). Otherwise it is a fault.",
        )
        parser.add_argument(
            "--unknown-questions",
            choices=["skip"],
            help="Leave out questions that the eval set does not have.",
        )

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        return import_qrels(
            evalset=evalset,
            by=by,
            progress=progress,
            **self.common(options),
        )

    @staticmethod
    def common(options: dict[str, Any]) -> dict[str, Any]:
        read = {name: options[name] for name in ("negative", "unknown_questions")}
        return {**ImportCommand.common(options), **read}

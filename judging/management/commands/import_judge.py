from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from judging.management.commands.import_qrels import Command as ImportLabels
from judging.services.import_judge import import_judge
from pooling.services.importing import ImportReport


class Command(ImportLabels):
    kind = "judge"
    help = (
        "Import the grades of an outside judge, a model or a rule. They are compared with people's and never count as "
        "judgments; only publish_release --include-judge lets them into a release."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--judge", metavar="NAME", required=True, help="The judge's name.")
        parser.add_argument(
            "--repetition",
            type=int,
            default=1,
            metavar="N",
            help="Which run of the judge on these pairs it is, from 1; repetitions are kept apart.",
        )

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        return import_judge(
            evalset=evalset,
            by=by,
            progress=progress,
            judge=options["judge"],
            repetition=options["repetition"],
            **self.common(options),
        )

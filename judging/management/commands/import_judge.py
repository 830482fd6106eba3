from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from judging.services.import_judge import import_judge
from pooling.import_command import ImportCommand
from pooling.services.importing import ImportReport


class Command(ImportCommand):
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
        parser.add_argument(
            "--negative",
            choices=["skip", "zero"],
            help="What a grade below zero means: no grade (skip) or grade 0 (zero). Otherwise it is a fault.",
        )
        parser.add_argument(
            "--unknown-questions",
            choices=["skip"],
            help="Leave out questions that the eval set does not have.",
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
            negative=options["negative"],
            unknown_questions=options["unknown_questions"],
            **self.common(options),
        )

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from evalsets.services.splits import draw_split


class Command(FairpoolCommand):
    help = "Put each question into dev or holdout, by group and in proportion of the slices."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", help="The eval set.")
        parser.add_argument("--share", type=float, default=0.3, help="The holdout's share (default 0.3).")
        parser.add_argument("--seed", type=int, help="Of the draw; the same seed gives the same split.")
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        by = lead_of(evalset, options)
        return dict(draw_split(evalset=evalset, share=options["share"], seed=options["seed"], by=by))

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write("{dev} questions in dev, {holdout} in holdout, seed {seed}.".format(**document))

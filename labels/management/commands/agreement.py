from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from judging.services.finding import find_batch
from labels.agreement_report import report_agreement


class Command(FairpoolCommand):
    help = (
        "How far the people of an eval set agree, over the pairs that at least two of them graded for themselves: a "
        "verdict in words, and raw agreement, Gwet's AC1 and AC2, Krippendorff's alpha, Fleiss' and Cohen's kappa."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument("--batch", metavar="NAME", help="Only judgments made in this batch.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        batch = find_batch(evalset, options["batch"]) if options["batch"] else None
        return report_agreement(evalset, batch).as_json()

    def show(self, document: dict[str, Any]) -> None:
        if not document["pairs"]:
            self.stdout.write(
                "No pair has two judgments by different people yet. Ask for overlap in a batch."
            )
            return
        self.stdout.write(document["verdict"])
        for reason in document["why"]:
            self.stdout.write(f"- {reason}")
        self.stdout.write(
            f"{document['pairs']} pairs, {document['judgments']} judgments, {document['assessors']} people."
        )
        for one in document["coefficients"]:
            if one["value"] is None:
                said = f"undefined: {one['reason']}"
            else:
                low, high = one["interval"]
                said = f"{one['value']:.3f}  ({low:.3f} to {high:.3f}), n = {one['items']}"
            self.stdout.write(f"{one['name']:<34} {said}")

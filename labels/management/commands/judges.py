from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from labels.judge_grades import graded_pairs
from labels.judge_report import report_on
from labels.settling import labels_of_judges


class Command(FairpoolCommand):
    help = (
        "How far each outside judge (a model or a rule) agrees with people's labels: a verdict in words, coefficients, "
        "confusion by grade, how often it changes its mind, how far it is off by slice; and how many labels it would "
        "add to a release."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        graded = graded_pairs(evalset)
        slices = dict(evalset.questions.values_list("pk", "slices"))
        would_add = labels_of_judges(evalset)
        return {
            "judges": [
                {
                    **report_on(
                        graded, said, grades=evalset.grades, threshold=evalset.threshold, slices=slices
                    ).as_json(),
                    "would_add_labels": would_add.by_judge[said.judge.name],
                }
                for said in graded.judges
            ],
            "would_add_together": would_add.together,
        }

    def show(self, document: dict[str, Any]) -> None:
        if not document["judges"]:
            self.stdout.write("No outside judge's grades were imported yet: see import_judge.")
        for judge in document["judges"]:
            read = judge["read"]
            value = "undefined" if read["value"] is None else f"{read['value']:.3f}"
            if read["interval"]:
                value += f" ({read['interval'][0]:.3f} to {read['interval'][1]:.3f})"
            repetitions = len(judge["repetitions"])
            self.stdout.write(judge["verdict"])
            self.stdout.write(
                f"  {judge['graded']:,} pairs graded in {repetitions} repetition{'' if repetitions == 1 else 's'}, "
                f"{judge['graded_by_people_too']:,} of them by people too. {read['name']}: {value}."
            )
            for reason in judge["why"]:
                self.stdout.write(f"  - {reason}")
            self.stdout.write(
                f"  - It would add {judge['would_add_labels']:,} labels to a release (--include-judge)."
            )

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, lead_of
from evalsets.errors import BadInput
from evalsets.progress import terminal_progress
from labels.models import labels_of_models_in_words
from labels.services.finding import find_release, find_run
from scoring.comparison import percent
from scoring.management.rules import add_rules, rules_of
from scoring.management.tables import table
from scoring.models import depth_of
from scoring.resampling import SEED
from scoring.services.comparing import compare_runs, comparison_answer
from scoring.services.scoring import resolve

VERDICTS = {
    "meaningful": "The difference may be read.",
    "uninterpretable": "The difference may not be read as one in quality.",
    "relabel": "Nothing may be compared yet.",
}


class Command(FairpoolCommand):
    help = (
        "Compare run B with run A on a release. Exit status: 0 no regression beyond the margin is shown; 1 one is; "
        "2 the comparison may not be read, because of the unjudged rates; 3 bad input. With several measures the "
        'document is that of the first, the others stand under "all", and the worst status counts.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "run_a", metavar="RUN_A", help="The baseline; a system's name means its latest run."
        )
        parser.add_argument("run_b", metavar="RUN_B", help="The run that is compared with it.")
        add_rules(parser)
        parser.add_argument(
            "--margin",
            type=float,
            default=0.0,
            metavar="X",
            help="A regression is shown when the whole interval lies below -X; default 0.",
        )
        parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="Of the resampling.")

    def perform(self, **options: Any) -> dict[str, Any]:
        if not 0 <= options["margin"] <= 1:
            raise BadInput(f"The margin {options['margin']} is not between 0 and 1.")
        if options["seed"] < 0:
            raise BadInput(f"The seed {options['seed']} is below 0.")
        evalset = find_evalset(options["slug"])
        release = find_release(evalset, options["release"])
        by = lead_of(evalset, options)
        asked = resolve(release, **rules_of(options))
        with terminal_progress("run") as progress:
            comparisons = compare_runs(
                release=release,
                run_a=find_run(evalset, options["run_a"]),
                run_b=find_run(evalset, options["run_b"]),
                asked=asked,
                seed=options["seed"],
                by=by,
                progress=progress,
            )
        answer = comparison_answer(comparisons, margin=options["margin"])
        self.exit_status = answer["status"]
        return answer

    def show(self, document: dict[str, Any]) -> None:
        for one in document["all"]:
            self._show_one(one)
        first = document["all"][0]
        if said := labels_of_models_in_words(first):
            self.stdout.write(said)
        self.stdout.write(
            f"Comparisons made on release {first['release']} so far: {first['comparisons_so_far']}"
            + (f", of these on the holdout split: {first['holdout_uses']}" if first["holdout_uses"] else "")
            + "."
        )

    def _show_one(self, one: dict[str, Any]) -> None:
        self.stdout.write(f"{one['measure']}: {VERDICTS[one['reading']]}")
        for reason in one["why"]:
            self.stdout.write(f"  {reason}")
        depth = depth_of(one["measure"])
        unjudged = "unjudged" if depth == "all" else f"unjudged@{depth}"
        rows = [
            [
                one[s]["run"],
                f"{one[s]['raw']:.4f}",
                percent(one[s]["unjudged"]),
                f"{one[s]['judged_only']:.4f}",
            ]
            for s in ("a", "b")
        ]
        self.stdout.write(table(["run", f"{one['measure']} raw", unjudged, "judged-only"], rows))
        low, high = one["interval"]
        adjusted = f", Holm-adjusted {one['p_holm']:.4f}" if one["p_holm"] != one["p"] else ""
        self.stdout.write(
            f"{one['wins']} wins, {one['losses']} losses, {one['ties']} ties over n = {one['n']}; mean difference "
            f"{one['difference']:+.4f}, 95 % interval {low:+.4f} to {high:+.4f} (seed {one['seed']}), "
            f"p = {one['p']:.4f}{adjusted}"
        )
        for note in one["notes"]:
            self.stdout.write(note)
        if one["slices"]:
            self.stdout.write(
                table(
                    ["slice", "n", "wins", "losses", "difference"],
                    [
                        [s["slice"], str(s["n"]), str(s["wins"]), str(s["losses"]), f"{s['difference']:+.4f}"]
                        for s in one["slices"]
                    ],
                )
            )
            for s in one["slices"]:
                if s["warning"]:
                    self.stdout.write(f"Slice {s['slice']}: {s['warning']}.")
        if worse := one["regressions"]:
            self.stdout.write(
                table(
                    ["regressed", "A", unjudged, "B", unjudged],
                    [[row["id"], *_beside(row, "a"), *_beside(row, "b")] for row in worse[:20]],
                )
            )
            if len(worse) > 20:
                self.stdout.write(f"… and {len(worse) - 20} more; --json lists all.")
        self.stdout.write(f"{one['sentence']}\n")


def _beside(row: dict[str, Any], side: str) -> list[str]:
    """One side's value of a question, and its unjudged rate."""
    rate = row.get(f"unjudged_{side}")  # a comparison stored by an earlier version has none
    return [f"{row[side]:.4f}", "–" if rate is None else percent(rate)]

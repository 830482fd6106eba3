from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_runs, find_evalset, lead_of
from evalsets.errors import BadInput
from evalsets.models import Question, User
from evalsets.progress import terminal_progress
from labels.models import Release, labels_of_models_in_words
from labels.services.finding import find_release, find_run, find_runs
from scoring.comparison import percent
from scoring.management.rules import add_rules, rules_of
from scoring.management.tables import table
from scoring.models import Comparison
from scoring.services.comparing import compare_runs, comparison_answer, holdout_uses
from scoring.services.scoring import Asked, resolve
from scoring.services.sweeping import best_first, has_holdout, sweep_document, sweep_runs


class Command(FairpoolCommand):
    help = (
        "Compare any number of runs with one baseline by one measure, the best first, p adjusted for how many there "
        "are. The best owes part of its lead to chance: --confirm compares it once more on the holdout split. Exit "
        "status: that of `compare` for the best, or for its confirmation."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "--baseline", required=True, metavar="RUN", help="A run; a system's name means its latest run."
        )
        add_runs(parser, "The runs that are compared with it.")
        add_rules(parser)
        parser.add_argument(
            "--confirm",
            action="store_true",
            help="Compare the best with the baseline on the holdout split too. This use of it is counted.",
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        release = find_release(evalset, options["release"])
        by = lead_of(evalset, options)
        asked = resolve(release, **rules_of(options))
        if options["confirm"]:
            _refuse_confirming(release, asked)
        baseline = find_run(evalset, options["baseline"])
        runs = {run.pk: run for run in find_runs(evalset, options["runs"]) if run.pk != baseline.pk}
        with terminal_progress("run") as progress:
            made = sweep_runs(
                release=release,
                baseline=baseline,
                candidates=list(runs.values()),
                asked=asked,
                by=by,
                progress=progress,
            )
        best = best_first(made)[0]
        confirmation = self._confirm_best(best, asked, by) if options["confirm"] else None
        self.exit_status = (confirmation or comparison_answer([best]))["status"]
        return {**sweep_document(release, asked, made), "confirmation": confirmation}

    def _confirm_best(self, best: Comparison, asked: Asked, by: User | None) -> dict[str, Any]:
        """Compare the two runs on the holdout split, by the rules of the sweep."""
        self.stderr.write(
            f"Confirming {best.run_b.name} on the holdout split, which {holdout_uses(best.release)} comparisons on "
            f"release {best.release.number} have looked at so far."
        )
        on_holdout = replace(asked, split=Question.Split.HOLDOUT.value)
        return comparison_answer(
            compare_runs(release=best.release, run_a=best.run_a, run_b=best.run_b, asked=on_holdout, by=by)
        )

    def show(self, document: dict[str, Any]) -> None:
        count = len(document["comparisons"])
        self.stdout.write(
            f"The best of {count} looks better than it is. p is adjusted for {count} comparisons (Holm); "
            f"{document['comparisons_so_far']} have been made on release {document['release']}, "
            f"{document['holdout_uses']} of them on the holdout split."
        )
        if said := labels_of_models_in_words(document):
            self.stdout.write(said)
        header = ["run", document["measure"], "unjudged", "judged-only", "n", "difference", "95 % interval"]
        rows = [_row(one) for one in document["comparisons"]]
        baseline = document["comparisons"][0]["a"]
        rows.append([*_side(baseline), "", "baseline", "", "", ""])
        self.stdout.write(table([*header, "p, Holm", "may it be read?"], rows))
        if floor := document["floor"]:
            self.stdout.write(
                f"The floor: {floor['a']} and {floor['b']} are runs of one system, and half their interval is "
                f"{floor['half_width']:.4f}. If nothing was changed between them, a smaller difference is no news."
            )
        if confirmation := document["confirmation"]:
            self.stdout.write(f"On the holdout split: {confirmation['sentence']}")
        elif document["has_holdout"] and document["split"] != Question.Split.HOLDOUT:
            self.stdout.write(f"Confirm {document['best']} on the holdout split with --confirm.")


def _refuse_confirming(release: Release, asked: Asked) -> None:
    """BadInput where the best of the sweep could not be confirmed on the holdout split."""
    if asked.split == Question.Split.HOLDOUT:
        raise BadInput("A sweep of the holdout split cannot be confirmed on it; sweep with --split dev.")
    if not has_holdout(release):
        slug = release.evalset.slug
        raise BadInput(f"{slug} has no holdout split to confirm on; `manage.py draw_split {slug}` draws one.")


def _side(side: dict[str, Any]) -> list[str]:
    return [side["run"], f"{side['raw']:.4f}", percent(side["unjudged"]), f"{side['judged_only']:.4f}"]


def _row(one: dict[str, Any]) -> list[str]:
    low, high = one["interval"]
    numbers = [str(one["n"]), f"{one['difference']:+.4f}", f"{low:+.4f} to {high:+.4f}"]
    return [*_side(one["b"]), *numbers, f"{one['p_holm']:.4f}", one["reading"]]

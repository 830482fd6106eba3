from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_runs, find_evalset, lead_of
from evalsets.progress import terminal_progress
from labels.models import labels_of_models_in_words
from labels.services.finding import find_release, find_runs
from scoring.comparison import percent
from scoring.management.rules import add_rules, rules_of
from scoring.management.tables import table
from scoring.models import Policy, depth_of
from scoring.services.scoring import resolve, score_document, score_runs


class Command(FairpoolCommand):
    help = (
        "Score runs on a release. Beside each score stands its unjudged rate: the share of the chunks returned within "
        "the measure's depth, over all questions with labels, that have no label."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        add_rules(parser)
        add_runs(parser, "Runs to score; a system's name means its latest run.")
        parser.add_argument(
            "--policy",
            choices=Policy.values,
            default=Policy.RAW.value,
            help="What to do about unjudged chunks: count them as not relevant (raw), remove them first "
            "(judged-only), or refuse to score (strict).",
        )
        parser.add_argument("--per-question", action="store_true", help="Print every question's values too.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        release = find_release(evalset, options["release"])
        by = lead_of(evalset, options)
        asked = resolve(release, policy=options["policy"], **rules_of(options))
        runs = find_runs(evalset, list(dict.fromkeys(options["runs"])))
        with terminal_progress("run") as progress:
            scored = score_runs(release=release, runs=runs, asked=asked, by=by, progress=progress)
        self.per_question = options["per_question"]
        return score_document(scored.results)

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"Release {document['release']} ({document['hash'][:12]}), policy {document['policy']}, threshold "
            f"{document['threshold']}, {document['gain']} gain, unit {document['unit']}."
        )
        if said := labels_of_models_in_words(document):
            self.stdout.write(said)
        if document["unit"] == "document":
            self.stdout.write("By parent document the numbers measure the discovery of sources.")
        names = list(document["runs"][0]["measures"])
        header = ["run", "n"]
        for name in names:
            header += [name, _unjudged(name)]
        self.stdout.write(table(header, [_row(run, run["run"], run["n"], names) for run in document["runs"]]))
        for run in document["runs"]:
            self._say_more(run)
            if self.per_question:
                rows = [_row(question, question["id"], "", names) for question in run["questions"]]
                self.stdout.write(f"\n{run['run']} by question")
                self.stdout.write(table(header, rows))

    def _say_more(self, run: dict[str, Any]) -> None:
        why: dict[str, list[str]] = {}
        for one in run["skipped"]:
            why.setdefault(one["why"], []).append(one["question"])
        for reason, ids in sorted(why.items()):
            some = ", ".join(ids[:10]) + (", …" if len(ids) > 10 else "")
            self.stdout.write(f"{run['run']}: {len(ids)} not averaged ({reason}): {some}")
        for measure, residual in run["residuals"].items():
            self.stdout.write(f"{run['run']}: residual of {measure} {residual:.4f}")
        if facts := run["facts"]:
            self.stdout.write(
                f"{run['run']}: required facts covered {facts['mean']:.4f} over {facts['n']} questions "
                f"({facts['supported']} of {facts['required']} facts)"
            )
        if any(run["inadmissible"].values()):
            counts = ", ".join(f"@{depth}: {count}" for depth, count in run["inadmissible"].items())
            self.stdout.write(f"{run['run']}: inadmissible chunks returned ({counts})")
        if abstention := run["unanswerable"]["abstention"]:
            self.stdout.write(
                f"{run['run']}: abstained on {abstention['abstained']} of {abstention['unanswerable']} unanswerable "
                f"questions and, wrongly, on {abstention['wrongly_abstained']} of {abstention['answerable']} others"
            )


def _unjudged(measure: str) -> str:
    depth = depth_of(measure)
    return "unjudged" if depth == "all" else f"unjudged@{depth}"


def _row(numbers: dict[str, Any], name: str, n: Any, names: list[str]) -> list[str]:
    cells = [name, str(n)]
    for measure in names:
        value = numbers["measures"][measure]
        cells += ["–" if value is None else f"{value:.4f}", percent(numbers["unjudged"][depth_of(measure)])]
    return cells

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import EXIT_NO, FairpoolCommand, add_runs, find_evalset, lead_of
from evalsets.progress import terminal_progress
from labels.models import labels_of_models_in_words
from labels.services.finding import find_release, find_runs
from scoring.comparison import percent
from scoring.management.rules import add_rules, rules_of
from scoring.management.tables import table
from scoring.services.analysing import analyse_reusability, analysis_document
from scoring.services.scoring import resolve


class Command(FairpoolCommand):
    help = (
        "Is a release's pool reusable for systems that were not in it? Each system in turn, with those of its family, "
        "loses the relevant labels that only it contributed, and all are scored again. Exit status: 0 no system "
        "changes its rank; 1 one does; 3 bad input."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        add_rules(parser, unit=False)
        add_runs(
            parser, "One run of each system, two systems at least; a system's name means its latest run."
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        release = find_release(evalset, options["release"])
        by = lead_of(evalset, options)
        asked = resolve(release, **rules_of(options))
        runs = find_runs(evalset, list(dict.fromkeys(options["runs"])))
        with terminal_progress("run") as progress:
            analysis = analyse_reusability(release=release, runs=runs, asked=asked, by=by, progress=progress)
        document = analysis_document(analysis)
        if document["moved"]:
            self.exit_status = EXIT_NO
        return document

    def show(self, document: dict[str, Any]) -> None:
        rows, moved = document["systems"], document["moved"]
        if moved:
            said = f"{moved} of {len(rows)} systems would stand elsewhere had they not been pooled."
        else:
            said = "No system would change its rank had it not been pooled."
        self.stdout.write(f"{said} Lowest Kendall's tau: {document['lowest_tau']:.3f}.")
        self.stdout.write(
            f"{document['title']}, over {document['n']} questions; relevant from grade {document['threshold']}."
        )
        if of_models := labels_of_models_in_words(document):
            self.stdout.write(of_models)
        header = ["system", "pooled to", "only it", "all labels", "unjudged", "left out", "unjudged", "rank"]
        self.stdout.write(table([*header, "rank left out", "tau"], [_row(row) for row in rows]))


def _row(row: dict[str, Any]) -> list[str]:
    return [
        row["system"],
        "–" if row["pooled_to"] is None else str(row["pooled_to"]),
        str(row["removed"]),
        f"{row['score_before']:.4f}",
        _rate(row, "before"),
        f"{row['score_after']:.4f}",
        _rate(row, "after"),
        str(row["rank_before"]),
        str(row["rank_after"]),
        f"{row['tau']:.3f}",
    ]


def _rate(row: dict[str, Any], when: str) -> str:
    rate = row.get(f"unjudged_{when}")  # an analysis stored by an earlier version has none
    return "–" if rate is None else percent(rate)

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from labels.models import labels_of_models_in_words
from labels.services.finding import find_release, find_runs
from pooling.services.finding import find_system
from scoring.management.tables import table
from scoring.services.analysing import analyse_stages, analysis_document


class Command(FairpoolCommand):
    help = (
        "Where one system loses relevant evidence between its stages: never retrieved, cut by reranking, dropped or "
        "truncated in packing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument("--release", type=int, required=True, metavar="N", help="The release's number.")
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("--system", metavar="SYSTEM", help="The latest run of each of its stages.")
        which.add_argument(
            "--run",
            dest="runs",
            nargs="+",
            action="extend",
            metavar="RUN",
            help="Runs of one system, one for each of at least two stages.",
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        release = find_release(evalset, options["release"])
        by = lead_of(evalset, options)
        if options["system"] is not None:
            runs = list(find_system(evalset, options["system"]).runs.latest_of_each_stage())
        else:
            runs = find_runs(evalset, list(dict.fromkeys(options["runs"])))
        return analysis_document(analyse_stages(release=release, runs=runs, by=by))

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"{document['title']}: {document['relevant']} relevant classes of {document['n']} questions, from grade "
            f"{document['threshold']}."
        )
        if of_models := labels_of_models_in_words(document):
            self.stdout.write(of_models)
        runs = {one["stage"]: one["run"] for one in document["runs"]}
        rows = [[one["stage"], runs[one["stage"]], str(one["left"])] for one in document["left"]]
        self.stdout.write(table(["stage", "run", "relevant classes left"], rows))
        fates = [[fate, str(count)] for fate, count in document["fates"].items()]
        self.stdout.write(table(["what became of them", "classes"], fates))
        if (facts := document["facts"])["n"]:
            self.stdout.write(
                f"Required facts supported by the last stage: {facts['supported']} of {facts['required']} over "
                f"{facts['n']} questions (mean {facts['mean']:.4f})."
            )

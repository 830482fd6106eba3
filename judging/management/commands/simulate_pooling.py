from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_runs, find_evalset, make_tables
from evalsets.errors import BadInput
from evalsets.progress import terminal_progress
from judging.services.simulating import refuse_nothing_to_find, simulate_evalset
from pooling.formats import Findings, read_qrels, read_run
from pooling.services.finding import find_runs
from pooling.simulation import SHARES, SIMULATED, Ranking, Simulation, simulate, simulated, simulation_json
from pooling.simulation_picture import simulation_svg


class Command(FairpoolCommand):
    help = (
        "Replay pooling strategies against labels that are known already: how many relevant chunks each finds for how "
        "many judgments, so that a strategy is chosen on evidence. It reads files, or an eval set's own "
        "labels and runs, and writes nothing to it."
    )
    uses_tables = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        labels = parser.add_mutually_exclusive_group(required=True)
        labels.add_argument("--qrels", metavar="FILE", help="The labels, in any format of import_qrels.")
        labels.add_argument("--evalset", metavar="SLUG", help="The eval set whose own labels are taken.")
        add_runs(
            parser,
            "Runs, in any format of import_run; with --evalset their names, a system's for its latest run.",
            metavar="FILE",
        )
        parser.add_argument(
            "--strategy",
            dest="strategies",
            nargs="+",
            action="extend",
            metavar="NAME",
            help=f"Of {', '.join(SIMULATED)}, and stratified:RANKS:RATE,… as stratified:1-10:1,11-50:0.2; budget means "
            "budget:rrf. Default: all that the runs allow, without a sample.",
        )
        parser.add_argument(
            "--k", type=int, default=100, metavar="K", help="Depth at which runs are cut; default 100."
        )
        parser.add_argument(
            "--threshold",
            type=int,
            metavar="GRADE",
            help="Relevant from here; default 1, or the eval set's.",
        )
        parser.add_argument(
            "--seed", type=int, default=0, metavar="N", help="Of ties and of lots; default 0."
        )
        parser.add_argument(
            "--picture", metavar="FILE.svg", help="Draw relevant found against judgments made into this file."
        )
        parser.add_argument(
            "--negative", choices=["skip", "zero"], default="refuse", help="What a grade below zero means."
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        if options["k"] < 1 or (options["threshold"] is not None and options["threshold"] < 1):
            raise BadInput("--k and --threshold are whole numbers from 1 up.")
        wanted = ["budget:rrf" if name == "budget" else name for name in options["strategies"] or []]
        options["strategies"] = list(dict.fromkeys(wanted))
        simulation, threshold = _of_evalset(options) if options["evalset"] else _of_files(options)
        if options["picture"]:
            _write(options["picture"], simulation_svg(simulation))
        return {
            "k": options["k"],
            "threshold": threshold,
            "seed": options["seed"],
            "picture": options["picture"],
            **simulation_json(simulation),
        }

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"The union to depth {document['k']} holds {document['union']} pairs ({document['unlabelled']} without "
            f"a label, counted as not relevant) and {document['relevant_in_union']} of {document['relevant']} "
            "relevant ones."
        )
        width = max(len(one["name"]) for one in document["strategies"])
        header = "  ".join(f"{f'to find {share:.0%}':>12}" for share in SHARES)
        self.stdout.write(f"{'strategy':{width}}  {header}")
        for one in document["strategies"]:
            costs = [one["judgments_to_find"][str(share)] for share in SHARES]
            cells = "  ".join(f"{'never' if cost is None else f'{cost:,}':>12}" for cost in costs)
            self.stdout.write(f"{one['name']:{width}}  {cells}")


def _of_evalset(options: dict[str, Any]) -> tuple[Simulation, int]:
    """Over the eval set's own labels and runs; with the threshold that they were read by."""
    make_tables()
    evalset = find_evalset(options["evalset"])
    threshold = options["threshold"] or evalset.threshold
    depths = {run.pk: options["k"] for run in find_runs(evalset, options["runs"])}
    refuse_nothing_to_find(evalset, list(depths))
    with terminal_progress("question") as progress:
        simulation = simulate_evalset(
            evalset=evalset,
            depths=depths,
            strategies=options["strategies"],
            threshold=threshold,
            seed=options["seed"],
            progress=progress,
        )
    return simulation, threshold


def _of_files(options: dict[str, Any]) -> tuple[Simulation, int]:
    """Over labels and runs in files; with the threshold that they were read by."""
    labels: dict[str, dict[str, int]] = {}
    qrels = read_qrels(options["qrels"], negative=options["negative"])
    _refuse_faults(options["qrels"], qrels.findings)
    for label in qrels.records:
        labels.setdefault(label.question, {})[label.chunk] = label.grade
    runs = [_rankings(path) for path in options["runs"]]
    strategies, threshold = options["strategies"] or simulated(runs), options["threshold"] or 1
    try:
        simulation = simulate(
            runs, labels, strategies, k=options["k"], threshold=threshold, seed=options["seed"]
        )
    except ValueError as error:
        raise BadInput(str(error)) from None
    return simulation, threshold


def _rankings(path: str) -> dict[str, Ranking]:
    read = read_run(path, several_tags=True)
    _refuse_faults(path, read.findings)
    names = read.vocabulary
    return {
        ranking.question: (
            [names[chunk] for chunk in ranking.chunks.tolist()],
            None if ranking.scores is None else ranking.scores.tolist(),
        )
        for ranking in read.rankings
    }


def _refuse_faults(path: str, findings: Findings) -> None:
    if findings.faults:
        faults = findings.faults.as_json()
        first = faults[0]["examples"][0]
        where = f", line {first['line']}" if first["line"] else ""
        raise BadInput(
            f"{path}{where}: {faults[0]['kind']} {first['field']} {first['value']}; "
            f"right would be {first['expected']}.",
            report={"faults": faults},
        )


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"The picture cannot be written to {path}: {error.strerror}.") from None

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand
from evalsets.errors import BadInput
from pooling.formats import Findings, read_qrels, read_run
from pooling.simulation import SIMULATED, Curve, Ranking, Simulation, simulate

#: The shares of the union's relevant pairs whose cost the table tells.
SHARES = (0.5, 0.8, 0.9, 0.95, 1.0)


class Command(FairpoolCommand):
    help = (
        "Replay pooling strategies against labels that are known already: how many relevant chunks each finds for how "
        "many judgments, so that a strategy is chosen on evidence. It reads files and touches no eval set."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--qrels", required=True, metavar="FILE", help="The labels, in any format of import_qrels."
        )
        parser.add_argument(
            "--run",
            dest="runs",
            nargs="+",
            action="extend",
            required=True,
            metavar="FILE",
            help="Runs, in any format of import_run.",
        )
        parser.add_argument(
            "--strategy",
            dest="strategies",
            nargs="+",
            action="extend",
            metavar="NAME",
            help=f"Of {', '.join(SIMULATED)}; budget means budget:rrf. Default: all that the runs allow.",
        )
        parser.add_argument(
            "--k", type=int, default=100, metavar="K", help="Depth at which runs are cut; default 100."
        )
        parser.add_argument(
            "--threshold", type=int, default=1, metavar="GRADE", help="Relevant from here; default 1."
        )
        parser.add_argument(
            "--negative", choices=["skip", "zero"], default="refuse", help="What a grade below zero means."
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        if options["k"] < 1 or options["threshold"] < 1:
            raise BadInput("--k and --threshold are whole numbers from 1 up.")
        labels: dict[str, dict[str, int]] = {}
        qrels = read_qrels(options["qrels"], negative=options["negative"])
        _refuse_faults(options["qrels"], qrels.findings)
        for label in qrels.records:
            labels.setdefault(label.question, {})[label.chunk] = label.grade
        runs = [_rankings(path) for path in options["runs"]]
        scored = all(scores is not None for run in runs for _, scores in run.values())
        wanted = options["strategies"] or [
            name for name in SIMULATED if scored or name not in ("budget:combsum", "budget:combmnz")
        ]
        names = list(dict.fromkeys("budget:rrf" if name == "budget" else name for name in wanted))
        try:
            simulation = simulate(runs, labels, names, k=options["k"], threshold=options["threshold"])
        except ValueError as error:
            raise BadInput(str(error)) from None
        return _document(simulation, options["k"], options["threshold"])

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
            cells = "  ".join(f"{one['judgments_to_find'][str(share)]:>12,}" for share in SHARES)
            self.stdout.write(f"{one['name']:{width}}  {cells}")


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


def _document(simulation: Simulation, k: int, threshold: int) -> dict[str, Any]:
    return {
        "k": k,
        "threshold": threshold,
        "union": simulation.union,
        "unlabelled": simulation.unlabelled,
        "relevant_in_union": simulation.relevant_in_union,
        "relevant": simulation.relevant,
        "strategies": [
            {
                "name": curve.name,
                "curve": [list(point) for point in curve.points],
                "judgments_to_find": {
                    str(share): _cost(curve, share * simulation.relevant_in_union) for share in SHARES
                },
            }
            for curve in simulation.curves
        ],
    }


def _cost(curve: Curve, wanted: float) -> int:
    """The judgments after the first level at which at least so many relevant pairs are found."""
    return next(judgments for judgments, found in curve.points if found >= wanted - 1e-9)

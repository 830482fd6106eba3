from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_runs, find_evalset, find_user
from evalsets.progress import terminal_progress
from evalsets.templatetags.fairpool import duration, percent
from judging.pool_tables import LABELS
from judging.services.pools import pool_document
from pooling.services.finding import find_pool, find_run_to_depth
from pooling.services.pools import build_pool
from pooling.specifying import specification_of, specify_pool
from pooling.strategies import FUSIONS, STRATEGIES


class Command(FairpoolCommand):
    help = (
        "Pool the top of several runs, and say what is left to judge. Building the same pool twice is one pool. "
        "With --extends, pairs of an earlier pool are left out: the cost of adding a system."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument(
            "name", metavar="NAME", nargs="?", default="", help="The pool's name; not for --preview."
        )
        add_runs(
            parser,
            "Runs, or systems for their latest runs, each with the depth it is cut at.",
            metavar="RUN[:K]",
        )
        parser.add_argument("--k", type=int, metavar="K", help="The depth of the runs that come without one.")
        parser.add_argument("--strategy", default="depth", choices=list(STRATEGIES), help="Default: depth.")
        parser.add_argument(
            "--budget", type=int, metavar="N", help="Strategy budget: at most N pairs a question."
        )
        parser.add_argument(
            "--fusion", choices=list(FUSIONS), help="Strategy budget: the order. Default: rrf."
        )
        parser.add_argument(
            "--order",
            choices=["shuffled", "fused"],
            help="Strategy budget: how assessors meet the pairs. Default: shuffled, which tells them nothing.",
        )
        parser.add_argument(
            "--strata",
            metavar="RANKS:RATE,…",
            help="Strategy stratified: as 1-10:1.0,11-50:0.2, which takes all pairs whose best rank is 1 to 10, and "
            "draws a fifth of those at 11 to 50.",
        )
        parser.add_argument("--slice", metavar="S", help="Only the questions of this slice.")
        parser.add_argument("--split", choices=["dev", "holdout"], help="Only the questions of this split.")
        parser.add_argument(
            "--question", dest="questions", metavar="ID", action="append", help="Only these questions."
        )
        parser.add_argument(
            "--extends", metavar="POOL", help="Leave out what this pool covers, and those before it."
        )
        parser.add_argument(
            "--seed",
            type=int,
            metavar="N",
            help="Of the order of reading and of lots. Default: drawn from the pool's own content.",
        )
        parser.add_argument("--preview", action="store_true", help="Show the numbers and write nothing.")
        parser.add_argument("--by", metavar="USER", help="Who is recorded as having built it.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["evalset"])
        given = {name: options[name] for name in ("budget", "fusion", "order", "strata")}
        wanted: dict[str, Any] = {
            "evalset": evalset,
            "runs": [find_run_to_depth(evalset, text, options["k"]) for text in options["runs"]],
            "strategy": options["strategy"],
            "parameters": {name: value for name, value in given.items() if value is not None},
            "question_filter": {name: options[name] for name in ("slice", "split", "questions")},
            "extends": find_pool(evalset, options["extends"]) if options["extends"] else None,
            "seed": options["seed"],
        }
        made: dict[str, Any] = {"written": False}
        if options["preview"]:
            specification = specify_pool(**wanted)
        else:
            by = find_user(options["by"]) if options["by"] else None
            with terminal_progress("question") as progress:
                pool, created = build_pool(**wanted, name=options["name"], by=by, progress=progress)
            made = {"written": created, "pool": pool.name, "seed": pool.seed}
            # A pool that was there already has its runs in its own order, which need not be the one asked for.
            specification = specification_of(pool)
        return {**pool_document(specification), **made}

    def show(self, document: dict[str, Any]) -> None:
        if "pool" in document:
            self.stdout.write(
                f"Pool {document['pool']} "
                + ("is built." if document["written"] else "was there already; nothing was written.")
            )
        for warning in document["warnings"]:
            self.stderr.write(f"Warning: {warning}")
        self.stdout.write(f"{'Questions':<20}{document['questions']:>10,}")
        self.stdout.write(f"{'Union':<20}{document['union']:>10,}")
        for name, (label, _) in LABELS.items():
            if document[name] or name in ("judged", "queued", "remainder"):
                self.stdout.write(f"{label:<20}{document[name]:>10,}")
        pace = f"{document['seconds_per_judgment']:.0f} s a judgment"
        source = (
            f"median of {document['timed_judgments']:,}"
            if document["timed_judgments"]
            else "the eval set's default"
        )
        self.stdout.write(
            f"The remainder takes one assessor about {duration(document['seconds'])} ({pace}, {source}).\n"
        )
        self.stdout.write(
            f"{'run':<32}{'k':>6}{'returned':>10}{'unjudged':>10}{'':>9}{'unique':>8}{'adds':>8}{'to judge':>10}"
        )
        for run in document["runs"]:
            rate = percent(run["unjudged"] / run["returned"] if run["returned"] else None)
            self.stdout.write(
                f"{run['run']:<32}{run['k']:>6}{run['returned']:>10,}{run['unjudged']:>10,}{rate:>9}"
                f"{run['unique']:>8,}{run['added']:>8,}{run['added_remainder']:>10,}"
            )

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from evalsets.errors import BadInput
from judging.services.reordering import replay
from pooling.services.finding import find_pool


class Command(FairpoolCommand):
    help = (
        "Every order that a pool's strategy gave to what was left of a question, the oldest first, with the grades "
        "that it knew. With --check each is replayed, and exit status 1 says that one came out otherwise."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument("pool", metavar="POOL", help="The pool.")
        parser.add_argument("--check", action="store_true", help="Replay each order and compare.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["evalset"])
        pool = find_pool(evalset, options["pool"])
        if not pool.is_adaptive:
            raise BadInput(
                f"Pool {pool} has strategy {pool.strategy}, whose order does not follow the grades."
            )
        reorderings = list(pool.reorderings.select_related("pool", "question").order_by("pk"))
        told = {chunk for one in reorderings for chunk in (*one.graded_ids, *one.chunk_ids)}
        names = dict(evalset.chunks.filter(pk__in=told).values_list("pk", "external_id"))
        orders = []
        for reordering in reorderings:
            relevant = set(reordering.relevant_ids)
            orders.append(
                {
                    "question": reordering.question.external_id,
                    "made_at": reordering.made_at.isoformat(),
                    "grades": [[names[chunk], chunk in relevant] for chunk in reordering.graded_ids],
                    "order": [names[chunk] for chunk in reordering.chunk_ids],
                    **({"replayed": replay(reordering) == reordering.chunk_ids} if options["check"] else {}),
                }
            )
        if not all(one.get("replayed", True) for one in orders):
            self.exit_status = 1
        return {"pool": pool.name, "strategy": pool.strategy, "seed": pool.seed, "orders": orders}

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(f"Pool {document['pool']}: {document['strategy']}, seed {document['seed']}.")
        for one in document["orders"]:
            found = sum(relevant for _, relevant in one["grades"])
            said = {True: ", replayed", False: ", COMES OUT OTHERWISE", None: ""}[one.get("replayed")]
            self.stdout.write(
                f"{one['made_at'][:19]}  {one['question']}: {len(one['grades'])} grades, {found} relevant; "
                f"{len(one['order'])} left, next {', '.join(one['order'][:3])}{said}"
            )

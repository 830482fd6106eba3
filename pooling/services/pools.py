"""Building pools. Nothing here knows of judgments: a pool says what is to be looked at, not what was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction

from evalsets.errors import BadInput
from evalsets.models import EvalSet, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from pooling.models import Pool, PoolQuestion, PoolRun, Run
from pooling.pgcopy import NULL_FIELD, ArrayColumn, bigint_field, binary_copy, write_rows
from pooling.pooled import PooledSlice, pair_identity, pooled_slices
from pooling.rankings import RunToDepth
from pooling.specifying import PoolSpecification, specify_pool
from pooling.strategies import reading_order


def build_pool(
    *,
    evalset: EvalSet,
    name: str,
    runs: Sequence[RunToDepth | tuple[Run, int]],
    by: User | None,
    strategy: str = Pool.Strategy.DEPTH,
    parameters: Mapping[str, Any] | None = None,
    question_filter: Mapping[str, Any] | None = None,
    extends: Pool | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> tuple[Pool, bool]:
    """Build the pool of these runs; for arguments and BadInput see `specify_pool`.

    Returns the pool and whether it is new: the same specification gives the pool that is there, under the name it
    has. Raises BadInput where another pool has the name.
    """
    specification = specify_pool(
        evalset=evalset,
        runs=runs,
        strategy=strategy,
        parameters=parameters,
        question_filter=question_filter,
        extends=extends,
        seed=seed,
    )
    return build_specified_pool(specification=specification, name=name, by=by, progress=progress)


def build_specified_pool(
    *, specification: PoolSpecification, name: str, by: User | None, progress: Progress = silent
) -> tuple[Pool, bool]:
    """The same for a specification that is there, as after a preview."""
    name = name.strip()
    if not name or len(name) > 200:
        raise BadInput("Give the pool a name of 1 to 200 characters.")
    with transaction.atomic():
        existing = existing_pool(specification)
        if existing is not None:
            return existing, False
        pool = _claimed(specification, name, by)
        if pool is None:
            return _made_meanwhile(specification, name), False
        pairs = _write_questions(pool, specification, progress)
        runs = len(specification.runs)
        record_event(
            evalset=specification.evalset,
            by=by,
            verb="pool-built",
            summary=f"Pool {name} was built from {runs} {'run' if runs == 1 else 'runs'}: "
            f"{pairs:,} pairs for {len(specification.question_ids):,} questions.",
            details={"pool": pool.pk, "pairs": pairs},
        )
    return pool, True


def _claimed(specification: PoolSpecification, name: str, by: User | None) -> Pool | None:
    # The unique constraints decide between two who build at once: the second waits here for the first to commit.
    try:
        with transaction.atomic():
            pool = Pool.objects.create(
                evalset=specification.evalset,
                name=name,
                strategy=specification.strategy,
                parameters=dict(specification.parameters),
                seed=specification.seed,
                question_filter=dict(specification.question_filter),
                extends=specification.extends,
                specification_hash=specification.digest,
                created_by=by,
            )
    except IntegrityError:
        return None
    PoolRun.objects.bulk_create(
        PoolRun(pool=pool, run=run, position=position, k=k)
        for position, (run, k) in enumerate(specification.runs)
    )
    return pool


def existing_pool(specification: PoolSpecification) -> Pool | None:
    """The pool that was built from this very specification."""
    pools = Pool.objects.filter(evalset=specification.evalset)
    return pools.filter(specification_hash=specification.digest).first()


def _made_meanwhile(specification: PoolSpecification, name: str) -> Pool:
    pool = existing_pool(specification)
    if pool is None:
        raise BadInput(f"There is a pool named {name} already, made of something else. Choose another name.")
    return pool


_COLUMNS = [
    "pool_id",
    "question_id",
    "chunk_ids",
    "return_counts",
    "returned_by",
    "returned_rank",
    "inclusion",
    "unsampled_ids",
    "unsampled_inclusion",
]


def _write_questions(pool: Pool, specification: PoolSpecification, progress: Progress) -> int:
    """Write the pool's rows; returns how many pairs it has."""
    written = done = 0
    total = len(specification.question_ids)
    for part in pooled_slices(specification):
        progress(done, total, "Pooling questions")
        with binary_copy(PoolQuestion._meta.db_table, _COLUMNS) as copy:
            write_rows(copy, _encoded_rows(pool, part))
        written += int(part.in_pool.sum())
        done += len(part.question_ids)
    progress(done, total)
    return written


def _encoded_rows(pool: Pool, part: PooledSlice) -> Iterator[tuple[bytes, ...]]:
    pairs, chance = part.pairs, part.selection.chance
    kept = np.flatnonzero(part.in_pool)
    question, counts = pairs.question[kept], pairs.return_counts[kept]
    priority = None if part.selection.priority is None else part.selection.priority[kept]
    identity = pair_identity(part.question_ids, pairs)[kept]
    order = reading_order(question, identity, priority, seed=pool.seed)
    counts = counts[order]
    # Where the returns of each pair, in the new order, stand in the old one.
    ends = np.cumsum(counts)
    first = pairs.starts[kept[order]]
    returns = np.repeat(first - (ends - counts), counts) + np.arange(int(counts.sum()))
    unsampled = np.flatnonzero(part.unsampled)

    chunk_ids = ArrayColumn(pairs.chunk[kept[order]], "int4")
    return_counts = ArrayColumn(counts, "int2")
    returned_by = ArrayColumn(pairs.run[returns], "int2")
    returned_rank = ArrayColumn(pairs.rank[returns], "int4")
    inclusion = None if chance is None else ArrayColumn(chance[kept[order]], "float8")
    unsampled_ids = ArrayColumn(pairs.chunk[unsampled], "int4")
    unsampled_inclusion = ArrayColumn([] if chance is None else chance[unsampled], "float8")
    pool_id = bigint_field(pool.pk)
    numbers = np.arange(len(part.question_ids) + 1)
    pair_at = np.searchsorted(question, numbers).tolist()
    return_at = np.concatenate([[0], ends])[pair_at].tolist()
    unsampled_at = np.searchsorted(pairs.question[unsampled], numbers).tolist()
    for i, question_id in enumerate(part.question_ids.tolist()):
        yield (
            pool_id,
            bigint_field(question_id),
            chunk_ids.field(pair_at[i], pair_at[i + 1]),
            return_counts.field(pair_at[i], pair_at[i + 1]),
            returned_by.field(return_at[i], return_at[i + 1]),
            returned_rank.field(return_at[i], return_at[i + 1]),
            NULL_FIELD if inclusion is None else inclusion.field(pair_at[i], pair_at[i + 1]),
            unsampled_ids.field(unsampled_at[i], unsampled_at[i + 1]),
            unsampled_inclusion.field(unsampled_at[i], unsampled_at[i + 1]),
        )

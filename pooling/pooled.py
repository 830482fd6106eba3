"""What a specification makes of the rankings, and what built pools have. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Sum

from pooling.models import Pool, PoolQuestion
from pooling.pgcopy import read_tagged_arrays
from pooling.rankings import QuestionIds, question_slices, read_returns
from pooling.specifying import PoolSpecification
from pooling.strategies import (
    STRATEGIES,
    Flags,
    Keys,
    Pairs,
    Selection,
    is_among,
    mixed,
    needs_scores,
    pair_keys,
    union,
)


@dataclass(frozen=True)
class PooledSlice:
    """What a specification makes of one slice of questions."""

    question_ids: QuestionIds
    pairs: Pairs
    selection: Selection
    covered: Flags  # by pair, whether a pool that this one extends has it

    @property
    def in_pool(self) -> Flags:
        return self.selection.taken & ~self.covered

    @property
    def unsampled(self) -> Flags:
        """Pooled, but not drawn by a strategy that draws by lot: unjudged on purpose."""
        return self.selection.unsampled & ~self.covered


def pooled_slices(specification: PoolSpecification) -> Iterator[PooledSlice]:
    """The pool that a specification makes, one slice of questions after the other, straight from the rankings."""
    strategy = STRATEGIES[specification.strategy]
    chain = [pool.pk for pool in ancestors(specification.extends)]
    for question_ids in question_slices(specification.question_ids, specification.runs):
        returns = read_returns(
            specification.runs, question_ids, with_scores=needs_scores(specification.parameters)
        )
        pairs = union(returns)
        lots = mixed(pair_identity(question_ids, pairs), seed=specification.lottery)
        selection = strategy.select(pairs, specification.parameters, lots)
        covered = np.zeros(len(pairs), dtype=bool)
        if chain:
            covered = is_among(pairs.key, pooled_keys(chain, question_ids))
        yield PooledSlice(question_ids, pairs, selection, covered)


def pair_identity(question_ids: QuestionIds, pairs: Pairs) -> Keys:
    """A number of each pair, of its question and its chunk alone, however the questions were sliced."""
    question = question_ids[pairs.question].astype(np.uint64)
    return (question << np.uint64(32)) | pairs.chunk.astype(np.uint64)


def ancestors(pool: Pool | None) -> list[Pool]:
    """A pool and those it extends, directly or through others, the newest first. Empty for None."""
    chain = []
    while pool is not None:
        chain.append(pool)
        pool = pool.extends
    return chain


# What a sample drew might as well not have been drawn: only pairs that were certain to be pooled are covered.
_POOLED = """
    SELECT 0::int4, question_id,
        CASE WHEN inclusion IS NULL THEN chunk_ids
            ELSE ARRAY(SELECT chunk FROM unnest(chunk_ids, inclusion) AS pair (chunk, chance) WHERE chance = 1)
        END
    FROM pooling_poolquestion
    WHERE pool_id = ANY(%s) AND question_id = ANY(%s)
"""


def pair_totals(pools: Iterable[Pool]) -> dict[int, int]:
    """By Pool.id, how many pairs each of the built pools has."""
    rows = PoolQuestion.objects.filter(pool__in=list(pools)).order_by().values("pool")
    return dict(rows.values_list("pool", Sum("chunk_ids__len")))


def pooled_keys(pool_ids: Sequence[int], question_ids: QuestionIds) -> Keys:
    """The pairs that built pools were certain to have for these questions (sorted).

    As sorted `pair_keys`, with questions by their place; a pair may be there more than once.
    """
    rows = read_tagged_arrays(_POOLED, [list(pool_ids), question_ids.tolist()])
    return np.sort(pair_keys(rows.spread(np.searchsorted(question_ids, rows.key)), rows.values))

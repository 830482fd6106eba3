"""What a pool costs: its preview before it is built, and its numbers at any time after."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

import numpy as np
from django.db import connection

from evalsets.models import Chunk, EvalSet, Question
from judging.pair_states import chunks_without_text, read_pair_states
from judging.pool_numbers import PoolNumbers, Tally
from judging.pool_tables import numbers_json
from pooling.models import Pool, Run
from pooling.pooled import pooled_slices
from pooling.specifying import (
    PoolSpecification,
    missing_questions,
    pool_warnings,
    specification_of,
    specify_pool,
)
from pooling.strategies import is_among, pair_keys

# The pace is the median of the latest timed judgments, once there are enough of them.
TIMED_AT_LEAST = 20
TIMED_AT_MOST = 1000


def preview_pool(specification: PoolSpecification) -> PoolNumbers:
    """The numbers of a pool that need not exist, from the rankings and judgments as they stand. Writes nothing."""
    evalset = specification.evalset
    without_text = chunks_without_text(evalset)
    tally = Tally(len(specification.runs))
    for part in pooled_slices(specification):
        tally.add(part, read_pair_states(evalset, part.question_ids), without_text)
    numbers = tally.numbers()
    numbers.missing = missing_questions(specification)
    numbers.warnings = pool_warnings(specification, numbers.missing)
    numbers.seconds_per_judgment, numbers.timed_judgments = seconds_per_judgment(evalset)
    return numbers


def pool_document(specification: PoolSpecification) -> dict[str, Any]:
    """The numbers of a pool as `build_pool --json` prints them, its runs in the order of the specification."""
    names = dict(Question.objects.filter(evalset=specification.evalset).values_list("pk", "external_id"))
    return numbers_json(specification.runs, preview_pool(specification), names)


def measure_pool(pool: Pool) -> PoolNumbers:
    """The numbers of a built pool as they stand now, computed anew from its runs."""
    return preview_pool(specification_of(pool))


# What a pair of a pool may be: `PooledPair.state`.
PAIR_STATES = ("to judge", "waiting for text", "queued", "judged", "cannot be judged", "not drawn")


@dataclass(frozen=True)
class PooledPair:
    """One pair of a built pool: who returned it at which rank, and what has become of it, one of `PAIR_STATES`.

    `chance`: the probability with which it was drawn; None where nothing is drawn. Of pairs that were not drawn, the
    returns are not kept.
    """

    chunk: Chunk
    returns: list[tuple[Run, int]]
    state: str
    chance: float | None = None

    @property
    def best_rank(self) -> float:
        """The best at which a run returned it; infinite where the returns are not kept."""
        return min((rank for _, rank in self.returns), default=inf)


def pairs_of_question(pool: Pool, question: Question) -> list[PooledPair]:
    """The pool's pairs for one question by rising chunk ID; empty where the pool has none for it."""
    row = pool.pool_questions.filter(question=question).first()
    if row is None:
        return []
    runs = {item.position: item.run for item in pool.pool_runs.select_related("run")}
    chunks = pool.evalset.chunks.in_bulk(row.chunk_ids + row.unsampled_ids)
    states = read_pair_states(pool.evalset, np.array([question.pk]))
    said = {"judged": states.judged, "cannot be judged": states.cannot_judge, "queued": states.queued}
    returns = iter([(runs[run], rank) for run, rank in zip(row.returned_by, row.returned_rank, strict=True)])
    pairs = [
        PooledPair(chunks[chunk_id], [], "not drawn", chance)
        for chunk_id, chance in zip(row.unsampled_ids, row.unsampled_inclusion, strict=True)
    ]
    chances = dict(zip(row.chunk_ids, row.inclusion or (), strict=False))
    for chunk_id, count in zip(row.chunk_ids, row.return_counts, strict=True):
        key = pair_keys([0], [chunk_id])
        known = [state for state, keys in said.items() if is_among(key, keys)[0]]
        otherwise = "to judge" if chunks[chunk_id].has_text else "waiting for text"
        state = known[0] if known else otherwise
        pairs.append(PooledPair(chunks[chunk_id], list(islice(returns, count)), state, chances.get(chunk_id)))
    return sorted(pairs, key=lambda pair: pair.chunk.external_id)


def mending_pool(*, run_a: Run, run_b: Run, k: int) -> tuple[PoolSpecification, str]:
    """The pool that a comparison of two runs at k lacks, and a name for it that says so."""
    specification = specify_pool(evalset=run_a.evalset, runs=[(run_a, k), (run_b, k)])
    return specification, f"{run_a.name[:80]} against {run_b.name[:80]} to {k}"


_PACE = """
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM (
        SELECT seconds FROM judging_judgment
        WHERE evalset_id = %s AND kind = 'grade' AND source = 'desk' AND seconds > 0
        ORDER BY id DESC LIMIT %s
    ) AS latest
"""


def seconds_per_judgment(evalset: EvalSet) -> tuple[float, int]:
    """Seconds that a judgment takes here, and how many timed ones that is the median of.

    The median of the latest 1,000 grades given at the desk; the eval set's stated default, and 0, below 20 of them.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PACE, [evalset.pk, TIMED_AT_MOST])
        timed, median = cursor.fetchone()
    if timed < TIMED_AT_LEAST:
        return float(evalset.seconds_per_judgment), 0
    return float(median), timed

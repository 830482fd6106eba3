"""With what chance each label came to be known, where pools drew lots: what inferred measures weigh it by.

A pair of a sample is judged because the lot fell on it. It was *certain* to be judged all the same if a pool that draws
no lots holds it, or if people or a file had judged it before the sample was drawn: then its chance is 1. Of several
samples each draws by itself, so the chance that any of them draws a pair is 1 less the chances that none does. A pair
that became known later, though no lot fell on it, tells nothing of pairs like it: its chance is 0, and no estimate
counts it.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.db import connection

_POOLS = """
SELECT pq.question_id, pool.created_at, pq.chunk_ids, pq.inclusion, pq.unsampled_ids, pq.unsampled_inclusion
FROM pooling_poolquestion pq JOIN pooling_pool pool ON pool.id = pq.pool_id
WHERE pq.question_id = ANY(%s) AND EXISTS (
    SELECT FROM pooling_poolquestion drawn WHERE drawn.question_id = pq.question_id AND drawn.inclusion IS NOT NULL
)"""

_FIRST_JUDGED = """
SELECT j.question_id, j.chunk_id, min(j.judged_at)
FROM judging_judgment j
JOIN judging_assessor assessor ON assessor.id = j.assessor_id
JOIN evalsets_chunk chunk ON chunk.id = j.chunk_id
WHERE j.question_id = ANY(%s) AND j.kind = 'grade' AND assessor.kind <> 'model' AND j.revision = chunk.revision
GROUP BY 1, 2"""


class Sampled:
    """The pairs of one question that samples were drawn from."""

    def __init__(self) -> None:
        self._chances: defaultdict[int, list[float]] = defaultdict(list)
        self._taken: set[int] = set()
        self._certain: set[int] = set()

    def add_pool(self, chunk_ids: Iterable[int]) -> None:
        """A pool that draws no lots."""
        self._certain.update(chunk_ids)

    def add_sample(self, drawn: Iterable[tuple[int, float]], not_drawn: Iterable[tuple[int, float]]) -> None:
        """The pairs that a pool drew, and those that it did not, each with its chance."""
        for chunk, chance in drawn:
            self._chances[chunk].append(chance)
            self._taken.add(chunk)
        for chunk, chance in not_drawn:
            self._chances[chunk].append(chance)

    def inclusion(self, chunk_ids: Sequence[int]) -> list[float]:
        """The chance of each of these labelled chunks, 0 to 1."""
        return [self._chance(chunk) for chunk in chunk_ids]

    def _chance(self, chunk: int) -> float:
        chances = self._chances.get(chunk, [])
        if chunk in self._certain or not chances:
            return 1.0
        if chunk not in self._taken:
            return 0.0
        return chances[0] if len(chances) == 1 else 1 - math.prod(1 - chance for chance in chances)

    def left_out(self, labelled: set[int]) -> list[int]:
        """The chunks that were pooled and stay unjudged on purpose, by rising Chunk.id."""
        return sorted(self._chances.keys() - self._taken - self._certain - labelled)


def read_samples(question_ids: Sequence[int]) -> dict[int, Sampled]:
    """By Question.id, what was sampled; questions of which nothing was are left out."""
    samples: defaultdict[int, Sampled] = defaultdict(Sampled)
    with connection.cursor() as cursor:
        cursor.execute(_POOLS, [list(question_ids)])
        pools = cursor.fetchall()
        cursor.execute(_FIRST_JUDGED, [list({row[0] for row in pools})])
        judged: dict[tuple[int, int], datetime.datetime] = {(q, chunk): at for q, chunk, at in cursor}
    for question, drawn_at, chunk_ids, inclusion, unsampled_ids, unsampled_inclusion in pools:
        sampled = samples[question]
        if inclusion is None:
            sampled.add_pool(chunk_ids)
            continue
        drawn = list(zip(chunk_ids, inclusion, strict=True))
        not_drawn = list(zip(unsampled_ids, unsampled_inclusion, strict=True))
        sampled.add_sample(drawn, not_drawn)
        sampled.add_pool(
            chunk for chunk, _ in drawn + not_drawn if judged.get((question, chunk), drawn_at) < drawn_at
        )
    return dict(samples)

"""Rankings as arrays: what several runs returned, each to its own depth, for a slice of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalsets.errors import BadInput
from pooling.models import Run
from pooling.pgcopy import read_tagged_arrays
from pooling.strategies import MAX_QUESTIONS, MAX_RETURNS, Returns

QuestionIds = npt.NDArray[np.int64]


class RunToDepth(NamedTuple):
    """A run cut at depth k. A tie across k is cut by the stored order, which scoring and display use too."""

    run: Run
    k: int


def question_slices(question_ids: QuestionIds, runs: Sequence[RunToDepth]) -> Iterator[QuestionIds]:
    """The questions in slices that `pooling.strategies.union` can hold, whatever the runs returned.

    The cost of a pool in memory is that of one slice, about 300 MB at most.
    """
    per_question = sum(k for _, k in runs)
    size = max(1, min(MAX_QUESTIONS, MAX_RETURNS // max(1, per_question)))
    for start in range(0, len(question_ids), size):
        yield question_ids[start : start + size]


_ROWS = """
    SELECT asked.position::int4 - 1, ranking.question_id, ranking.{column}[1:asked.k]
    FROM unnest(%s::bigint[], %s::int[]) WITH ORDINALITY AS asked (run_id, k, position)
    JOIN pooling_ranking AS ranking USING (run_id)
    WHERE ranking.question_id = ANY(%s)
"""


def read_returns(
    runs: Sequence[RunToDepth], question_ids: QuestionIds, *, with_scores: bool = False
) -> Returns:
    """What the runs returned for these questions (sorted), which are numbered by their place in `question_ids`.

    By question, then run.
    """
    parameters = [[run.pk for run, _ in runs], [k for _, k in runs], question_ids.tolist()]
    rows = read_tagged_arrays(_ROWS.format(column="chunk_ids"), parameters, by_key=True)
    count = len(rows.values)
    if count > MAX_RETURNS:
        raise BadInput(
            f"The runs returned {count:,} chunks for {len(question_ids)} question(s); at most {MAX_RETURNS:,} "
            "can be pooled for one question. Choose a smaller depth."
        )
    ends = np.cumsum(rows.lengths)
    score = None
    if with_scores:
        score = read_tagged_arrays(
            _ROWS.format(column="scores"), parameters, element="float8", by_key=True
        ).values
    return Returns(
        question=rows.spread(np.searchsorted(question_ids, rows.key).astype(np.int32)),
        chunk=rows.values,
        run=rows.spread(rows.tag.astype(np.int16)),
        rank=(np.arange(1, count + 1) - rows.spread(ends - rows.lengths)).astype(np.int32),
        score=score,
    )

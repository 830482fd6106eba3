"""Which returned chunks may be evidence at all: permission scope and period of validity."""

from typing import NamedTuple

import numpy as np

from scoring.classes import BoolArray, IntArray

#: No scope, or no date: nothing is asked, or nothing is limited.
ANY = -1


class ChunkLimits(NamedTuple):
    """Scope (a number, or ANY), first and last day (ordinals, or ANY) of the chunks that have any limit.

    ``chunk`` is sorted; a chunk that is not in it has no limit. Both days belong to the period.
    """

    chunk: IntArray
    scope: IntArray
    first_day: IntArray
    last_day: IntArray


class QuestionLimits(NamedTuple):
    """Scope (a number, or ANY) and effective day (an ordinal, or ANY) of each question."""

    scope: IntArray
    day: IntArray


def inadmissible(
    question: IntArray, chunk: IntArray, questions: QuestionLimits, chunks: ChunkLimits
) -> BoolArray:
    """Return for each question/chunk pair whether the chunk comes from another scope or outside its period.

    A question without a scope may use every chunk, and a chunk without one may serve every question; the same
    holds for dates. ``question`` and ``chunk`` are parallel arrays.
    """
    if len(chunks.chunk) == 0:
        return np.zeros(len(chunk), dtype=bool)
    at = np.minimum(np.searchsorted(chunks.chunk, chunk), len(chunks.chunk) - 1)
    limited = chunks.chunk[at] == chunk
    asked, scope = questions.scope[question], chunks.scope[at]
    other_scope = (asked != ANY) & (scope != ANY) & (asked != scope)
    day = questions.day[question]
    first, last = chunks.first_day[at], chunks.last_day[at]
    outside = (day != ANY) & (((first != ANY) & (day < first)) | ((last != ANY) & (day > last)))
    return limited & (other_scope | outside)

"""Each entry of a run's rankings, looked up in what a release knows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scoring.classes import UNJUDGED, BoolArray, IntArray, Rankings, Truth


@dataclass(frozen=True, eq=False)
class Graded:
    """The rankings of a run with what is known of each entry; arrays as long as the run unless noted.

    ``question`` and ``start`` are as in `Rankings` (one a ranking). ``grade`` is the grade of the entry's
    unit (of a cut passage: of what was left) or UNJUDGED. ``row`` is the entry's row in the `Truth`, where
    ``known`` says that its unit has one, by whichever of its texts. ``counts`` says that the entry stands for
    its unit: it is judged, admissible, and the first of its unit in its ranking. ``inadmissible`` marks entries
    that cannot be evidence for their question; ``pooled`` those that a sampling plan pooled without having them
    judged. ``by_model`` marks entries whose label no person gave.
    """

    question: IntArray
    start: IntArray
    chunk: IntArray
    grade: IntArray
    row: IntArray
    known: BoolArray
    counts: BoolArray
    inadmissible: BoolArray
    pooled: BoolArray
    by_model: BoolArray

    @cached_property
    def unjudged(self) -> BoolArray:
        """Which entries no person has judged: a model's label counts in scores, and is no judgment."""
        return (self.grade == UNJUDGED) | self.by_model

    @cached_property
    def unjudged_before(self) -> IntArray:
        """How many entries are unjudged before each one, and in all."""
        return count_before(self.unjudged)

    @cached_property
    def rank(self) -> IntArray:
        """Each entry's position in its ranking, from 1."""
        return np.arange(len(self.grade)) - np.repeat(self.start[:-1], np.diff(self.start)) + 1


def count_before(flags: BoolArray) -> IntArray:
    """Return how many flags are set before each entry, and in all."""
    before = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=before[1:])
    return before


def match(
    truth: Truth,
    rankings: Rankings,
    inadmissible: BoolArray | None = None,
    truncated: BoolArray | None = None,
) -> Graded:
    """Look every entry of a run up in the truth.

    ``inadmissible`` has one flag an entry. An inadmissible entry keeps its rank, gains nothing and does not
    use up its unit. A truncated entry is another text than the one that was judged, and nobody knows which: it is
    unjudged. A cut passage has its own label or none; one that was found to hold nothing does not use up its unit.
    Raises ValueError where a question has two rankings or a ranking names a chunk twice.
    """
    _check_rankings(rankings)
    unit = truth.groups.of(truth.cuts.of(rankings.chunk))
    row, known = _labelled(truth, rankings, unit)
    grade, by_model = _label_of_each(truth, rankings, row, known, truncated)
    _, pooled = _found(truth, truth.pooled, rankings, truth.groups.of(rankings.chunk))
    if inadmissible is None:
        inadmissible = np.zeros(len(unit), dtype=bool)
    stands = (grade != UNJUDGED) & ~inadmissible
    if truth.cut is not None:
        stands &= (grade > 0) | ~truth.cuts.holds(rankings.chunk)
    counts = _first_of_unit(stands, row, rankings.chunk)
    return Graded(
        rankings.question,
        rankings.start,
        rankings.chunk,
        grade,
        row,
        known,
        counts,
        inadmissible,
        pooled,
        by_model,
    )


def _label_of_each(
    truth: Truth, rankings: Rankings, row: IntArray, known: BoolArray, truncated: BoolArray | None
) -> tuple[IntArray, BoolArray]:
    """Return each entry's grade, or UNJUDGED, and whether no person gave it."""
    if len(truth.key) == 0:
        return np.full(len(row), UNJUDGED), np.zeros(len(row), dtype=bool)
    of_unit, judged = truth.grade, known
    if truncated is not None:
        judged = judged & ~truncated
    if truth.cut is not None:
        of_unit, judged = truth.cut.whole, judged & ~truth.cuts.holds(rankings.chunk)
    grade = np.where(judged, of_unit[row], UNJUDGED)
    by_model = np.zeros(len(row), dtype=bool) if truth.by_model is None else judged & truth.by_model[row]
    if truth.cut is not None and len(truth.cut.key):
        place, own = _found(truth, truth.cut.key, rankings, rankings.chunk)
        grade = np.where(own, truth.cut.grade[place], grade)
        by_model = np.where(own, truth.cut.by_model[place], by_model)
    return grade, by_model & (grade != UNJUDGED)


#: The most units for which `_labelled` makes a table (of 4 bytes each).
TABLE_SIZE = 2**24


def _labelled(truth: Truth, rankings: Rankings, unit: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the row of each entry's unit in the truth, and whether it has one.

    One table of all units, filled for one question after the other, is several times as fast as a search for
    each entry.
    """
    if truth.stride > TABLE_SIZE:
        return _found(truth, truth.key, rankings, unit)
    row_of = np.full(
        truth.stride + 1, -1, dtype=np.int32
    )  # the last one stands for every unit beyond the table
    place = np.minimum(unit, truth.stride)
    row = np.empty(len(unit), np.int64)
    first, start = truth.first.tolist(), rankings.start.tolist()
    for ranking, question in enumerate(rankings.question.tolist()):
        low, high = first[question], first[question + 1]
        labelled = truth.unit[low:high]
        row_of[labelled] = np.arange(low, high)
        here = slice(start[ranking], start[ranking + 1])
        row[here] = row_of[place[here]]
        row_of[labelled] = -1
    return np.maximum(row, 0), row >= 0


def _found(truth: Truth, keys: IntArray, rankings: Rankings, unit: IntArray) -> tuple[IntArray, BoolArray]:
    """Return where each entry's key stands in the sorted ``keys``, and whether it is there at all."""
    if len(keys) == 0:
        return np.zeros(len(unit), np.int64), np.zeros(len(unit), dtype=bool)
    wanted = np.repeat(rankings.question * truth.stride, rankings.lengths) + unit
    fits = unit < truth.stride  # a larger unit is not known and would be taken for one of the next question
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, (keys[at] == wanted) & fits


def _first_of_unit(judged: BoolArray, row: IntArray, chunk: IntArray) -> BoolArray:
    """Return which of the judged entries is the first of its unit; rows of the truth tell questions apart."""
    candidates = np.flatnonzero(judged)
    order = np.argsort(row[candidates], kind="stable")
    candidates = candidates[order]
    later = np.zeros(len(candidates), dtype=bool)
    later[1:] = row[candidates[1:]] == row[candidates[:-1]]
    if later.any():
        by_chunk = np.lexsort((chunk[candidates], row[candidates]))
        rows, chunks = row[candidates][by_chunk], chunk[candidates][by_chunk]
        twice = np.flatnonzero((rows[1:] == rows[:-1]) & (chunks[1:] == chunks[:-1]))
        if len(twice):
            raise ValueError(f"chunk {chunks[twice[0]]} is twice in one ranking")
    first = np.zeros(len(judged), dtype=bool)
    first[candidates[~later]] = True
    return first


def _check_rankings(rankings: Rankings) -> None:
    if len(np.unique(rankings.question)) != len(rankings.question):
        raise ValueError("a question has two rankings in one run")
    start = rankings.start
    if len(start) != len(rankings.question) + 1 or start[0] != 0 or start[-1] != len(rankings.chunk):
        raise ValueError("start must begin with 0, have one element a ranking and end with the last chunk")


def select(graded: Graded, rows: IntArray) -> Graded:
    """Return the graded rankings at ``rows`` only, in that order."""
    if np.array_equal(rows, np.arange(len(graded.question))):
        return graded
    lengths = np.diff(graded.start)[rows]
    start = np.concatenate([[0], np.cumsum(lengths)])
    take = np.repeat(graded.start[rows] - start[:-1], lengths) + np.arange(start[-1])
    return Graded(
        graded.question[rows],
        start,
        graded.chunk[take],
        graded.grade[take],
        graded.row[take],
        graded.known[take],
        graded.counts[take],
        graded.inadmissible[take],
        graded.pooled[take],
        graded.by_model[take],
    )

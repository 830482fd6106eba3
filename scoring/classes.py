"""What a release knows, as arrays, and what that says of each entry of a run's rankings.

Questions are numbered 0, 1, 2, … in the order of the eval set; chunks are any non-negative integers (the
database's keys). A *unit* is what is counted once: the class of a chunk, or its parent document. A *cut
passage* is what was left of a chunk in a context: it stands for the chunk's unit, at its own text's grade.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

#: The grade of an entry without a label. Never a grade of a scale, and never written as 0.
UNJUDGED = -1


class Labels(NamedTuple):
    """The labels of a release as three parallel arrays: question number, chunk, grade (>= 0)."""

    question: IntArray
    chunk: IntArray
    grade: IntArray


class Rankings(NamedTuple):
    """The rankings of one run, laid end to end.

    Ranking ``i`` belongs to question ``question[i]``; its chunks, best first, are
    ``chunk[start[i]:start[i + 1]]``. A question that is not in ``question`` is missing; one whose slice has
    no chunk is empty. ``start`` has one element more than ``question``.
    """

    question: IntArray
    start: IntArray
    chunk: IntArray

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.start)

    def slice_of(self, question: int) -> slice:
        """Return where the entries of one question stand; KeyError if its ranking is missing."""
        rows = np.flatnonzero(self.question == question)
        if len(rows) == 0:
            raise KeyError(question)
        return slice(int(self.start[rows[0]]), int(self.start[rows[0] + 1]))

    def of(self, question: int) -> IntArray:
        """Return the chunks of one question, best first; KeyError if its ranking is missing."""
        return self.chunk[self.slice_of(question)]


class Groups(NamedTuple):
    """Which unit each grouped chunk belongs to. ``chunk`` is sorted; a chunk not in it stands alone.

    A unit is named by one of its own chunks, so units and single chunks share one number space.
    """

    chunk: IntArray
    unit: IntArray

    def of(self, chunks: IntArray) -> IntArray:
        """Return the unit of each chunk (same shape as ``chunks``)."""
        if len(self.chunk) == 0:
            return chunks
        at = self._at(chunks)
        return np.where(self.chunk[at] == chunks, self.unit[at], chunks)

    def holds(self, chunks: IntArray) -> BoolArray:
        """Return which of the chunks are grouped (same shape as ``chunks``)."""
        if len(self.chunk) == 0:
            return np.zeros(len(chunks), dtype=bool)
        return self.chunk[self._at(chunks)] == chunks

    def _at(self, chunks: IntArray) -> IntArray:
        return np.minimum(np.searchsorted(self.chunk, chunks), len(self.chunk) - 1)


def groups(chunk: Any, group: Any) -> Groups:
    """Return the `Groups` of parallel arrays of chunks and group numbers (class or document keys).

    Each group is named by its smallest chunk. Raises ValueError where a chunk stands in two groups.
    """
    chunks = np.asarray(chunk, dtype=np.int64)
    keys = np.asarray(group, dtype=np.int64)
    order = np.argsort(chunks, kind="stable")
    chunks, keys = chunks[order], keys[order]
    twice = np.flatnonzero(chunks[1:] == chunks[:-1])
    if len(twice):
        raise ValueError(f"chunk {chunks[twice[0]]} is in two groups; a chunk is in at most one")
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return Groups(chunks, chunks[first][inverse] if len(chunks) else chunks)


NO_GROUPS = Groups(np.empty(0, np.int64), np.empty(0, np.int64))


#: Which pairs of question and chunk (parallel arrays) cannot be evidence; see `scoring.admissible`.
Inadmissible = Callable[[IntArray, IntArray], BoolArray]


class CutTexts(NamedTuple):
    """What is known of passages that were cut short, where each is judged by its own text.

    ``whole`` says of each row of the `Truth` its grade by texts that were not cut, or UNJUDGED. ``key`` (sorted; made
    of cut passages as `Truth.key` is of units), ``grade`` and ``by_model`` are the passages' own labels, in parallel.
    """

    whole: IntArray
    key: IntArray
    grade: IntArray
    by_model: BoolArray


class Truth(NamedTuple):
    """One row for each question and labelled unit, sorted by question, then unit.

    ``grade`` is the highest grade among the unit's labelled, admissible texts. ``stride`` is one more than
    the largest unit known; ``key`` is ``question * stride + unit``. ``first[q]:first[q + 1]`` are the rows
    of question q. ``pooled`` are the keys of pairs that were pooled but, by a sampling plan, not judged.
    ``chance`` is each unit's chance to have been sampled (the highest of its labels'), None where all was
    judged. ``by_model`` marks units that no person labelled, only an outside judge; None where there is none.
    ``cuts`` says which chunk each cut passage was cut from, ``cut`` what is known of them; None where there is none.
    """

    key: IntArray
    question: IntArray
    unit: IntArray
    grade: IntArray
    first: IntArray
    stride: int
    groups: Groups
    pooled: IntArray
    chance: FloatArray | None = None
    by_model: BoolArray | None = None
    cuts: Groups = NO_GROUPS
    cut: CutTexts | None = None

    @property
    def questions(self) -> int:
        return len(self.first) - 1

    def rows_with_relevant(self, threshold: int) -> BoolArray:
        """Return, for each question, whether it has a unit at or above the threshold."""
        counts = np.bincount(self.question[self.grade >= threshold], minlength=self.questions)
        return counts > 0


def build_truth(
    labels: Labels,
    *,
    questions: int,
    classes: Groups = NO_GROUPS,
    documents: Groups | None = None,
    cuts: Groups = NO_GROUPS,
    inadmissible: Inadmissible | None = None,
    pooled: tuple[IntArray, IntArray] | None = None,
    chance: FloatArray | None = None,
    by_model: BoolArray | None = None,
) -> Truth:
    """Return what is known of each unit.

    A class has the highest grade among its members. With ``documents`` the unit is the parent document and
    its grade that of its best chunk, where every member of a class carries the class's grade. A chunk that is
    ``inadmissible`` for the question gives its unit no grade above 0: it is judged, but cannot be evidence. Its
    label still holds for admissible members of its class. ``cuts`` maps cut passages to the chunks they were cut from
    (of a class or a document none is a member): a label of one counts for the chunk's unit too, but says nothing of
    other texts of it.
    ``pooled`` (question and chunk arrays) names pairs that were pooled and left unjudged on purpose.

    ``chance`` (one a label, 0 to 1) is the probability with which the pair was sampled; 0: not by the sample.
    ``by_model`` (one flag a label) marks those that no person gave.

    Raises ValueError for a negative grade, a question number out of range, or a pair with two labels.
    """
    question = np.asarray(labels.question, dtype=np.int64)
    chunk = np.asarray(labels.chunk, dtype=np.int64)
    grade = np.asarray(labels.grade, dtype=np.int64)
    _check_labels(question, chunk, grade, questions)
    if documents is not None or inadmissible is not None:
        chunk, label = _spread_over_classes(chunk, classes)
        question, grade = question[label], grade[label]
        chance = None if chance is None else chance[label]
        by_model = None if by_model is None else by_model[label]
    if inadmissible is not None:
        grade = np.where(inadmissible(question, chunk), 0, grade)
    known = classes if documents is None else documents
    unit = known.of(cuts.of(chunk))
    if pooled is None:
        pooled = np.empty(0, np.int64), np.empty(0, np.int64)
    sampled_question, sampled_unit = pooled[0], known.of(pooled[1])
    stride = 1 + int(max(unit.max(initial=0), sampled_unit.max(initial=0), cuts.chunk.max(initial=0)))
    key = question * stride + unit
    order = np.lexsort((-grade, key))
    is_cut = cuts.holds(chunk)[order] if len(cuts.chunk) else None
    key, grade = key[order], grade[order]
    best = np.ones(len(key), dtype=bool)
    best[1:] = key[1:] != key[:-1]
    if chance is not None:
        chance = np.maximum.reduceat(chance[order], np.flatnonzero(best)) if len(key) else chance
    by_model = None if by_model is None else by_model[order]
    cut = None
    if is_cut is not None:
        passage = question[order] * stride + chunk[order]
        cut = _cut_texts(is_cut, passage, grade, by_model, np.flatnonzero(best))
    if by_model is not None and len(key):
        said_by_models = by_model if is_cut is None else by_model | is_cut
        by_model = np.logical_and.reduceat(said_by_models, np.flatnonzero(best))
    key, grade = key[best], grade[best]
    at_question = key // stride
    return Truth(
        key=key,
        question=at_question,
        unit=key % stride,
        grade=grade,
        first=np.searchsorted(at_question, np.arange(questions + 1)),
        stride=stride,
        groups=known,
        pooled=_absent_from(key, sampled_question * stride + sampled_unit),
        chance=chance,
        by_model=by_model,
        cuts=cuts,
        cut=cut,
    )


def _cut_texts(
    is_cut: BoolArray, passage: IntArray, grade: IntArray, by_model: BoolArray | None, rows: IntArray
) -> CutTexts:
    """Return what is known of cut passages, from labels in the order of the truth, whose ``rows`` begin there.

    ``passage`` is each label's key as `CutTexts.key` has it.
    """
    if by_model is None:
        by_model = np.zeros(len(grade), dtype=bool)
    own = np.flatnonzero(is_cut)
    own = own[np.argsort(passage[own])]
    of_wholes = np.where(is_cut, UNJUDGED, grade)
    return CutTexts(
        whole=np.maximum.reduceat(of_wholes, rows) if len(rows) else of_wholes,
        key=passage[own],
        grade=grade[own],
        by_model=by_model[own],
    )


def _check_labels(question: IntArray, chunk: IntArray, grade: IntArray, questions: int) -> None:
    """Raise ValueError for what the libraries would swallow without a word."""
    if len(grade) and grade.min() < 0:
        raise ValueError(
            f"a label has the grade {grade.min()}: grades are 0 or more, and unjudged has no label"
        )
    if len(chunk) and chunk.min() < 0:
        raise ValueError(f"chunk {chunk.min()}: chunks are numbered from 0 up")
    if len(question) and (question.min() < 0 or question.max() >= questions):
        raise ValueError(f"a label names question {question.max()}, but there are only {questions} questions")
    order = np.lexsort((chunk, question))
    same = (question[order][1:] == question[order][:-1]) & (chunk[order][1:] == chunk[order][:-1])
    if same.any():
        at = order[int(np.flatnonzero(same)[0])]
        raise ValueError(f"question {question[at]} and chunk {chunk[at]} have two labels; a pair has one")


def _spread_over_classes(chunk: IntArray, classes: Groups) -> tuple[IntArray, IntArray]:
    """Return the labels' chunks and all members of their classes, and for each the label that it comes from."""
    unit = classes.of(chunk)
    by_unit = np.argsort(classes.unit, kind="stable")
    sorted_unit = classes.unit[by_unit]
    low = np.searchsorted(sorted_unit, unit, side="left")
    high = np.searchsorted(sorted_unit, unit, side="right")
    members = [classes.chunk[by_unit[a:b]] for a, b in zip(low, high, strict=True) if b > a]
    labels = np.arange(len(chunk))
    return np.concatenate([chunk, *members]), np.concatenate([labels, np.repeat(labels, high - low)])


def _absent_from(keys: IntArray, others: IntArray) -> IntArray:
    return np.setdiff1d(others, keys) if len(others) else others


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

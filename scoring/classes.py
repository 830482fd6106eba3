"""What a release knows, as arrays, and the rankings of a run; `scoring.matching` brings the two together.

Questions are numbered 0, 1, 2, … in the order of the eval set; chunks are any non-negative integers (the
database's keys). A *unit* is what is counted once: the class of a chunk, or its parent document. A *cut
passage* is what was left of a chunk in a context: it stands for the chunk's unit, at its own text's grade.
"""

from collections.abc import Callable
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

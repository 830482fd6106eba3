"""A release as arrays, for arithmetic: what scoring reads, a few milliseconds for a million labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import orjson
from django.db import connection
from django.db.models import QuerySet
from numpy.typing import NDArray

from labels.models import Release, ReleaseClass

IntArray = NDArray[np.int64]


class QuestionFacts(NamedTuple):
    """One question of a release; `details` is what Question.as_json gave when it was frozen."""

    question_id: int
    external_id: str
    details: dict[str, Any]
    pool: list[dict[str, Any]]


class Excerpt(NamedTuple):
    """All of a release that bears on one question: its labels, and the classes of labelled and `returned` chunks.

    `question_id` is Question.id; `returned` are chunks that runs have for it, by Chunk.id.
    """

    question_id: int
    returned: IntArray


class ReleaseArrays(NamedTuple):
    """The labels of a release end to end, questions by the bytes of their IDs, chunks by those of theirs.

    Question i of `questions` owns `chunk[first[i]:first[i + 1]]` (Chunk.id) and, in parallel, `grade` and
    `by_model` (the label is an outside judge's); `first` has one element more than `questions`. `question` says the
    owner of each label. `class_chunk` (sorted) and `class_number`, in parallel, say the class of every chunk that is in
    one, labelled or not. `pooled_question` and `pooled_chunk` are the pairs that a sampling plan pooled but did not
    draw. `inclusion`, in parallel with `chunk`, is each label's probability to have been drawn, or None where nothing
    was sampled.
    """

    questions: list[QuestionFacts]
    first: IntArray
    question: IntArray
    chunk: IntArray
    grade: IntArray
    by_model: NDArray[np.bool_]
    class_chunk: IntArray
    class_number: IntArray
    pooled_question: IntArray
    pooled_chunk: IntArray
    inclusion: NDArray[np.float64] | None

    def of(self, position: int) -> tuple[IntArray, IntArray]:
        """Chunks and grades of the question at that position."""
        here = slice(self.first[position], self.first[position + 1])
        return self.chunk[here], self.grade[here]


# Postgres' binary form of an array without nulls: a header of 20 bytes (12 where it is empty), then for each element
# its length in four bytes and its value, all big-endian. numpy reads that as it stands.
_HEADER = 20


def from_sent_array(sent: bytes | memoryview, element: str) -> NDArray[Any]:
    """The array without nulls that `array_send(column)` gave; `element` is its numpy type, `i2`, `i4` or `f8`."""
    if len(sent) <= _HEADER:
        return np.empty(0, element)
    entries = np.dtype([("length", ">i4"), ("value", f">{element}")])
    return np.frombuffer(sent, dtype=entries, offset=_HEADER)["value"].astype(element)


def load_release(release: Release, excerpt: Excerpt | None = None) -> ReleaseArrays:
    """The release as arrays; of one question alone where there is an `excerpt`: of none if the release lacks it."""
    questions: list[QuestionFacts] = []
    chunks, grades, by_models, pooled, inclusions = [], [], [], [], []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT question_id, external_id, details::text, pool::text, array_send(chunk_ids), array_send(grades), "
            "array_send(model_chunk_ids), array_send(pooled_ids), array_send(inclusion) "
            "FROM labels_releasequestion WHERE release_id = %(release)s "
            "AND (%(question)s::int8 IS NULL OR question_id = %(question)s) ORDER BY position",
            {"release": release.pk, "question": excerpt and excerpt.question_id},
        )
        for question_id, external_id, details, pool, chunk, grade, by_model, left_out, inclusion in cursor:
            questions.append(
                QuestionFacts(question_id, external_id, orjson.loads(details), orjson.loads(pool))
            )
            chunks.append(from_sent_array(chunk, "i4"))
            grades.append(from_sent_array(grade, "i2"))
            by_models.append(np.isin(chunks[-1], from_sent_array(by_model, "i4")))
            pooled.append(from_sent_array(left_out, "i4"))
            inclusions.append(None if inclusion is None else from_sent_array(inclusion, "f8"))
    lengths = [len(chunk) for chunk in chunks]
    sampled = any(inclusion is not None for inclusion in inclusions)
    classes = release.release_classes.all()
    if excerpt is not None:
        classes = classes.filter(
            chunk_ids__overlap=np.concatenate([*chunks, *pooled, excerpt.returned]).tolist()
        )
    class_chunk, class_number = _classes(classes)
    return ReleaseArrays(
        questions=questions,
        first=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        question=np.repeat(np.arange(len(questions)), lengths),
        chunk=_joined(chunks, np.int64),
        grade=_joined(grades, np.int64),
        by_model=_joined(by_models, np.bool_),
        class_chunk=class_chunk,
        class_number=class_number,
        pooled_question=np.repeat(np.arange(len(questions)), [len(chunk) for chunk in pooled]),
        pooled_chunk=_joined(pooled, np.int64),
        inclusion=_joined(
            [np.ones(n) if p is None else p for p, n in zip(inclusions, lengths, strict=True)], np.float64
        )
        if sampled
        else None,
    )


def _joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays).astype(dtype) if arrays else np.empty(0, dtype)


def _classes(classes: QuerySet[ReleaseClass]) -> tuple[IntArray, IntArray]:
    rows = list(classes.values_list("number", "chunk_ids"))
    chunk = np.array([chunk for _, chunks in rows for chunk in chunks], dtype=np.int64)
    number = np.array([number for number, chunks in rows for _ in chunks], dtype=np.int64)
    order = np.argsort(chunk)
    return chunk[order], number[order]

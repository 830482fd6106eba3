"""Rows for tests of labels: judgments as if they had come from the desk or from a file."""

from __future__ import annotations

import datetime

from evalsets.models import Chunk, EvalSet, Question
from judging.models import Assessor, ChunkClass, ClassMember, Judgment

DAY = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


def an_assessor(evalset: EvalSet, who) -> Assessor:
    """The assessor of a user, or, for a text such as "file:old.qrels" or "model:judge", of that kind and name."""
    if isinstance(who, str):
        kind, _, name = who.partition(":")
        return Assessor.objects.get_or_create(evalset=evalset, kind=kind, name=name)[0]
    return Assessor.objects.get_or_create(evalset=evalset, kind="person", user=who, name=who.username)[0]


def judge(
    question: Question,
    chunk: Chunk,
    grade: int | None,
    *,
    by="file:labels",
    at: int = 0,
    revision: int | None = None,
    **fields,
) -> Judgment:
    """A judgment of the pair, `at` minutes into the day; grade None is a skip for an unclear question."""
    evalset = question.evalset
    if grade is None:
        fields = {"kind": "skip", "reason": "unclear-question", **fields}
    return Judgment.objects.create(
        evalset=evalset,
        question=question,
        chunk=chunk,
        revision=revision or chunk.revision,
        assessor=an_assessor(evalset, by),
        grade=grade,
        judged_at=DAY + datetime.timedelta(minutes=at),
        **fields,
    )


def make_class(*chunks: Chunk) -> ChunkClass:
    """A class of these chunks, as verdicts would have made it."""
    made = ChunkClass.objects.create(evalset=chunks[0].evalset)
    ClassMember.objects.bulk_create(ClassMember(chunk_class=made, chunk=chunk) for chunk in chunks)
    return made

"""Settling pairs whose judgments differ: a lead's decision overrides, and the originals stay.

Decisions on one text of a pair form a chain: each replaces the one before. Taking a decision back ends the chain with
a row of its own, a skip of source "adjudication", which says nothing of the pair and counts nowhere.
"""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Q, QuerySet

from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet, Question, User
from evalsets.services.events import record_event
from judging.models import BatchPair, Judgment
from judging.services.assessors import assessor_for

# What takes a decision back is no word on the pair.
TAKEN_BACK = Q(source=Judgment.Source.ADJUDICATION, kind=Judgment.Kind.SKIP)


def standing_decisions(question: Question, chunk: Chunk) -> QuerySet[Judgment]:
    """The decision that holds for the chunk's current text, if there is one; the latest first."""
    return (
        Judgment.objects.filter(
            question=question,
            chunk=chunk,
            revision=chunk.revision,
            source=Judgment.Source.ADJUDICATION,
            replaced_by__isnull=True,
        )
        .exclude(TAKEN_BACK)
        .order_by("-judged_at", "-id")
    )


@transaction.atomic
def adjudicate(
    *,
    evalset: EvalSet,
    question: Question,
    chunk: Chunk,
    grade: int | None,
    by: User,
    key: uuid.UUID,
    note: str = "",
) -> Judgment:
    """Decide what the pair is graded, on the chunk's current text; `grade` None: it cannot be judged.

    It replaces an earlier decision. `key` names the act: the same key again is the same decision.
    Raises BadInput for a grade that is not on the eval set's scale.
    """
    if grade is not None and grade not in evalset.grades:
        raise BadInput(f"{grade} is not on the scale; it goes from 0 to {evalset.max_grade}.")
    _lock(question)
    values = {
        "evalset": evalset,
        "question": question,
        "chunk": chunk,
        "revision": chunk.revision,
        "assessor": assessor_for(evalset=evalset, user=by),
        "kind": Judgment.Kind.CANNOT_JUDGE if grade is None else Judgment.Kind.GRADE,
        "grade": grade,
        "reason": Judgment.Reason.OTHER if grade is None else "",
        "source": Judgment.Source.ADJUDICATION,
        "note": note,
        # Asked for only when the row is made, so that a decision sent twice does not replace itself.
        "replaces": lambda: standing_decisions(question, chunk).first(),
    }
    decision, created = Judgment.objects.get_or_create(idempotency_key=key, defaults=values)
    if created:
        if grade is not None:  # where the pair is a check of assessors, its known answer follows the decision
            BatchPair.objects.gold().filter(
                question=question, chunk=chunk, revision=chunk.revision, batch__evalset=evalset
            ).update(gold_grade=grade)
        said = "that it cannot be judged" if grade is None else f"grade {grade}"
        record_event(
            evalset=evalset,
            by=by,
            verb="pair-adjudicated",
            summary=f"For question {question}, chunk {chunk}: {said} was decided.",
            details={"question": question.pk, "chunk": chunk.pk, "grade": grade},
        )
    return decision


@transaction.atomic
def take_decision_back(
    *, evalset: EvalSet, question: Question, chunk: Chunk, by: User, key: uuid.UUID
) -> Judgment:
    """Undo the decision that holds for the chunk's current text; the pair is then as its judgments leave it.

    `key` names the act: the same key again takes nothing more back. Raises BadInput where nothing is decided.
    """
    _lock(question)
    if done := Judgment.objects.filter(TAKEN_BACK, idempotency_key=key).first():
        return done
    decision = standing_decisions(question, chunk).first()
    if decision is None:
        raise BadInput(
            f"Nothing is decided for question {question}, chunk {chunk}, so nothing can be taken back."
        )
    taken_back = Judgment.objects.create(
        evalset=evalset,
        question=question,
        chunk=chunk,
        revision=decision.revision,
        assessor=assessor_for(evalset=evalset, user=by),
        kind=Judgment.Kind.SKIP,
        reason=Judgment.Reason.OTHER,
        source=Judgment.Source.ADJUDICATION,
        replaces=decision,
        idempotency_key=key,
    )
    record_event(
        evalset=evalset,
        by=by,
        verb="decision-taken-back",
        summary=f"For question {question}, chunk {chunk}: the decision was taken back.",
        details={"question": question.pk, "chunk": chunk.pk, "grade": decision.grade},
    )
    return taken_back


def _lock(question: Question) -> None:
    """One decision on a question at a time. Judgments may still come in: they only need the question to stay."""
    Question.objects.select_for_update(no_key=True).get(pk=question.pk)

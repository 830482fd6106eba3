"""Settling pairs whose judgments differ: a lead's decision overrides, and the originals stay."""

from __future__ import annotations

import uuid

from django.db import transaction

from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet, Question, User
from evalsets.services.events import record_event
from judging.models import BatchPair, Judgment
from judging.services.assessors import assessor_for


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

    The latest decision on a pair holds. `key` names the act: the same key again is the same decision.
    Raises BadInput for a grade that is not on the eval set's scale.
    """
    if grade is not None and grade not in evalset.grades:
        raise BadInput(f"{grade} is not on the scale; it goes from 0 to {evalset.max_grade}.")
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

from __future__ import annotations

import secrets

from django.db import transaction

from evalsets.errors import BadInput, Refused
from evalsets.models import EvalSet, Question, User
from evalsets.services.events import record_event
from evalsets.splits import SplitQuestion, draw_holdout


@transaction.atomic
def draw_split(*, evalset: EvalSet, share: float, by: User | None, seed: int | None = None) -> dict[str, int]:
    """Put each question into dev or holdout, by group and in proportion of the slices; earlier splits are replaced.

    `share` (between 0 and 1) is the holdout's. The seed, drawn where none is given, is written down with the act.
    Returns {"dev", "holdout", "seed"}: how many questions fell to each, and the seed.
    """
    if not 0 < share < 1:
        raise BadInput(f"The holdout's share is {share}; it lies between 0 and 1, for example 0.3.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    rows = evalset.questions.values_list("external_id", "group", "slices")
    questions = [SplitQuestion(*row) for row in rows]
    if not questions:
        raise Refused("There are no questions to split yet.")
    holdout = draw_holdout(questions, share=share, seed=seed)
    evalset.questions.filter(external_id__in=holdout).update(split=Question.Split.HOLDOUT)
    evalset.questions.exclude(external_id__in=holdout).update(split=Question.Split.DEV)
    drawn = {"dev": len(questions) - len(holdout), "holdout": len(holdout), "seed": seed}
    record_event(
        evalset=evalset,
        by=by,
        verb="split-drawn",
        summary=f"A split was drawn: {drawn['dev']} questions in dev, {drawn['holdout']} in holdout (seed {seed}).",
        details={**drawn, "share": share},
    )
    return drawn

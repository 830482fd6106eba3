from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from evalsets.errors import BadInput, Refused
from evalsets.models import EvalSet, Member, User, default_scale
from evalsets.services.events import record_event


@transaction.atomic
def create_evalset(*, by: User | None, slug: str, name: str, **settings: Any) -> EvalSet:
    """Make an eval set; who made it leads it. `settings` are fields of EvalSet: scale, threshold, gain, …

    Raises BadInput that names each field that is wrong.
    """
    settings.setdefault("scale", default_scale())
    evalset = EvalSet(slug=slug, name=name, created_by=by, **settings)
    _check(evalset, "The eval set cannot be made.")
    evalset.save()
    if by is not None:
        Member.objects.create(evalset=evalset, user=by, role=Member.Role.LEAD)
    record_event(evalset=evalset, by=by, verb="evalset-created", summary=f"Eval set {name} was made.")
    return evalset


@transaction.atomic
def change_settings(*, evalset: EvalSet, by: User | None, changed: list[str]) -> None:
    """Save an eval set whose fields `changed` were set.

    A scale can be reworded and extended; it is never shortened, since a grade that was given must stay on it.
    Raises Refused then, and BadInput that names each field that is wrong.
    """
    _check(evalset, "The settings cannot be saved.")
    before = EvalSet.objects.select_for_update().get(pk=evalset.pk)
    if evalset.max_grade < before.max_grade:
        raise Refused(
            f"The scale goes up to {before.max_grade}, and grades may have been given on all of it; "
            "it can be reworded and extended, not shortened."
        )
    evalset.save(update_fields=changed)
    record_event(
        evalset=evalset,
        by=by,
        verb="settings-changed",
        summary=f"Settings were changed: {', '.join(changed)}.",
        details={name: getattr(evalset, name) for name in changed},
    )


def _check(evalset: EvalSet, refusal: str) -> None:
    try:
        evalset.full_clean()
    except ValidationError as error:
        lines = [f"{field}: {' '.join(errors)}" for field, errors in error.message_dict.items()]
        raise BadInput("\n".join([refusal, *lines])) from None

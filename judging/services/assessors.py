"""Who a judgment is by."""

from __future__ import annotations

from evalsets.models import EvalSet, User
from judging.models import Assessor


def assessor_for(*, evalset: EvalSet, user: User) -> Assessor:
    """The user as an assessor of the eval set, made at the first time. Their name is kept as it was then."""
    assessor, _ = Assessor.objects.get_or_create(
        evalset=evalset, user=user, defaults={"kind": Assessor.Kind.PERSON, "name": user.username}
    )
    return assessor

"""Who may open which page of an eval set. A stranger to the set is told that there is no such page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.middleware import HtmxDetails

from evalsets.models import EvalSet, Member, User
from evalsets.statements import Statement

LEAD, ASSESSOR, VIEWER = Member.Role.LEAD, Member.Role.ASSESSOR, Member.Role.VIEWER


class AuthedRequest(HttpRequest):
    """A request of somebody who is signed in, inside an eval set: `role` is their role in it."""

    user: User
    htmx: HtmxDetails
    role: Member.Role


P = ParamSpec("P")
EvalSetView = Callable[Concatenate[AuthedRequest, EvalSet, P], HttpResponseBase]


# The eval set, and the user's role in it where they have one.
EVALSET_AND_ROLE = Statement(
    """
    SELECT {evalset}, member.role
    FROM evalsets_evalset evalset
    LEFT JOIN evalsets_member member ON member.evalset_id = evalset.id AND member.user_id = %(user)s
    WHERE evalset.slug = %(slug)s
    """,
    evalset=EvalSet,
)


def evalset_and_role(user: User, slug: str) -> tuple[EvalSet, Member.Role]:
    """The eval set and the user's role in it; a superuser counts as lead. Raises Http404 for a stranger."""
    found = EVALSET_AND_ROLE.first({"user": user.pk, "slug": slug})
    if found:
        evalset, role = found
        if user.is_superuser:
            return evalset, LEAD
        if role:
            return evalset, Member.Role(role)
    raise Http404(f"{user} has no eval set {slug}.")


def _for_roles(*allowed: Member.Role) -> Callable[[EvalSetView[P]], Callable[..., HttpResponseBase]]:
    def decorate(view: EvalSetView[P]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: AuthedRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            evalset, role = evalset_and_role(request.user, slug)
            if role not in allowed:
                names = " or ".join(str(item.label).lower() for item in allowed)
                raise PermissionDenied(f"This page is for a {names} of {evalset}.")
            request.role = role
            return view(request, evalset, *args, **kwargs)

        # The role matrix test reads this: every address must say who may open it.
        guarded.allowed_roles = allowed  # type: ignore[attr-defined]
        return guarded

    return decorate


lead = _for_roles(LEAD)
reader = _for_roles(LEAD, VIEWER)
assessor = _for_roles(LEAD, ASSESSOR)
member = _for_roles(LEAD, ASSESSOR, VIEWER)

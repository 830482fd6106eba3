"""Who calls: a token, in one eval set, in one role. Sessions and cookies open nothing here, so there is no CSRF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from ninja.errors import AuthenticationError, Throttled
from ninja.security import HttpBearer

from evalsets.callers import caller_address
from evalsets.models import ApiToken, EvalSet, Member, User
from evalsets.services.tokens import find_token, note_use


@dataclass(frozen=True)
class Caller:
    """Whom a token speaks for: `user` is its maker, `role` what it may do just now."""

    token: ApiToken
    evalset: EvalSet
    user: User
    role: Member.Role

    @property
    def is_blind(self) -> bool:
        """Assessors judge blind: nothing that names a system, a run or a rank may reach them."""
        return self.role == Member.Role.ASSESSOR


class ApiRequest(HttpRequest):
    auth: Caller


class Token(HttpBearer):
    """Lets in the tokens of the eval set that the address names, where their role is among those allowed."""

    def __init__(self, *allowed: Member.Role) -> None:
        super().__init__()
        self.allowed = allowed

    def authenticate(self, request: HttpRequest, text: str) -> Caller:
        token = find_token(text)
        if token is None:
            _refuse(request, "This token is not known here.")
        if token.state != ApiToken.State.ACTIVE:
            _refuse(request, f"This token is {token.state.label}.")
        if not token.user.is_active:
            _refuse(request, "Who made this token can no longer sign in, so it opens nothing.")
        role = token.role_under(token.evalset.role_of(token.user))
        if role is None:
            _refuse(request, "Who made this token no longer has the role for it, so it opens nothing.")
        note_use(token)
        assert request.resolver_match
        if request.resolver_match.kwargs["slug"] != token.evalset.slug:
            raise Http404("This token is for another eval set, or there is none of that name.")
        if role not in self.allowed:
            names = " or ".join(str(item.label).lower() for item in self.allowed)
            raise PermissionDenied(
                f"This is for a {names}; the token may do what a {role.label.lower()} may."
            )
        return Caller(token, token.evalset, token.user, role)


def _refuse(request: HttpRequest, why: str) -> NoReturn:
    """Say why, as long as few wrong tokens came from there; the limits are those on wrong passwords.

    A right token is let in all the same, so that nobody shuts out another program behind one address. That guesses
    nothing away: a token is 256 random bits. Each web process counts for itself.
    """
    key = f"wrong-tokens:{caller_address(request)}"
    seconds = int(settings.AXES_COOLOFF_TIME * 3600)
    cache.add(key, 0, seconds)
    try:
        wrong = cache.incr(key)
    except ValueError:  # it ran out between the two
        wrong = 1
    if wrong > settings.AXES_FAILURE_LIMIT:
        raise Throttled(wait=seconds)
    raise AuthenticationError(message=why)


# One class for each choice of roles, since ninja names and describes a way in by its class.


class LeadToken(Token):
    openapi_description = "A lead's token."


class ReaderToken(Token):
    openapi_description = "A lead's or a viewer's token."


class MemberToken(Token):
    openapi_description = "Any token of the eval set; an assessor's sees neither systems nor runs."


lead = LeadToken(Member.Role.LEAD)
reader = ReaderToken(Member.Role.LEAD, Member.Role.VIEWER)
member = MemberToken(Member.Role.LEAD, Member.Role.ASSESSOR, Member.Role.VIEWER)

"""Making, finding and revoking API tokens."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from evalsets.models import ApiToken, EvalSet, Member, User
from evalsets.services.events import record_event

# By it a person, and a scanner for leaked secrets, knows what the string is.
PREFIX = "fairpool_"
SHOWN_START = len(PREFIX) + 4
# Days that a token can be made for; it can also be made for good.
LONGEST_DAYS = 3650


@transaction.atomic
def create_token(
    *, evalset: EvalSet, by: User, name: str, role: Member.Role, days: int | None = None
) -> tuple[ApiToken, str]:
    """Make a token in the name of `by`, who leads the eval set; returns it and its text, which is stored nowhere.

    It expires after `days`, or never. Raises Refused for somebody who does not lead, BadInput for what cannot be.
    """
    if evalset.role_of(by) != Member.Role.LEAD:
        raise Refused(f"{by} does not lead {evalset}; tokens are made by a lead.")
    name = name.strip()
    if not 1 <= len(name) <= 100:
        raise BadInput("Give the token a name of 1 to 100 characters that says what it is for.")
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise BadInput(f"A token lasts from 1 to {LONGEST_DAYS} days, or for good; got {days}.")
    text = PREFIX + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                evalset=evalset,
                user=by,
                name=name,
                role=role,
                start=text[:SHOWN_START],
                hash=_hash(text),
                expires_at=timezone.now() + timedelta(days=days) if days else None,
            )
    except IntegrityError:
        raise BadInput(
            f"{by} has a token named {name} here already. Revoke it, or choose another name."
        ) from None
    record_event(
        evalset=evalset,
        by=by,
        verb="token-made",
        summary=f"Made {token.actor}, as {token.get_role_display().lower()}.",
        details={"token": token.pk, "start": token.start, "role": role, "days": days},
    )
    return token, text


@transaction.atomic
def revoke_token(*, token: ApiToken, by: User | None) -> None:
    """End a token for good. Raises Refused for one that is revoked already."""
    now = timezone.now()
    changed = ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(
        revoked_at=now, revoked_by=by
    )
    if not changed:
        raise Refused(f"The token {token} is revoked already.")
    record_event(
        evalset=token.evalset,
        by=by,
        verb="token-revoked",
        summary=f"Revoked {token.actor}.",
        details={"token": token.pk, "start": token.start},
    )


def find_token(text: str) -> ApiToken | None:
    """The token whose text that is, expired and revoked ones too; its maker is set to act by it."""
    if not text.startswith(PREFIX):
        return None
    token = ApiToken.objects.select_related("evalset", "user").filter(hash=_hash(text)).first()
    if token is not None:
        token.user.acting_token = token
    return token


def note_use(token: ApiToken) -> None:
    """Write down that the token was used, at most once a minute."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= timedelta(minutes=1):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

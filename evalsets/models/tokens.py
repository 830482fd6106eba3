"""API tokens: what a program shows instead of a password."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from evalsets.models.evalset import EvalSet, Member
from evalsets.models.users import User


class ApiToken(models.Model):
    """A program's way into one eval set in one role, in the name of the lead who made it.

    The token itself is shown once and never stored. What is stored is its SHA-256: a token is 256 random bits, so
    nobody can guess one from its hash, and a slow salted hash as passwords need would only slow every request down.
    """

    class State(models.TextChoices):
        ACTIVE = "active", "active"
        EXPIRED = "expired", "expired"
        REVOKED = "revoked", "revoked"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="tokens")
    user = models.ForeignKey(
        User, models.CASCADE, related_name="tokens", help_text="Who made it, and in whose name it acts."
    )
    name = models.CharField(max_length=100, help_text="What it is for.")
    role = models.CharField(max_length=10, choices=Member.Role, help_text="The most that it may do.")
    start = models.CharField(
        max_length=20, help_text="Its first characters, by which people tell it from others."
    )
    hash = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hexadecimal.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = [F("revoked_at").desc(nulls_first=True), "-created_at", "-id"]
        constraints = [
            # A name may be used again once its token is revoked: "ci" is renewed and is "ci" still.
            models.UniqueConstraint(
                fields=["evalset", "user", "name"],
                condition=Q(revoked_at__isnull=True),
                name="token_name_twice",
            ),
            models.CheckConstraint(condition=~Q(name=""), name="token_without_name"),
            models.CheckConstraint(
                condition=Q(role__in=["lead", "assessor", "viewer"]), name="token_role_unknown"
            ),
            models.CheckConstraint(condition=Q(hash__regex=r"^[0-9a-f]{64}$"), name="token_hash_malformed"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> str:
        """What is written down as having acted, where the token did."""
        return f"token {self.name} of {self.user}"

    @property
    def state(self) -> ApiToken.State:
        if self.revoked_at:
            return self.State.REVOKED
        if self.expires_at and self.expires_at <= timezone.now():
            return self.State.EXPIRED
        return self.State.ACTIVE

    def role_under(self, maker: Member.Role | None) -> Member.Role | None:
        """What the token may do while its maker has that role (None: is no member): never more than either of them.

        A lead may do whatever the other two may; an assessor and a viewer may not do each other's work.
        """
        role = Member.Role(self.role)
        if maker in (Member.Role.LEAD, role):
            return role
        return maker if role == Member.Role.LEAD else None

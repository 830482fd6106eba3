from django.db import models
from django.db.models.functions import Now

from evalsets.models.evalset import EvalSet
from evalsets.models.tokens import ApiToken
from evalsets.models.users import User


class Event(models.Model):
    """Who did what, when. Append-only: the database refuses to change or delete a row."""

    evalset = models.ForeignKey(EvalSet, models.PROTECT, null=True, blank=True, related_name="events")
    at = models.DateTimeField(db_default=Now(), editable=False)
    by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    token = models.ForeignKey(
        ApiToken,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="With which it was done in that person's name, where it was not the person.",
    )
    verb = models.CharField(max_length=60, help_text="What was done, for example run-imported.")
    summary = models.TextField(help_text="One sentence for people.")
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["evalset", "-at"], name="event_latest_first")]

    def __str__(self) -> str:
        return self.summary

    @property
    def actor(self) -> str:
        """Who did it, for people."""
        if self.token:
            return self.token.actor
        return str(self.by or "command line")

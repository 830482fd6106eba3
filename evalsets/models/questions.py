from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now
from django.urls import reverse

from evalsets.models.evalset import EvalSet


class Question(models.Model):
    """An information need with a stable ID."""

    class Split(models.TextChoices):
        DEV = "dev", "dev"
        HOLDOUT = "holdout", "holdout"

    # No index of its own: the unique key over eval set and ID serves, and the planner is not misled by it.
    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="questions", db_index=False)
    # Opaque and case-sensitive; ordered by its bytes, so that exports come out the same everywhere.
    external_id = models.CharField(max_length=512, db_collation="C")
    text = models.TextField()
    narrative = models.TextField(blank=True)
    slices = ArrayField(models.TextField(), default=list, blank=True)
    split = models.CharField(max_length=10, choices=Split, blank=True)
    answerable = models.BooleanField(default=True)
    group = models.TextField(blank=True, help_text="Paraphrase family.")
    scope = models.TextField(blank=True, help_text="Permission scope the question is asked in.")
    effective_date = models.DateField(null=True, blank=True, help_text="The day the answer must hold on.")
    facts = models.JSONField(default=list, blank=True, help_text="Required facts: a list of {id, text}.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["external_id"]
        indexes = [GinIndex(fields=["slices"], name="question_slices")]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "external_id"], name="question_id_twice_in_evalset"),
            models.CheckConstraint(condition=~models.Q(external_id=""), name="question_without_id"),
            models.CheckConstraint(
                condition=models.Q(split__in=["", "dev", "holdout"]), name="question_split_unknown"
            ),
        ]

    def __str__(self) -> str:
        return self.external_id

    def get_absolute_url(self) -> str:
        return reverse("labels:question", args=[self.evalset.slug, self.pk])

    def as_json(self) -> dict[str, Any]:
        """The question in the shape of our own JSONL format."""
        return {
            "id": self.external_id,
            "text": self.text,
            "narrative": self.narrative,
            "slices": self.slices,
            "split": self.split or None,
            "answerable": self.answerable,
            "group": self.group or None,
            "scope": self.scope or None,
            "effective_date": self.effective_date.isoformat() if self.effective_date else None,
            "facts": self.facts,
        }

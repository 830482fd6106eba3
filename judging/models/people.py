"""Who judges, and by what: rubrics and assessors."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from evalsets.models import EvalSet, User


class Rubric(models.Model):
    """One version of the scale and the instructions that were on screen. Never changed; an edit is a new version."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="rubrics")
    version = models.PositiveIntegerField()
    scale = models.JSONField()
    instructions = models.TextField(blank=True, help_text="Markdown.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "version"], name="rubric_version_twice"),
        ]

    def __str__(self) -> str:
        return f"version {self.version}"


class Assessor(models.Model):
    """Who a judgment is by: a person, an imported file, or an outside judge (a model or a rule)."""

    class Kind(models.TextChoices):
        PERSON = "person", "person"
        FILE = "file", "imported file"
        MODEL = "model", "model"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="assessors")
    kind = models.CharField(max_length=10, choices=Kind)
    user = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="assessors")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "user"], name="assessor_twice_for_user"),
            models.UniqueConstraint(fields=["evalset", "kind", "name"], name="assessor_name_twice"),
            models.CheckConstraint(
                condition=Q(kind="person", user__isnull=False)
                | Q(kind__in=["file", "model"], user__isnull=True),
                name="assessor_person_without_user",
            ),
        ]

    def __str__(self) -> str:
        return self.name

"""Judgments, which are never changed.

Regrading adds a row that replaces the earlier one. The first judgment of an assessor on a pair of a batch has no
`replaces`; each later one replaces exactly one row, so the rows form a chain whose last row is the current judgment.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from evalsets.models import Chunk, EvalSet, ImportedFile, Question
from judging.models.batches import BatchPair
from judging.models.people import Assessor, Rubric


class Judgment(models.Model):
    """One assessor's grade, skip or cannot-judge for one pair at one time. Append-only in the database itself."""

    class Kind(models.TextChoices):
        GRADE = "grade", "grade"
        SKIP = "skip", "skipped"
        CANNOT_JUDGE = "cannot-judge", "cannot be judged"

    class Source(models.TextChoices):
        DESK = "desk", "judged at the desk"
        COPY = "copy", "copied from a near-duplicate"
        IMPORT = "import", "imported"
        ADJUDICATION = "adjudication", "adjudicated"
        CARRIED = "carried", "carried over from another text"

    class Reason(models.TextChoices):
        UNCLEAR_QUESTION = "unclear-question", "The question is unclear"
        BROKEN_TEXT = "broken-text", "The text is broken"
        NEEDS_EXPERT = "needs-expert", "It needs an expert"
        OTHER = "other", "Other"

    # No index of its own: the one over eval set and ID serves.
    evalset = models.ForeignKey(EvalSet, models.PROTECT, related_name="judgments", db_index=False)
    question = models.ForeignKey(Question, models.PROTECT, related_name="judgments")
    chunk = models.ForeignKey(Chunk, models.PROTECT, related_name="judgments")
    revision = models.PositiveSmallIntegerField(help_text="The chunk's revision that was read.")
    assessor = models.ForeignKey(Assessor, models.PROTECT, related_name="judgments")
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.GRADE)
    grade = models.PositiveSmallIntegerField(null=True, blank=True)
    reason = models.CharField(max_length=20, choices=Reason, blank=True)
    source = models.CharField(max_length=12, choices=Source, default=Source.DESK)
    pair = models.ForeignKey(BatchPair, models.PROTECT, null=True, blank=True, related_name="judgments")
    rubric = models.ForeignKey(Rubric, models.PROTECT, null=True, blank=True, related_name="judgments")
    imported_file = models.ForeignKey(
        ImportedFile, models.PROTECT, null=True, blank=True, related_name="judgments"
    )
    note = models.TextField(blank=True)
    spans = models.JSONField(
        default=list, blank=True, help_text="Evidence: [{start, end, text}] in the text."
    )
    facts = ArrayField(models.TextField(), default=list, blank=True, help_text="Required facts it supports.")
    seconds = models.FloatField(null=True, blank=True, help_text="Active time on the pair.")
    replaces = models.OneToOneField("self", models.PROTECT, null=True, blank=True, related_name="replaced_by")
    idempotency_key = models.UUIDField(null=True, blank=True, unique=True)
    details = models.JSONField(default=dict, blank=True, help_text="What else its source said of it.")
    judged_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["evalset", "question", "chunk"], name="judgment_by_pair"),
            models.Index(fields=["evalset", "id"], name="judgment_latest_of_evalset"),
            # Few of many: what leads decided.
            models.Index(
                fields=["evalset", "-judged_at", "-id"],
                condition=Q(source="adjudication"),
                name="judgment_decision",
            ),
            # Few of many: skips, and what cannot be judged.
            models.Index(fields=["evalset", "-id"], condition=~Q(kind="grade"), name="judgment_no_grade"),
            models.Index(fields=["assessor", "-judged_at"], name="judgment_latest_of_assessor"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="grade", grade__isnull=False)
                | Q(kind__in=["skip", "cannot-judge"], grade__isnull=True),
                name="judgment_grade_without_grade",
            ),
            models.CheckConstraint(
                condition=Q(kind="grade") | ~Q(reason=""), name="judgment_skip_without_reason"
            ),
            models.UniqueConstraint(
                fields=["pair", "assessor"],
                condition=Q(replaces__isnull=True, pair__isnull=False),
                name="judgment_first_twice_for_assessor",
            ),
        ]

    def __str__(self) -> str:
        return (
            f"{self.question_id}/{self.chunk_id}: {self.kind} {self.grade if self.grade is not None else ''}"
        )

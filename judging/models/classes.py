"""Verdicts on whether two chunks have the same content, and the classes that follow from them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from evalsets.models import Chunk, EvalSet, Question
from judging.models.people import Assessor


class PairVerdict(models.Model):
    """A person's word on two chunks: the same content, one newer than the other, or different. Append-only.

    The latest verdict on two chunks holds; `none` takes the earlier ones back.
    """

    class Verdict(models.TextChoices):
        SAME = "same", "the same content"
        FIRST_NEWER = "first-newer", "the first replaces the second"
        SECOND_NEWER = "second-newer", "the second replaces the first"
        DIFFERENT = "different", "different content"
        NONE = "none", "no verdict (taken back)"

    evalset = models.ForeignKey(EvalSet, models.PROTECT, related_name="pair_verdicts")
    first = models.ForeignKey(Chunk, models.PROTECT, related_name="+")
    first_revision = models.PositiveSmallIntegerField()
    second = models.ForeignKey(Chunk, models.PROTECT, related_name="+")
    second_revision = models.PositiveSmallIntegerField()
    verdict = models.CharField(max_length=12, choices=Verdict)
    assessor = models.ForeignKey(Assessor, models.PROTECT, related_name="pair_verdicts")
    question = models.ForeignKey(
        Question, models.PROTECT, null=True, blank=True, related_name="+", help_text="Where it was seen."
    )
    note = models.TextField(blank=True)
    idempotency_key = models.UUIDField(null=True, blank=True, unique=True)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["evalset", "first", "second", "-id"], name="verdict_latest_first")]
        constraints = [
            # One order for each pair of chunks, so that the latest verdict is found under one key.
            models.CheckConstraint(
                condition=Q(first__lt=models.F("second")), name="verdict_chunks_out_of_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first_id} {self.verdict} {self.second_id}"


class ChunkClass(models.Model):
    """Chunks that carry the same content, so that any one of them is a hit: what `same` verdicts join together."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="chunk_classes")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "chunk classes"

    def __str__(self) -> str:
        return f"class {self.pk}"


class ClassMember(models.Model):
    """A chunk's place in its class. Follows from the verdicts; kept so that the database holds it to one class."""

    chunk_class = models.ForeignKey(ChunkClass, models.CASCADE, related_name="members")
    chunk = models.OneToOneField(Chunk, models.CASCADE, related_name="class_member")

    def __str__(self) -> str:
        return f"{self.chunk_id} in {self.chunk_class_id}"

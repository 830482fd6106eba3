"""Batches, their pairs, and the tasks that assessors hold.

A task is only a claim; what became of it is said by the judgment.
"""

from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Count, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Now
from django.urls import reverse
from django.utils import timezone

from evalsets.models import Chunk, EvalSet, Member, Question, User
from judging.models.people import Assessor, Rubric
from pooling.models import Pool


class BatchQuerySet(models.QuerySet["Batch"]):
    def open(self) -> BatchQuerySet:
        """Batches that are not cancelled and have a pair that wants a judgment still, gold pairs aside."""
        waiting = BatchPair.objects.ordinary().filter(batch=OuterRef("pk"), filled_at__isnull=True)
        return self.filter(Exists(waiting), cancelled_at__isnull=True)

    def in_state(self, state: str) -> BatchQuerySet:
        """Batches in one of `Batch.STATES`. A batch is done when all but its gold pairs are filled, paused or not."""
        if state == "cancelled":
            return self.filter(cancelled_at__isnull=False)
        if state == "done":
            waiting = BatchPair.objects.ordinary().filter(batch=OuterRef("pk"), filled_at__isnull=True)
            return self.filter(~Exists(waiting), cancelled_at__isnull=True)
        return self.open().filter(paused_at__isnull=state == "open")

    def for_assessor(self, user: User) -> BatchQuerySet:
        """Batches that the user was named for, in eval sets where they are a member who may judge."""
        may_judge = [Member.Role.LEAD, Member.Role.ASSESSOR]
        membership = Member.objects.filter(evalset=OuterRef("evalset"), user=user, role__in=may_judge)
        return self.filter(Exists(membership), assessors__user=user)

    def with_progress(self) -> BatchQuerySet:
        """Adds `question_count`, `pair_count`, `filled_count` (pairs with all their judgments) and `wanted_count`
        (judgments asked for). Gold pairs are not among them."""
        pairs = BatchPair.objects.ordinary()
        return self.annotate(
            question_count=_per_batch(BatchQuestion.objects.all(), Count("pk")),
            pair_count=_per_batch(pairs, Count("pk")),
            filled_count=_per_batch(pairs, Count("filled_at")),
            wanted_count=_per_batch(pairs, Sum("wanted")),
        )


def _per_batch(rows: QuerySet[Any], total: Any) -> Coalesce:
    """`total` over the rows of the outer batch. Each in a subquery of its own, so that counts do not multiply."""
    counted = rows.filter(batch=OuterRef("pk")).order_by().values("batch").annotate(total=total)
    return Coalesce(Subquery(counted.values("total"), output_field=IntegerField()), 0)


class Batch(models.Model):
    """The part of a remainder that a lead hands to named assessors, under one rubric."""

    STATES = {"open": "Open", "paused": "Paused", "done": "Done", "cancelled": "Cancelled"}

    class Sharing(models.TextChoices):
        BY_QUESTION = "by-question", "by question: one assessor takes a question with all its pairs"
        ASSIGNED = "assigned", "assigned: the lead names who gets which questions"
        SHARED = "shared", "shared: any assessor gets the next open pair"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="batches")
    pool = models.ForeignKey(Pool, models.PROTECT, related_name="batches")
    name = models.CharField(max_length=200)
    rubric = models.ForeignKey(Rubric, models.PROTECT, related_name="batches")
    assessors = models.ManyToManyField(Assessor, related_name="batches")
    sharing = models.CharField(max_length=12, choices=Sharing, default=Sharing.BY_QUESTION)
    due_on = models.DateField(null=True, blank=True)
    overlap = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text="How many independent judgments an overlapping pair gets.",
    )
    overlap_share = models.FloatField(
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Share of pairs that get them.",
    )
    lease_minutes = models.PositiveSmallIntegerField(
        default=30,
        validators=[MinValueValidator(1)],
        help_text="Idle for so long, an assessor's open tasks go back.",
    )
    seed = models.BigIntegerField(help_text="Of the choice of overlapping and gold pairs.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    paused_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)

    objects = BatchQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="batch_name_twice_in_evalset"),
            models.CheckConstraint(condition=~Q(name=""), name="batch_without_name"),
            models.CheckConstraint(condition=Q(overlap__gte=1), name="batch_overlap_below_one"),
            models.CheckConstraint(
                condition=Q(overlap_share__gte=0, overlap_share__lte=1),
                name="batch_overlap_share_outside_0_1",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("judging:batch", args=[self.evalset.slug, self.pk])

    @property
    def desk_url(self) -> str:
        return reverse("judging:desk", args=[self.evalset.slug, self.pk])

    @property
    def hands_out_pairs(self) -> bool:
        """Whether assessors get work from it now."""
        return self.paused_at is None and self.cancelled_at is None

    @property
    def is_past_due(self) -> bool:
        """Whether its due date is over; a batch that is done is not late for all that."""
        return self.due_on is not None and self.due_on < timezone.localdate()


class BatchQuestion(models.Model):
    """A question of a batch: the row that is locked while its pairs are claimed."""

    batch = models.ForeignKey(Batch, models.CASCADE, related_name="batch_questions")
    question = models.ForeignKey(Question, models.PROTECT, related_name="batch_questions")
    position = models.PositiveIntegerField(help_text="Order in which questions are taken.")
    assigned_to = models.ForeignKey(
        Assessor, models.PROTECT, null=True, blank=True, related_name="assigned_questions"
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "question"], name="batch_question_twice"),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}/{self.question_id}"


class BatchPairQuerySet(models.QuerySet["BatchPair"]):
    def ordinary(self) -> BatchPairQuerySet:
        """The pairs that the batch was made for."""
        return self.filter(gold_grade__isnull=True)

    def gold(self) -> BatchPairQuerySet:
        """The pairs whose answer is known, mixed in as a check of the assessors."""
        return self.filter(gold_grade__isnull=False)


class BatchPair(models.Model):
    """A question/chunk pair of a batch, and how many independent judgments it wants."""

    batch_question = models.ForeignKey(BatchQuestion, models.CASCADE, related_name="pairs")
    batch = models.ForeignKey(Batch, models.CASCADE, related_name="pairs")
    question = models.ForeignKey(Question, models.PROTECT, related_name="batch_pairs")
    chunk = models.ForeignKey(Chunk, models.PROTECT, related_name="batch_pairs")
    revision = models.PositiveSmallIntegerField(help_text="The chunk's revision that is shown.")
    position = models.PositiveIntegerField(help_text="Order within the question.")
    wanted = models.PositiveSmallIntegerField(default=1, help_text="Independent judgments asked for.")
    gold_grade = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="The known grade, where the pair was mixed in as a check."
    )
    # Follows from the judgments, and is set under the pair's lock in the transaction that saves one. It is here only
    # so that a claim finds the open pairs by an index, rather than by reading past everything that is done.
    filled_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When the last of the wanted judgments came in."
    )

    objects = BatchPairQuerySet.as_manager()

    class Meta:
        ordering = ["batch_question", "position"]
        indexes = [
            models.Index(fields=["batch", "question", "position"], name="pair_in_reading_order"),
            models.Index(
                fields=["batch", "batch_question", "position"],
                condition=Q(filled_at__isnull=True),
                name="pair_open_in_batch",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["batch", "question", "chunk"], name="batch_pair_twice"),
            models.CheckConstraint(condition=Q(wanted__gte=1), name="batch_pair_wanted_below_one"),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}: {self.question_id}/{self.chunk_id}"


class Task(models.Model):
    """One pair claimed by one assessor. It holds the pair until it is judged or the lease ends."""

    pair = models.ForeignKey(BatchPair, models.CASCADE, related_name="tasks")
    assessor = models.ForeignKey(Assessor, models.PROTECT, related_name="tasks")
    claimed_at = models.DateTimeField(db_default=Now(), editable=False)
    leased_until = models.DateTimeField()
    deferred_at = models.DateTimeField(
        null=True, blank=True, help_text="When the assessor put it off until later."
    )

    class Meta:
        indexes = [models.Index(fields=["assessor", "leased_until"], name="task_held_by_assessor")]
        constraints = [
            models.UniqueConstraint(fields=["pair", "assessor"], name="task_twice_for_assessor"),
        ]

    def __str__(self) -> str:
        return f"{self.pair_id} for {self.assessor_id}"

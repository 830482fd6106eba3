"""Batches, the tasks that assessors hold, and the judgments they make.

A judgment is never changed: regrading adds a row that replaces the earlier one. The first judgment of an assessor on
a pair of a batch has no `replaces`; each later one replaces exactly one row, so the rows form a chain whose last row
is the current judgment. A task is only a claim; what became of it is said by the judgment.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Count, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Now
from django.urls import reverse
from django.utils import timezone

from evalsets.models import Chunk, EvalSet, ImportedFile, Member, Question, User
from pooling.models import Pool


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


class KeptFigures(models.Model):
    """What a job worked out for the pages of a large eval set: see judging.reckoning. A cache: it may be emptied."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="kept_figures")
    name = models.CharField(max_length=100)
    form = models.PositiveSmallIntegerField(help_text="judging.reckoning.FORM when it was written.")
    value = models.BinaryField(help_text="Pickled.")
    state = models.CharField(
        max_length=32, help_text="Of the eval set just before: judging.reckoning.state_of."
    )
    at = models.DateTimeField(help_text="As of when.")

    class Meta:
        verbose_name_plural = "kept figures"
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="kept_figures_twice"),
        ]

    def __str__(self) -> str:
        return self.name

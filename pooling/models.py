"""Systems, their runs, and the pools made of them.

Rankings and pools are stored as arrays, one row per question: an empty ranking is a fact, a run of seven million
entries is seven thousand rows, and a union is one set-based statement. Chunks in arrays are `Chunk.id` values.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Now
from django.urls import reverse

from evalsets.models import EvalSet, Question, User
from pooling.adaptive import ADAPTIVE, Graded


class System(models.Model):
    """A retriever or pipeline under comparison."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="systems")
    name = models.CharField(max_length=200, db_collation="C")
    family = models.CharField(
        max_length=200, blank=True, help_text="Systems of one family are related: left out together."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="system_name_twice_in_evalset"),
            models.CheckConstraint(condition=~Q(name=""), name="system_without_name"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("labels:system", args=[self.evalset.slug, self.pk])


class RunQuerySet(models.QuerySet["Run"]):
    def latest_of_each_system(self) -> RunQuerySet:
        """One run a system: the one of the latest date, of several the one imported last; by system name."""
        of_system = Run.objects.filter(system=OuterRef("system")).order_by("-date", "-id")
        newest = Subquery(of_system.values("pk")[:1])
        return self.filter(pk=newest).select_related("system").order_by("system__name")

    def latest_of_each_stage(self) -> RunQuerySet:
        """One run a system and stage, chosen as `latest_of_each_system` does; by system name."""
        of_stage = Run.objects.filter(system=OuterRef("system"), stage=OuterRef("stage"))
        newest = Subquery(of_stage.order_by("-date", "-id").values("pk")[:1])
        return self.filter(pk=newest).select_related("system").order_by("system__name", "stage")


class Run(models.Model):
    """What one system returned for all questions once. Its rankings never change."""

    class Stage(models.TextChoices):
        CANDIDATES = "candidates", "candidates"
        RERANKED = "reranked", "reranked"
        CONTEXT = "context", "context"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="runs")
    system = models.ForeignKey(System, models.CASCADE, related_name="runs")
    name = models.CharField(max_length=200, db_collation="C")
    stage = models.CharField(max_length=10, choices=Stage, default=Stage.RERANKED)
    k = models.PositiveIntegerField(null=True, blank=True, help_text="How many chunks were asked for.")
    version = models.CharField(max_length=200, blank=True, help_text="The system's version.")
    date = models.DateField(help_text="The day the system ran.")
    config = models.JSONField(default=dict, blank=True, help_text="Model, index, chunker, corpus snapshot, …")
    provenance = models.JSONField(
        default=dict, blank=True, help_text="Where the run came from: file, tag, options of its import."
    )
    warnings = models.JSONField(default=list, blank=True, help_text="What its import warned of.")
    content_hash = models.CharField(max_length=64, help_text="SHA-256 over the ordered rankings.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-date", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="run_name_twice_in_evalset"),
            models.CheckConstraint(condition=~Q(name=""), name="run_without_name"),
            models.CheckConstraint(
                condition=Q(stage__in=["candidates", "reranked", "context"]), name="run_stage_unknown"
            ),
            models.CheckConstraint(condition=Q(k__isnull=True) | Q(k__gte=1), name="run_k_below_one"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("labels:run", args=[self.evalset.slug, self.pk])


class Ranking(models.Model):
    """One run's ordered chunks for one question. No row: the question is missing. An empty array: nothing came back."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="rankings")
    question = models.ForeignKey(Question, models.CASCADE, related_name="rankings")
    chunk_ids = ArrayField(models.IntegerField(), help_text="Chunk.id by position, best first.")
    scores = ArrayField(models.FloatField(), null=True, blank=True, help_text="By position, where given.")
    abstained = models.BooleanField(null=True, help_text="Whether the whole system declined to answer.")
    passages = models.JSONField(
        null=True, blank=True, help_text="Stage context: [{text, truncated}] by position, where given."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "question"], name="ranking_twice_for_question"),
            models.CheckConstraint(
                condition=Q(scores__isnull=True) | Q(scores__len=F("chunk_ids__len")) | Q(chunk_ids=[]),
                name="ranking_scores_of_other_length",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.question_id}"


class Pool(models.Model):
    """The union of several runs' rankings to depth k, per question, with provenance."""

    class Strategy(models.TextChoices):
        DEPTH = "depth", "depth: everything in the union of the top k"
        BUDGET = "budget", "budget: at most n pairs a question, in fused order"
        STRATIFIED = "stratified", "stratified: a sample, with a rate for each stratum of ranks"
        MOVE_TO_FRONT = "move-to-front", "move-to-front: stay with a run while it finds relevant chunks"
        BAYESIAN_BANDIT = "bayesian-bandit", "Bayesian bandit: a run as often as it may be the best"
        MAX_MEAN = "max-mean", "MaxMean: the run with the best share of relevant chunks so far"
        MAX_MEAN_NS = (
            "max-mean-ns",
            "MaxMean, non-stationary: the run with the best share of relevant chunks of late",
        )

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="pools")
    name = models.CharField(max_length=200)
    strategy = models.CharField(max_length=30, choices=Strategy)
    parameters = models.JSONField(default=dict, blank=True, help_text="The strategy's own: budget, fusion, …")
    seed = models.BigIntegerField(
        help_text="Of the order in which assessors see the pairs, and of what is drawn."
    )
    question_filter = models.JSONField(default=dict, blank=True, help_text="slice, split or list of IDs.")
    extends = models.ForeignKey(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="extensions",
        help_text="The pool whose pairs this one leaves out.",
    )
    specification_hash = models.CharField(
        max_length=64,
        help_text="SHA-256 over all that determines the pool, so that building twice is one pool.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="pool_name_twice_in_evalset"),
            models.UniqueConstraint(fields=["evalset", "specification_hash"], name="pool_built_twice"),
            models.CheckConstraint(condition=~Q(name=""), name="pool_without_name"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("judging:pool", args=[self.evalset.slug, self.pk])

    @property
    def is_adaptive(self) -> bool:
        """Whether the order of its pairs follows the grades while people judge."""
        return self.strategy in ADAPTIVE


class PoolRun(models.Model):
    """A run that a pool is made of, cut at depth k."""

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="pool_runs")
    run = models.ForeignKey(Run, models.PROTECT, related_name="pool_runs")
    position = models.PositiveSmallIntegerField(help_text="From 0; what PoolQuestion.returned_by refers to.")
    k = models.PositiveIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["pool", "run"], name="pool_run_twice"),
            models.UniqueConstraint(fields=["pool", "position"], name="pool_run_position_twice"),
            models.CheckConstraint(condition=Q(k__gte=1), name="pool_run_k_below_one"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} to {self.k}"


class PoolQuestion(models.Model):
    """A pool's pairs for one question, in the order in which an assessor meets them, and who returned each.

    The returns of the i-th chunk are the next `return_counts[i]` entries of `returned_by` (PoolRun.position)
    and `returned_rank` (from 1) after those of the chunks before it.
    """

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="pool_questions")
    question = models.ForeignKey(Question, models.PROTECT, related_name="pool_questions")
    chunk_ids = ArrayField(models.IntegerField())
    return_counts = ArrayField(models.SmallIntegerField())
    returned_by = ArrayField(models.SmallIntegerField())
    returned_rank = ArrayField(models.IntegerField())
    inclusion = ArrayField(
        models.FloatField(),
        null=True,
        blank=True,
        help_text="By pair, the probability with which it was sampled; null where everything was taken.",
    )
    unsampled_ids = ArrayField(
        models.IntegerField(),
        default=list,
        blank=True,
        help_text="Pooled but not sampled: unjudged on purpose.",
    )
    unsampled_inclusion = ArrayField(
        models.FloatField(),
        default=list,
        blank=True,
        help_text="By unsampled pair, the probability with which it would have been sampled.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "question"], name="pool_question_twice"),
            models.CheckConstraint(
                condition=Q(return_counts__len=F("chunk_ids__len")) | Q(chunk_ids=[]),
                name="pool_question_counts_of_other_length",
            ),
            models.CheckConstraint(
                condition=Q(returned_rank__len=F("returned_by__len")) | Q(returned_by=[]),
                name="pool_question_ranks_of_other_length",
            ),
            models.CheckConstraint(
                condition=Q(inclusion__isnull=True) | Q(inclusion__len=F("chunk_ids__len")),
                name="pool_question_inclusion_of_other_length",
            ),
            models.CheckConstraint(
                condition=Q(unsampled_inclusion__len=F("unsampled_ids__len")),
                name="pool_question_unsampled_of_other_length",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.question_id}"


class Reordering(models.Model):
    """The order that a strategy gave to what was left of a question, and all that it knew: enough to replay it.

    With the pool's strategy, seed and runs, which never change, the grades and the chunks give the same order again.
    """

    pool = models.ForeignKey(Pool, models.CASCADE, related_name="reorderings")
    question = models.ForeignKey(Question, models.PROTECT, related_name="reorderings")
    graded_ids = ArrayField(
        models.IntegerField(), help_text="Chunk.id of each grade, in the order of grading."
    )
    relevant_ids = ArrayField(models.IntegerField(), help_text="Those of them that were found relevant.")
    chunk_ids = ArrayField(models.IntegerField(), help_text="What was left, the next one first.")
    made_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["pool", "question", "-id"], name="reordering_latest_first")]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.question_id} after {len(self.graded_ids)} grades"

    @property
    def grades(self) -> list[Graded]:
        """What the strategy knew, in the order in which it came."""
        relevant = set(self.relevant_ids)
        return [Graded(chunk, chunk in relevant) for chunk in self.graded_ids]

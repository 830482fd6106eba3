"""Stored scores and the log of comparisons. Both name all that they depend on, so that asking again finds them."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import JSONObject, Now
from django.urls import reverse

from evalsets.models import EvalSet, Question, User
from labels.models import Release
from pooling.models import Run

_DIGEST = r"^[0-9a-f]{64}$"


class Policy(models.TextChoices):
    """What is done about unjudged chunks."""

    RAW = "raw", "raw: an unjudged chunk counts as not relevant"
    JUDGED_ONLY = "judged-only", "judged-only: unjudged chunks are removed first"
    STRICT = "strict", "strict: an unjudged chunk is an error"


class Unit(models.TextChoices):
    """What is counted once."""

    CHUNK = "chunk", "chunk (standing for its class)"
    DOCUMENT = "document", "parent document: measures the discovery of sources"


class ScoreResultQuerySet(models.QuerySet["ScoreResult"]):
    def values_for(self, question: str, measure: str) -> dict[int, tuple[float, float]]:
        """The measure's value for the question with this ID and its unjudged rate, by ScoreResult.id, where scored.

        Postgres finds it in the document, which holds all questions and is slow to read whole.
        """
        row = Func(
            "document",
            Value("$.questions[*] ? (@.id == $id)"),
            JSONObject(id=Value(question)),
            function="jsonb_path_query_first",
            output_field=models.JSONField(),
        )
        found = self.order_by().values_list("pk", row)
        return {
            pk: (row["measures"][measure], rate_beside(row, measure)) for pk, row in found if row is not None
        }

    def without_questions(self) -> ScoreResultQuerySet:
        """With the averages and their unjudged rates as `averages`, and without the document until it is asked for."""
        averages = JSONObject(measures="document__measures", unjudged="document__unjudged")
        return self.defer("document").annotate(averages=averages)


class ScoreResult(models.Model):
    """One run scored on one release under one set of rules."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="score_results")
    release = models.ForeignKey(Release, models.PROTECT, related_name="score_results")
    run = models.ForeignKey(Run, models.CASCADE, related_name="score_results")
    release_hash = models.CharField(max_length=64)
    run_hash = models.CharField(max_length=64)
    measures = ArrayField(models.TextField(), help_text="In the order in which they are shown.")
    policy = models.CharField(max_length=11, choices=Policy)
    unit = models.CharField(max_length=8, choices=Unit, default=Unit.CHUNK)
    threshold = models.PositiveSmallIntegerField()
    gain = models.CharField(max_length=12, choices=EvalSet.Gain)
    split = models.CharField(max_length=10, blank=True, choices=Question.Split)
    count_inadmissible = models.BooleanField(help_text="Whether inadmissible chunks count by their label.")
    code_version = models.PositiveSmallIntegerField()
    key = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 over all that the numbers depend on."
    )
    document = models.JSONField(help_text="The numbers, as `score --json` gives them for a run.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")

    objects = ScoreResultQuerySet.as_manager()

    averages: dict[str, Any]  # of those that `without_questions` read

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["evalset", "release", "run"], name="score_result_by_run")]
        constraints = [
            models.CheckConstraint(condition=Q(key__regex=_DIGEST), name="score_result_key_malformed"),
            models.CheckConstraint(
                condition=Q(policy__in=["raw", "judged-only", "strict"]), name="score_result_policy_unknown"
            ),
            models.CheckConstraint(
                condition=Q(unit__in=["chunk", "document"]), name="score_result_unit_unknown"
            ),
            models.CheckConstraint(condition=Q(threshold__gte=1), name="score_result_threshold_below_one"),
        ]

    def __str__(self) -> str:
        return f"{self.run} on {self.release}"

    def get_absolute_url(self) -> str:
        return reverse("scoring:score", args=[self.evalset.slug, self.pk])

    @property
    def pairs(self) -> list[tuple[str, float | None, float]]:
        """Each measure with its average and, never without it, its unjudged rate."""
        means, rates = self.document["measures"], self.document["unjudged"]
        return [(name, means[name], rates[depth_of(name)]) for name in self.measures]


class Comparison(models.Model):
    """A comparison of two runs by one measure; every one made on a release is kept, since each is a chance to err."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="comparisons")
    release = models.ForeignKey(Release, models.PROTECT, related_name="comparisons")
    run_a = models.ForeignKey(Run, models.CASCADE, related_name="+")
    run_b = models.ForeignKey(Run, models.CASCADE, related_name="+")
    measure = models.TextField()
    split = models.CharField(max_length=10, blank=True, choices=Question.Split)
    uses_holdout = models.BooleanField(help_text="Whether a question of the holdout split was scored.")
    seed = models.BigIntegerField()
    key = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 over all that the numbers depend on."
    )
    raw_a = models.ForeignKey(ScoreResult, models.CASCADE, related_name="+")
    raw_b = models.ForeignKey(ScoreResult, models.CASCADE, related_name="+")
    document = models.JSONField(help_text="The numbers, as `compare --json` gives them.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["evalset", "release", "-created_at"], name="comparison_latest_first")]
        constraints = [
            models.CheckConstraint(condition=~Q(run_a=F("run_b")), name="comparison_of_a_run_with_itself"),
            models.CheckConstraint(condition=Q(key__regex=_DIGEST), name="comparison_key_malformed"),
        ]

    def __str__(self) -> str:
        return f"{self.run_a} and {self.run_b} by {self.measure}"

    def get_absolute_url(self) -> str:
        return reverse("scoring:comparison", args=[self.evalset.slug, self.pk])

    @property
    def reading(self) -> str:
        return str(self.document["reading"])


def depth_of(measure: str) -> str:
    """The depth at which a measure's unjudged rate is told: "5" for Recall@5, "all" for AP."""
    return measure.rpartition("@")[2] if "@" in measure else "all"


def rate_beside(document: dict[str, Any], measure: str) -> float:
    """The unjudged rate that belongs beside a measure in a stored document (of a run or a question)."""
    return float(document["unjudged"][depth_of(measure)])


class Analysis(models.Model):
    """A longer look at a release that is kept: whether its pool is reusable, or where a system loses evidence."""

    class Kind(models.TextChoices):
        REUSABILITY = "reusability", "reusability of the pool"
        STAGES = "stages", "losses between stages"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="analyses")
    release = models.ForeignKey(Release, models.PROTECT, related_name="analyses")
    kind = models.CharField(max_length=11, choices=Kind)
    key = models.CharField(
        max_length=64, unique=True, help_text="SHA-256 over all that the numbers depend on."
    )
    title = models.TextField(help_text="What was looked at, for people.")
    document = models.JSONField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["evalset", "kind", "-created_at"], name="analysis_latest_first")]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["reusability", "stages"]), name="analysis_kind_unknown"
            ),
            models.CheckConstraint(condition=Q(key__regex=_DIGEST), name="analysis_key_malformed"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse(f"scoring:{self.kind}", args=[self.evalset.slug]) + f"?analysis={self.pk}"

"""Long work as rows: a lost broker or a killed worker loses nothing that a person cannot see and retry."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from evalsets.models.evalset import EvalSet
from evalsets.models.tokens import ApiToken
from evalsets.models.users import User


class Upload(models.Model):
    """A file that somebody sent, kept under a name of our own making."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="uploads")
    file = models.FileField(upload_to="uploads/%Y/%m", max_length=200)
    original_name = models.CharField(max_length=255, help_text="A label only; never used as a path.")
    size = models.BigIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return self.original_name


class JobQuerySet(models.QuerySet["Job"]):
    def in_state(self, state: str) -> JobQuerySet:
        """Those whose `Job.state` is this one."""
        unfinished, finished = self.filter(finished_at=None), self.exclude(finished_at=None)
        started = unfinished.exclude(started_at=None)
        heard_of_after = timezone.now() - Job.HEARTBEAT_TIMEOUT
        cancelled = models.Q(result__isnull=True, cancel_requested_at__isnull=False)
        return {
            Job.State.WAITING: unfinished.filter(started_at=None),
            Job.State.RUNNING: started.filter(heartbeat_at__gte=heard_of_after),
            Job.State.LOST: started.filter(heartbeat_at__lt=heard_of_after),
            Job.State.DONE: finished.filter(error="").exclude(cancelled),
            Job.State.FAILED: finished.exclude(error=""),
            Job.State.CANCELLED: finished.filter(cancelled, error=""),
        }[Job.State(state)]


class Job(models.Model):
    """One long piece of work. Its state follows from its times; a worker that works renews `heartbeat_at`."""

    # Without a sign of life for this long, a started job counts as lost.
    HEARTBEAT_TIMEOUT = timedelta(seconds=60)
    # Waiting for longer than this, a person is told that no worker answers.
    PICK_UP_TIMEOUT = timedelta(seconds=10)

    class State(models.TextChoices):
        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        LOST = "lost", "lost its worker"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="jobs")
    task = models.CharField(max_length=120, help_text="The Celery task that does it.")
    title = models.CharField(max_length=300, help_text="What it does, for people.")
    parameters = models.JSONField(default=dict, blank=True)
    upload = models.ForeignKey(Upload, models.PROTECT, null=True, blank=True, related_name="jobs")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    token = models.ForeignKey(
        ApiToken,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="With which it was begun in that person's name, where it was not the person.",
    )
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0, help_text="How often a worker has started it.")
    phase = models.CharField(max_length=200, blank=True, help_text="What it is doing now.")
    done = models.BigIntegerField(default=0, help_text="Units of work done in this phase.")
    total = models.BigIntegerField(null=True, blank=True, help_text="Units in this phase, where known.")
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True, help_text="Why it failed, for people.")
    result_url = models.CharField(max_length=300, blank=True, help_text="Where its outcome can be seen.")

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["evalset", "-created_at"], name="job_latest_first"),
            # Few rows: the ones that may have lost their worker.
            models.Index(
                fields=["created_at"], condition=models.Q(finished_at__isnull=True), name="job_unfinished"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(started_at__isnull=True) | models.Q(heartbeat_at__isnull=False),
                name="job_started_without_heartbeat",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("evalsets:job", args=[self.evalset.slug, self.pk])

    @property
    def state(self) -> Job.State:
        """Where the job stands now; `lost` is a started job whose worker has been silent too long."""
        if self.finished_at:
            if self.error:
                return self.State.FAILED
            return (
                self.State.CANCELLED if self.result is None and self.cancel_requested_at else self.State.DONE
            )
        if not self.started_at or not self.heartbeat_at:
            return self.State.WAITING
        silent = timezone.now() - self.heartbeat_at > self.HEARTBEAT_TIMEOUT
        return self.State.LOST if silent else self.State.RUNNING

    @property
    def actor(self) -> str:
        """Who began it, for people."""
        return self.token.actor if self.token else str(self.created_by)

    @property
    def no_worker_answers(self) -> bool:
        return self.state == self.State.WAITING and timezone.now() - self.created_at > self.PICK_UP_TIMEOUT

    @property
    def can_retry(self) -> bool:
        return (
            self.state in (self.State.LOST, self.State.FAILED, self.State.CANCELLED) or self.no_worker_answers
        )

    @property
    def percent(self) -> int | None:
        """Progress in whole per cent, or None where the amount of work is not known."""
        return min(100, self.done * 100 // self.total) if self.total else None

    @property
    def rate(self) -> float | None:
        """Units of work a second in this attempt, or None before there is anything to measure."""
        if not self.started_at or not self.heartbeat_at or not self.done:
            return None
        seconds = (self.heartbeat_at - self.started_at).total_seconds()
        return self.done / seconds if seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        rate = self.rate
        return (self.total - self.done) / rate if rate and self.total else None

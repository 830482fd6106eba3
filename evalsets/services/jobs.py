"""Starting, running, cancelling and retrying jobs.

The work itself runs in one transaction of its own, so its progress is written over a second connection: otherwise
nobody could see it before the end. A job whose row cannot be reached any more counts as cancelled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from celery import current_app
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from kombu.exceptions import OperationalError

from evalsets.errors import BadInput, Cancelled, Refused
from evalsets.models import EvalSet, Job, Upload, User
from evalsets.progress import Progress
from evalsets.services.events import record_event

logger = logging.getLogger(__name__)

# Seconds between two writes of a running job's progress.
WRITE_EVERY = 0.5
# Seconds between two signs of life, also while the work itself is inside one long statement.
HEARTBEAT_EVERY = 5.0


@dataclass(frozen=True)
class JobOutcome:
    """What a job came to: a JSON-ready result, and the page on which it can be seen."""

    result: dict[str, Any] = field(default_factory=dict)
    url: str = ""


Work = Callable[[Job, Progress], JobOutcome]


def start_job(
    *,
    evalset: EvalSet,
    task: str,
    title: str,
    by: User,
    parameters: dict[str, Any] | None = None,
    upload: Upload | None = None,
) -> Job:
    """Write the job's row and hand it to a worker once the transaction is committed.

    `task` is the name of a Celery task that takes the job's ID. A broker that is away loses nothing: the row
    stays `waiting`, its page says that no worker answers, and `retry_job` hands it over again.
    """
    job = Job.objects.create(
        evalset=evalset,
        task=task,
        title=title,
        created_by=by,
        token=by.acting_token,
        parameters=parameters or {},
        upload=upload,
    )
    transaction.on_commit(lambda: _enqueue(job))
    return job


def _enqueue(job: Job) -> None:
    try:
        current_app.send_task(job.task, args=[job.pk])
    except OperationalError as error:
        logger.error("The broker cannot be reached (%s); job %s stays waiting", error, job.pk)


@transaction.atomic
def request_cancel(*, job: Job, by: User | None) -> None:
    """Ask a job to stop. One that no worker holds ends at once; a running one ends at its next step."""
    now = timezone.now()
    changed = Job.objects.filter(pk=job.pk, finished_at__isnull=True).update(cancel_requested_at=now)
    if not changed:
        raise Refused("The job has ended already.")
    if job.state in (Job.State.WAITING, Job.State.LOST):
        Job.objects.filter(pk=job.pk, finished_at__isnull=True).update(finished_at=now)
    _record(job, by, "job-cancelled", f"Asked the job “{job.title}” to stop.")


@transaction.atomic
def retry_job(*, job: Job, by: User | None) -> None:
    """Hand a lost, failed, cancelled or never started job to a worker again.

    Work is all or nothing, so nothing is done twice. Raises Refused for a job that runs or is done.
    """
    if not job.can_retry:
        raise Refused(f"The job is {job.state.label}; only one that ended badly or was lost is retried.")
    Job.objects.filter(pk=job.pk).update(
        started_at=None,
        heartbeat_at=None,
        finished_at=None,
        cancel_requested_at=None,
        phase="",
        done=0,
        total=None,
        result=None,
        error="",
        created_at=timezone.now(),
    )
    _record(job, by, "job-retried", f"Had the job “{job.title}” tried again.")
    transaction.on_commit(lambda: _enqueue(job))


def _record(job: Job, by: User | None, verb: str, summary: str) -> None:
    record_event(evalset=job.evalset, by=by, verb=verb, summary=summary, details={"job": job.pk})


def run_job(job_id: int, work: Work) -> None:
    """Do a job's work in the worker: claim the row, report progress, write down how it ended.

    A job that another worker holds, or that has ended, is left alone: a message delivered twice does no harm.
    """
    now = timezone.now()
    claimed = Job.objects.filter(pk=job_id, started_at__isnull=True, finished_at__isnull=True).update(
        started_at=now, heartbeat_at=now, attempt=_next_attempt(job_id)
    )
    if not claimed:
        logger.info("Job %s is not waiting; left alone", job_id)
        return
    job = Job.objects.select_related("evalset", "created_by", "token", "upload").get(pk=job_id)
    job.created_by.acting_token = job.token
    try:
        with _watched(job) as progress, transaction.atomic():
            outcome = work(job, progress)
    except Cancelled:
        _finish(job, cancel_requested_at=timezone.now())
    except (BadInput, Refused) as refusal:
        _finish(job, error=str(refusal), result=getattr(refusal, "report", None))
    except Exception:
        logger.exception("Job %s failed", job_id)
        _finish(job, error="It failed through a fault of ours; the log has the details. Nothing was written.")
        raise
    else:
        _finish(job, result=outcome.result, result_url=outcome.url)


def _next_attempt(job_id: int) -> int:
    return Job.objects.values_list("attempt", flat=True).get(pk=job_id) + 1


def _finish(job: Job, **changes: Any) -> None:
    Job.objects.filter(pk=job.pk, attempt=job.attempt, finished_at__isnull=True).update(
        finished_at=timezone.now(), **changes
    )


class _Reporter:
    """Writes a running job's progress over a connection of its own, at most every `WRITE_EVERY` seconds."""

    def __init__(self, job: Job, connection: BaseDatabaseWrapper) -> None:
        self.job = job
        self.connection = connection
        self.lock = threading.Lock()
        self.written_at = 0.0
        self.latest: tuple[int, int | None, str] = (0, None, "")
        self.cancelled = False

    def __call__(self, done: int, total: int | None = None, phase: str = "") -> None:
        previous_phase = self.latest[2]
        self.latest = (done, total, phase or previous_phase)
        if time.monotonic() - self.written_at >= WRITE_EVERY or (phase and phase != previous_phase):
            self.write()
        if self.cancelled:
            raise Cancelled

    def write(self) -> None:
        with self.lock, self.connection.cursor() as cursor:
            self.written_at = time.monotonic()
            done, total, phase = self.latest
            cursor.execute(
                "UPDATE evalsets_job SET done = %s, total = %s, phase = %s, heartbeat_at = now() "
                "WHERE id = %s AND attempt = %s RETURNING cancel_requested_at IS NOT NULL",
                [done, total, phase, self.job.pk, self.job.attempt],
            )
            row = cursor.fetchone()
            self.cancelled = row is None or bool(row[0])


@contextmanager
def _watched(job: Job) -> Iterator[Progress]:
    connection = connections.create_connection("default")
    connection.inc_thread_sharing()
    reporter = _Reporter(job, connection)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT_EVERY):
            try:
                reporter.write()
            except Exception:
                logger.exception("The progress of job %s cannot be written", job.pk)

    heart = threading.Thread(target=beat, name=f"heartbeat-of-job-{job.pk}", daemon=True)
    heart.start()
    try:
        yield reporter
    finally:
        ended.set()
        heart.join()
        connection.close()

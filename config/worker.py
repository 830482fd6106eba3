"""What a Celery worker says of itself: signs of life, a line a job, its figures."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import redis
from celery import signals
from django.conf import settings
from prometheus_client import CollectorRegistry, start_http_server, values
from prometheus_client.multiprocess import MultiProcessCollector

from config import figures, stores
from config.logs import current_job
from config.metrics import count_job
from evalsets.models import Job

logger = logging.getLogger("fairpool.job")

_link: redis.Redis | None = None


@signals.worker_init.connect
def share_figures(**_: Any) -> None:
    """Let the children of this worker count in one folder, and serve the sum where WORKER_METRICS_PORT says."""
    if not settings.WORKER_METRICS_PORT:
        return
    folder = figures.make_folder()
    signals.worker_shutdown.connect(lambda **_: figures.remove_folder(folder), weak=False)
    # Django's checks at a worker's start have imported it already; what is counted from now on is to go to the folder.
    values.ValueClass = values.get_value_class()
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    start_http_server(settings.WORKER_METRICS_PORT, settings.WORKER_METRICS_HOST, registry)


@signals.heartbeat_sent.connect
def sign_of_life(sender: Any, **_: Any) -> None:
    global _link
    with contextlib.suppress(redis.RedisError):  # Celery itself says that the broker is away
        _link = _link or stores.broker_client()
        stores.note_worker(_link, sender.eventer.hostname)


@signals.task_prerun.connect
def name_job(task: Any, args: Any, **_: Any) -> None:
    """Let every line of the job say which it is. A task of one number is a job's; others have no row."""
    about: dict[str, Any] = {"task": task.name}
    if len(args) == 1:
        found = Job.objects.filter(pk=args[0]).values_list("evalset__slug", "created_by_id").first()
        if found:
            about |= {"job": args[0], "evalset": found[0], "user": found[1]}
    current_job.set(about)


@signals.task_postrun.connect
def close_job(task: Any, args: Any, **_: Any) -> None:
    try:
        job = Job.objects.filter(pk=args[0]).first() if "job" in current_job.get() else None
        if job and job.started_at and job.finished_at:
            seconds = (job.finished_at - job.started_at).total_seconds()
            state = str(job.state)
            if settings.WORKER_METRICS_PORT:
                count_job(task.name, state, seconds)
            outcome = {"state": state, "attempt": job.attempt, "ms": round(seconds * 1000, 1)}
            logger.info("Job %s: %s in %.0f ms", job.pk, state, seconds * 1000, extra={"facts": outcome})
    finally:
        current_job.set({})

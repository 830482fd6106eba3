"""Figures for Prometheus. Docs: docs/operations.md, "Metrics".

What happens is counted where it happens, in files that the processes of one gunicorn or one worker share
(config/figures.py). What stands in the database and the broker is looked up when somebody asks, by reads that stay
small however much is stored.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator

import psycopg
from django.db import DatabaseError, connection
from django.utils import timezone
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from config import figures, stores
from evalsets.models import Job
from judging.models import Task

logger = logging.getLogger(__name__)

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

_requests = Counter("fairpool_requests", "Requests answered.", ["method", "route", "status"])
_request_seconds = Histogram(
    "fairpool_request_seconds", "From the request's arrival to its answer.", ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
_job_seconds = Histogram(
    "fairpool_job_seconds", "From a job's start to its end, by how it ended.", ["task", "state"],
    buckets=(0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200),
)  # fmt: skip
_pool_connections = Gauge(
    "fairpool_database_connections", "Connections of the processes' pools.", ["state"], multiprocess_mode="livesum",
)  # fmt: skip
_pool_waiting = Gauge(
    "fairpool_database_waiting",
    "Requests that wait for a connection of their pool.",
    multiprocess_mode="livesum",
)


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    _requests.labels(method if method in METHODS else "other", route, status).inc()
    _request_seconds.labels(route).observe(seconds)
    pool = getattr(connection, "pool", None)
    if pool is not None:
        stats = pool.get_stats()
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        _pool_connections.labels("idle").set(idle)
        _pool_connections.labels("busy").set(size - idle)
        _pool_waiting.set(stats.get("requests_waiting", 0))


def count_job(task: str, state: str, seconds: float) -> None:
    _job_seconds.labels(task, state).observe(seconds)


class _Stores(Collector):
    """What Postgres and the broker hold just now. One that is away is said to be, and its figures are missing."""

    def describe(self) -> Iterable[Metric]:
        return []  # so that registering asks nobody

    def collect(self) -> Iterator[Metric]:
        for name, look, fault in (
            ("database", _in_database, (psycopg.Error, DatabaseError)),
            ("broker", _in_broker, RedisError),
        ):
            try:
                found, up = list(look()), 1
            except fault:
                logger.warning("The %s does not answer", name)
                found, up = [], 0
            yield GaugeMetricFamily(f"fairpool_{name}_up", f"Whether the {name} answers.", value=up)
            yield from found


def _in_database() -> Iterator[Metric]:
    stores.applied_migrations()  # at once an error where Postgres is away
    jobs = GaugeMetricFamily("fairpool_jobs_unfinished", "Jobs that have not ended.", labels=["state"])
    # The partial index holds the unfinished ones alone.
    states = [
        job.state for job in Job.objects.filter(finished_at__isnull=True).order_by("created_at")[:10_000]
    ]
    for state in (Job.State.WAITING, Job.State.RUNNING, Job.State.LOST):
        jobs.add_metric([state], states.count(state))
    yield jobs
    held = Task.objects.filter(leased_until__gt=timezone.now()).count()
    yield GaugeMetricFamily("fairpool_claims_held", "Pairs that an assessor holds now.", value=held)
    with connection.cursor() as cursor:
        cursor.execute("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'judging_judgment'")
        [saved] = cursor.fetchone() or [0]
    yield CounterMetricFamily(
        "fairpool_judgments_saved", "Judgments of all ways in, as Postgres counts.", value=saved
    )


def _in_broker() -> Iterator[Metric]:
    with stores.broker_client() as link:
        waiting, workers = stores.queue_length(link), stores.workers_alive(link)
    yield GaugeMetricFamily("fairpool_queue_length", "Messages that no worker has taken yet.", value=waiting)
    yield GaugeMetricFamily("fairpool_workers_alive", "Workers with a recent sign of life.", value=workers)


def page() -> bytes:
    """All figures of this server's processes, of the database and the broker, in Prometheus' text format."""
    registry: CollectorRegistry = REGISTRY
    if figures.VARIABLE in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
    stored = CollectorRegistry()
    stored.register(_Stores())
    return generate_latest(registry) + generate_latest(stored)

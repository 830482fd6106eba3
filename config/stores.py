"""Questions to Postgres and the broker, answered at once: are they there, how much waits, which workers live."""

from __future__ import annotations

import time

import psycopg
import redis
from django.conf import settings
from django.db import connection

SECONDS = 1.0  # the longest that anybody waits for the broker here
DATABASE_SECONDS = 2  # the same for Postgres; libpq takes nothing smaller
QUEUE = "celery"
# Workers by the second of their last sign of life, which they give every two seconds.
WORKERS = "fairpool:workers"
ALIVE_SECONDS = 15


def reach_database() -> None:
    """Raises psycopg.OperationalError when Postgres is away. The pool would wait longer, and may be busy."""
    parameters = {**connection.get_connection_params(), "connect_timeout": DATABASE_SECONDS}
    with psycopg.connect(**parameters) as link:
        link.execute("SELECT 1")


def broker_client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS)


def note_worker(link: redis.Redis, name: str) -> None:
    """Write down that a worker lives, and forget those that have been silent for a day."""
    now = time.time()
    with link.pipeline() as pipe:
        pipe.zadd(WORKERS, {name: now})
        pipe.zremrangebyscore(WORKERS, 0, now - 24 * 3600)
        pipe.execute()


def workers_alive(link: redis.Redis) -> int:
    return int(link.zcount(WORKERS, time.time() - ALIVE_SECONDS, "+inf"))


def queue_length(link: redis.Redis) -> int:
    return int(link.llen(QUEUE))

"""Questions to Postgres and the broker, answered at once: are they there, how much waits, which workers live."""

from __future__ import annotations

import pkgutil
import time
from functools import cache
from importlib import import_module

import psycopg
import redis
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils.module_loading import module_has_submodule

SECONDS = 1.0  # the longest that anybody waits for the broker here
DATABASE_SECONDS = 2  # the same for Postgres; libpq takes nothing smaller
QUEUE = "celery"
# Workers by the second of their last sign of life, which they give every two seconds.
WORKERS = "fairpool:workers"
ALIVE_SECONDS = 15


def applied_migrations() -> set[tuple[str, str]]:
    """The migrations that Postgres has, by app and name. Raises psycopg.OperationalError when it is away.

    Over a connection of its own: the pool would wait longer, and may be busy.
    """
    parameters = {**connection.get_connection_params(), "connect_timeout": DATABASE_SECONDS}
    with psycopg.connect(**parameters) as link:
        try:
            return set(link.execute("SELECT app, name FROM django_migrations").fetchall())
        except psycopg.errors.UndefinedTable:
            return set()


@cache
def shipped_migrations() -> frozenset[tuple[str, str]]:
    """The migrations of this version, by app and name, as their files are called: none is loaded."""
    found = set()
    for app in apps.get_app_configs():
        name, _ = MigrationLoader.migrations_module(app.label)
        if name and module_has_submodule(app.module, name.rpartition(".")[2]):
            files = pkgutil.iter_modules(import_module(name).__path__)
            found |= {(app.label, file.name) for file in files if file.name[0] not in "_~"}
    return frozenset(found)


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

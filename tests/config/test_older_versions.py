"""Data of every older version comes through the migrations: nothing lost, hashes and numbers unchanged, pages answer.

`versions/NAME.sql` holds what that version had written, in the tables it had: its first lines name the last migration
of each app, the rest are INSERTs of `pg_dump --data-only --inserts`. `versions/NAME.json` is what it said of them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from tests.servers import server_environment

VERSIONS = Path(__file__).parent / "versions"
LAST_MIGRATION = re.compile(r"^-- (\w+) (\d{4}_\w+)$", re.M)


@pytest.fixture
def older(transactional_db) -> Iterator[str]:
    """The alias of an empty database beside the tests' own."""
    name = f"{connection.settings_dict['NAME']}_older"
    with psycopg.connect(**{**connection.get_connection_params(), "autocommit": True}) as link:
        link.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        link.execute(f'CREATE DATABASE "{name}"')
        connections.databases["older"] = {**connection.settings_dict, "NAME": name, "OPTIONS": {}}
        yield "older"
        connections["older"].close()
        del connections["older"], connections.databases["older"]
        link.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def counts(alias: str) -> dict[str, int]:
    """Rows by table; without those that say which migrations there were."""
    with connections[alias].cursor() as cursor:
        tables = set(connections[alias].introspection.table_names(cursor)) - {"django_migrations"}
        found = {}
        for table in sorted(tables):
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            found[table] = cursor.fetchone()[0]
    return found


class Present:
    """The present version as a program on that database."""

    def __init__(self, broker: str, alias: str) -> None:
        self._environment = server_environment(broker)
        address = urllib.parse.urlsplit(self._environment["DATABASE_URL"])
        name = connections.databases[alias]["NAME"]
        self._environment["DATABASE_URL"] = address._replace(path=f"/{name}").geturl()

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1, 2), done.stderr[-3000:]  # `compare` says by it what it found
        return done.stdout


@pytest.mark.parametrize("version", sorted(path.stem for path in VERSIONS.glob("*.sql")))
def test_data_of_that_version_comes_through(version, older, broker, tmp_path) -> None:
    rows = (VERSIONS / f"{version}.sql").read_text()
    told: dict[str, Any] = json.loads((VERSIONS / f"{version}.json").read_text())
    MigrationExecutor(connections[older]).migrate(LAST_MIGRATION.findall(rows))
    with connections[older].cursor() as cursor:
        cursor.execute(rows)
        cursor.execute("SELECT set_config('search_path', 'public', false)")  # the dump clears it
    before = counts(older)

    call_command("migrate", database=older, verbosity=0)
    after = counts(older)
    made_by_django = {"auth_permission", "django_content_type"}
    kept = {table for table in before if table in after} - made_by_django
    assert {table: after[table] for table in kept} == {table: before[table] for table in kept}
    with connections[older].cursor() as cursor:
        cursor.execute("SELECT content_hash FROM labels_release ORDER BY number")
        assert [row[0] for row in cursor.fetchall()] == told["hashes"]

    present = Present(broker, older)
    for form, text in told["files"].items():
        file = tmp_path / form
        present.run(
            "manage.py", "export", "handbook", "--release", "1", "--format", form, "--output", str(file)
        )
        assert file.read_text() == text, form
    score = (
        "score",
        "handbook",
        "--release",
        "1",
        "--run",
        "bm25",
        "--run",
        "dense",
        "--measure",
        "Recall@2",
    )
    scored = json.loads(present.run("manage.py", *score, "--json"))
    assert {run["run"]: run["measures"] for run in scored["runs"]} == told["measures"]
    looked = json.loads(present.run("-m", "tests.config.crawl"))
    assert looked["wrong"] == {}
    assert looked["looked_at"] > 50

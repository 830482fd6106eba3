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
from django.db import connection
from psycopg.sql import SQL, Identifier

from tests.servers import server_environment

VERSIONS = Path(__file__).parent / "versions"
LAST_MIGRATION = re.compile(r"^-- (\w+) (\d{4}_\w+)$", re.M)
MIGRATE_TO = """
import json, sys
import django; django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
MigrationExecutor(connection).migrate([tuple(target) for target in json.loads(sys.argv[1])])
"""


class Database:
    """A database of its own, on which the present version runs as a program."""

    def __init__(self, link: psycopg.Connection, broker: str, name: str) -> None:
        self.link = link
        self._environment = server_environment(broker, DJANGO_SETTINGS_MODULE="config.settings")
        address = urllib.parse.urlsplit(self._environment["DATABASE_URL"])
        self._environment["DATABASE_URL"] = address._replace(path=f"/{name}").geturl()

    def run(self, *arguments: str) -> str:
        """Run Python with these arguments in the checkout; what it said."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def counts(self) -> dict[str, int]:
        """Rows by table, without what Django itself writes as it migrates."""
        tables = self.link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        own = sorted(
            {name for (name,) in tables} - {"django_migrations", "django_content_type", "auth_permission"}
        )
        count = SQL("SELECT count(*) FROM {}")
        return {name: self.link.execute(count.format(Identifier(name))).fetchall()[0][0] for name in own}


@pytest.fixture
def older(db, broker) -> Iterator[Database]:
    """An empty database beside the tests' own."""
    parameters = {**connection.get_connection_params(), "autocommit": True}
    name = f"{connection.settings_dict['NAME']}_older"
    with psycopg.connect(**parameters) as link:
        link.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        link.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        with psycopg.connect(**{**parameters, "dbname": name}) as own:
            yield Database(own, broker, name)
        link.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@pytest.mark.parametrize("version", sorted(path.stem for path in VERSIONS.glob("*.sql")))
def test_data_of_that_version_comes_through(version, older, tmp_path) -> None:
    rows = (VERSIONS / f"{version}.sql").read_text()
    told: dict[str, Any] = json.loads((VERSIONS / f"{version}.json").read_text())
    older.run("-c", MIGRATE_TO, json.dumps(LAST_MIGRATION.findall(rows)))
    older.link.execute(rows)
    older.link.execute("SET search_path TO public")  # the dump clears it
    before = older.counts()
    assert before["judging_judgment"] > 0

    older.run("manage.py", "migrate", "--verbosity=0")
    after = older.counts()
    assert {table: after[table] for table in before} == before
    hashes = older.link.execute("SELECT content_hash FROM labels_release ORDER BY number").fetchall()
    assert [one for (one,) in hashes] == told["hashes"]

    for form, text in told["files"].items():
        file = tmp_path / form
        older.run(
            "manage.py", "export", "handbook", "--release", "1", "--format", form, "--output", str(file)
        )
        assert file.read_text() == text, form
    runs = [word for run in told["measures"] for word in ("--run", run)]
    measures = next(iter(told["measures"].values()))
    score = ["score", "handbook", "--release", "1", *runs, "--measure", *measures, "--json"]
    scored = json.loads(older.run("manage.py", *score))
    assert {run["run"]: run["measures"] for run in scored["runs"]} == told["measures"]
    looked = json.loads(older.run("-m", "tests.config.crawl"))
    assert looked["wrong"] == {}
    assert looked["looked_at"] > 50

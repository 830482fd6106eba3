"""Migrating: one at a time."""

from __future__ import annotations

import io
import threading

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from config.management.commands.migrate import LOCK
from tests.waiting import wait_until


@pytest.mark.django_db(transaction=True)
def test_a_second_one_waits_for_the_first() -> None:
    out = io.StringIO()

    def migrate() -> None:
        call_command("migrate", stdout=out)
        connection.close()

    second = threading.Thread(target=migrate)
    with psycopg.connect(**{**connection.get_connection_params(), "autocommit": False}) as first:
        first.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        second.start()
        wait_until(lambda: "Another migrate works on this database" in out.getvalue())
        call_command("migrate", "--check", stdout=io.StringIO())  # who only asks need not wait
        assert "No migrations to apply" not in out.getvalue()
    second.join()
    assert "No migrations to apply" in out.getvalue()

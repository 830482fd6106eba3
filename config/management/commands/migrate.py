from __future__ import annotations

from typing import Any

import psycopg
from django.core.management.commands import migrate
from django.db import connections

# Any number that nothing else in the database takes for its own.
LOCK = 7_064_305


class Command(migrate.Command):
    """Django's migrate, one at a time: where several servers migrate as they start, the others wait for the first."""

    def handle(self, *args: Any, **options: Any) -> None:
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        # The lock is of a transaction, so that PgBouncer may stand between, on a connection of its own, since a
        # migration begins and ends transactions; it goes with the connection, however this process ends.
        parameters = {**connections[options["database"]].get_connection_params(), "autocommit": False}
        with psycopg.connect(**parameters) as link:
            if link.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK]).fetchone() == (False,):
                self.stdout.write("Another migrate works on this database; waiting for it to end.")
                link.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            super().handle(*args, **options)

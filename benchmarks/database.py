"""The database that a benchmark works in, beside the real one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.db import connection


@contextlib.contextmanager
def own_database(*, keep: bool = False) -> Iterator[None]:
    """An empty database until the end of the block; with `keep` it stays, and the next one that keeps it finds it."""
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=not keep, serialize=False, keepdb=keep)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0, keepdb=keep)

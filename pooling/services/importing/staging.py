"""Temporary tables that a file is copied into before set-based statements compare it with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from evalsets.models import EvalSet


def lock_evalset(evalset: EvalSet) -> None:
    """One import at a time in an eval set; judging goes on meanwhile. Ends with the transaction."""
    EvalSet.objects.select_for_update(no_key=True).get(pk=evalset.pk)


def make_table(name: str, columns: str) -> None:
    """A temporary table of this transaction, empty; one left by an earlier import of the transaction goes first."""
    execute(f"DROP TABLE IF EXISTS pg_temp.{name}")
    execute(f"CREATE TEMPORARY TABLE {name} ({columns}) ON COMMIT DROP")


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """COPY the rows into the table and give the planner its figures."""
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
    execute(f"ANALYZE {table}")


def copy_ids(table: str, column: str, ids: Sequence[str]) -> None:
    """COPY one column of IDs. Of the characters that COPY escapes, an ID can hold the backslash alone."""
    statement = f"COPY {table} ({column}) FROM STDIN"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for start in range(0, len(ids), 50_000):
            copy.write("\n".join(ids[start : start + 50_000]).replace("\\", "\\\\") + "\n")
    execute(f"ANALYZE {table}")


def execute(statement: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> int:
    """Run a statement; how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.rowcount


def fetch(statement: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def merge_indexes_seldom() -> None:
    """Until the transaction ends, the search index of texts merges what is new in large lots, which is twice as quick.

    Its list of new entries is read by every search until then, and takes room in the index.
    """
    execute("SET LOCAL gin_pending_list_limit = '64MB'")
    execute("SET LOCAL work_mem = '128MB'")


def refresh_statistics(*tables: str) -> None:
    """Give the planner the figures of tables that an import has filled, rather than when autovacuum comes by.

    Without them it takes the eval set for empty and walks through all of it for every row that is looked up.
    """
    for table in tables:
        execute(f"ANALYZE {table}")

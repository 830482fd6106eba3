"""Reading one state of the database over many statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from psycopg.pq import TransactionStatus


@contextmanager
def one_snapshot(*, lock_table: str) -> Iterator[None]:
    """A transaction in which every statement sees the same state (REPEATABLE READ), one holder of the table at a time.

    The lock comes before the first read, so whoever waited for it sees what the one before has written. Inside a
    transaction that has read already, its isolation stays what it is: Postgres allows no change any more. A job's
    transaction has read nothing when its work begins.
    """
    connection.ensure_connection()
    untouched = connection.connection.info.transaction_status == TransactionStatus.IDLE
    with transaction.atomic() if not connection.in_atomic_block else _nothing():
        with connection.cursor() as cursor:
            if untouched:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(f"LOCK TABLE {connection.ops.quote_name(lock_table)} IN SHARE ROW EXCLUSIVE MODE")
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield

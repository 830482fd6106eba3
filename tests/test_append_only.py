"""Rows that are never changed are not emptied either: TRUNCATE passes by what refuses UPDATE and DELETE."""

import pytest
from django.db import IntegrityError, connection, transaction

TABLES = [
    "evalsets_event",
    "judging_judgment",
    "judging_pairverdict",
    "judging_rubric",
    "labels_release",
    "labels_releaseclass",
    "labels_releasequestion",
]


@pytest.mark.django_db
def test_these_are_all_append_only_tables() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'append_only' ORDER BY 1"
        )
        assert [table for (table,) in cursor.fetchall()] == TABLES


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES)
def test_truncate_is_refused(table) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        connection.cursor().execute(f"TRUNCATE {table} CASCADE")

"""Writing the rows of a release by COPY: a million labels as arrays, without a conversion for each element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models

from labels.models import ReleaseQuestion


def copy_questions(rows: Iterable[ReleaseQuestion]) -> None:
    """Insert the unsaved rows."""
    fields = [field for field in ReleaseQuestion._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(connection.ops.quote_name(field.attname) for field in fields)
    table = connection.ops.quote_name(ReleaseQuestion._meta.db_table)
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row([_as_text(field, getattr(row, field.attname)) for field in fields])


def _as_text(field: models.Field[Any, Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(field, ArrayField):
        return text_array(value) if isinstance(field.base_field, models.TextField) else number_array(value)
    return orjson.dumps(value).decode() if isinstance(field, models.JSONField) else value


def number_array(numbers: Sequence[float]) -> str:
    """Postgres' text form of an array of numbers."""
    return "{" + ",".join(map(str, numbers)) + "}"


def text_array(texts: Sequence[str]) -> str:
    """Postgres' text form of an array of texts: each in quotes, quotes and backslashes in it escaped."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return '{"' + '","'.join(quoted) + '"}' if quoted else "{}"

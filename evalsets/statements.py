"""Statements in SQL that the desk sends all the time: a connection plans them once, and a row may be several models.

A query set is put together anew whenever it is asked, and what it sends is planned anew: at the desk both cost more
than finding the rows. Elsewhere a query set reads better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import psycopg
from django.db import connection
from django.db.models import Model


class Statement:
    """One statement with `%(name)s` for values; `{alias}` stands for all columns of the model that has this alias.

    A row is a tuple: the models in the order in which they are named, as the first columns, and then what else is
    selected.
    """

    def __init__(self, sql: str, **models: type[Model]) -> None:
        self._sql, self._models = sql, models

    def all(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._sent(values) as cursor:
            return [self._row(row) for row in cursor.fetchall()]

    def first(self, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        with self._sent(values) as cursor:
            row = cursor.fetchone()
        return self._row(row) if row else None

    def one(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The only row of a statement that always gives one."""
        [row] = self.all(values)
        return row

    def run(self, values: Mapping[str, Any]) -> int:
        """Send a statement that gives no rows. Returns how many it changed."""
        with self._sent(values) as cursor:
            return cursor.rowcount

    def _sent(self, values: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        connection.ensure_connection()
        if connection.queries_logged:
            connection.queries_log.append({"sql": self._text, "time": ""})
        with connection.wrap_database_errors:
            # Django's own cursors put the values into the text, so that no two statements are alike.
            return psycopg.Cursor(connection.connection).execute(self._text, values)

    @cached_property
    def _text(self) -> str:
        columns = {
            alias: ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)
            for alias, model in self._models.items()
        }
        return self._sql.format(**columns)

    @cached_property
    def _readers(self) -> list[tuple[type[Model], list[str], list[tuple[int, Callable[..., Any]]]]]:
        """By model the names of its fields, and what turns a column into a field's value where the two differ."""
        return [
            (
                model,
                [field.attname for field in model._meta.concrete_fields],
                [
                    (place, convert)
                    for place, field in enumerate(model._meta.concrete_fields)
                    for convert in field.get_db_converters(connection)
                ],
            )
            for model in self._models.values()
        ]

    def _row(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        made: list[Any] = []
        begin = 0
        for model, names, converters in self._readers:
            values = list(row[begin : begin + len(names)])
            for place, convert in converters:
                values[place] = convert(values[place], None, connection)
            made.append(model.from_db(connection.alias, names, values))
            begin += len(names)
        return (*made, *row[begin:])

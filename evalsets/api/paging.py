"""Lists come in pages, whose cost does not grow with the list: nothing is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from ninja import Field, Schema

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)


class Paging(Schema):
    """Which page is asked for."""

    page: int = Field(1, ge=1, le=1_000_000, description="From 1.")
    per_page: int = Field(50, ge=1, le=500)


class PageOf(Schema, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next: int | None = Field(description="The number of the next page; null where this is the last.")


def page_of(rows: QuerySet[Row], paging: Paging, as_json: Callable[[Row], dict[str, Any]]) -> dict[str, Any]:
    """The page of `rows` that is asked for, as `PageOf` describes it."""
    start = (paging.page - 1) * paging.per_page
    found = list(rows[start : start + paging.per_page + 1])
    more = len(found) > paging.per_page
    return {
        "items": [as_json(row) for row in found[: paging.per_page]],
        "next": paging.page + 1 if more else None,
    }

"""What every list page does with its address: search, sort, page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 50


def page_of(request: HttpRequest, rows: QuerySet[Any] | list[Any], per_page: int = PER_PAGE) -> Page[Any]:
    """The page of `rows` that the address asks for by `?page=`; a number out of range gives the nearest page."""
    return Paginator(rows, per_page).get_page(request.GET.get("page"))


def sorted_by(
    request: HttpRequest, rows: QuerySet[Any], columns: Mapping[str, str], default: str
) -> QuerySet[Any]:
    """`rows` in the order that the address asks for by `?sort=name` or `?sort=-name`.

    `columns` maps the names that an address may say to fields; anything else gives `default`. Rows that compare
    equal come in the order of their keys, so that paging neither repeats nor loses one.
    """
    asked = request.GET.get("sort", "")
    name = asked if asked.lstrip("-") in columns else default
    direction = "-" if name.startswith("-") else ""
    return rows.order_by(direction + columns[name.lstrip("-")], "pk")

"""What every list page does with its address: search, sort, page, and the numbers in it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_date
from django.utils.timezone import make_aware

Row = TypeVar("Row")

PER_PAGE = 50
# Beyond this many rows a list says "more than" rather than scan all of them for the number.
COUNTED_UP_TO = 10_000


class BoundedPaginator(Paginator):
    """A paginator whose cost does not grow with the table: it counts, and leafs, through the first rows only."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, at most `COUNTED_UP_TO`."""
        if isinstance(self.object_list, QuerySet):
            return self.object_list.order_by()[: COUNTED_UP_TO + 1].count()
        return len(self.object_list)

    @property
    def has_uncounted(self) -> bool:
        return isinstance(self.object_list, QuerySet) and self.count > COUNTED_UP_TO


def number_in(text: str | None) -> int:
    """The number that an address or a field says, if it says one that an ID can be; else 0, which is nobody's."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else 0


def day_in(text: str | None) -> date | None:
    """The day that an address says as 2026-03-31, if it says one; the last day of all, which has no next, is none."""
    try:
        day = parse_date(text or "")
    except ValueError:
        return None
    return day if day != date.max else None


def beginning_of(day: date) -> datetime:
    """Its first moment, in the time zone of the pages."""
    return make_aware(datetime.combine(day, time.min))


class Filter(NamedTuple):
    """A filter of a list as templates/includes/search.html shows it; `chosen` is "" or one of the choices."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    chosen: str


def filter_by(request: HttpRequest, name: str, label: str, choices: Sequence[tuple[str, str]]) -> Filter:
    """The filter that the address sets by `?name=`, to the value of one of `choices` (value, label)."""
    asked = request.GET.get(name, "")
    return Filter(name, label, choices, asked if asked in dict(choices) else "")


def page_of(request: HttpRequest, rows: QuerySet[Any] | Sequence[Any], per_page: int = PER_PAGE) -> Page[Any]:
    """The page of `rows` that the address asks for by `?page=`; a number out of range gives the nearest page."""
    return BoundedPaginator(rows, per_page).get_page(request.GET.get("page"))


def sorted_by(
    request: HttpRequest, rows: QuerySet[Any], columns: Mapping[str, str], default: str
) -> QuerySet[Any]:
    """`rows` in the order that the address asks for by `?sort=name` or `?sort=-name`.

    `columns` maps the names that an address may say to fields; anything else gives `default`. Rows that compare
    equal come in the order of their keys, so that paging neither repeats nor loses one.
    """
    name, direction = sort_in(request, columns, default)
    return rows.order_by(direction + columns[name], f"{direction}pk")


def sorted_rows(
    request: HttpRequest, rows: Iterable[Row], keys: Mapping[str, Callable[[Row], Any]], default: str
) -> list[Row]:
    """`sorted_by` for rows that are read already; `keys` says what of a row is compared. Equal rows stay in order."""
    name, direction = sort_in(request, keys, default)
    return sorted(rows, key=keys[name], reverse=direction == "-")


def sort_in(request: HttpRequest, names: Container[str], default: str) -> tuple[str, str]:
    """Which of `names` the address sorts by, else `default`, and "-" where downwards."""
    asked = request.GET.get("sort", "")
    sort = asked if asked.removeprefix("-") in names else default
    name = sort.removeprefix("-")
    return name, sort.removesuffix(name)

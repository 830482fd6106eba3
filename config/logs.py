"""What the processes write to their logs: one line a record, as JSON for machines or as text for people.

Every line says which request it belongs to, and of a request or a job whose it is and in which eval set. Only the
fields named here are written: no query string, no form field, no header, nothing of a row that Postgres refused.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django_guid import get_guid

# What this thread works on.
current_request: ContextVar[HttpRequest | None] = ContextVar("current_request", default=None)
current_job: ContextVar[Mapping[str, Any]] = ContextVar("current_job", default={})  # noqa: B039 (never changed)

# Postgres quotes the row that broke a constraint, and statements with their values: texts of people, of several lines.
QUOTED_ROWS = re.compile(
    r"^(DETAIL|CONTEXT|LINE \d+): .*?(?=\n\nThe above exception|\n\nDuring handling|\Z)",
    re.MULTILINE | re.DOTALL,
)


def facts(record: logging.LogRecord) -> dict[str, Any]:
    """What is known of the request or the job in which the record was made, and what its maker gave as `facts`."""
    found: dict[str, Any] = {}
    if request_id := get_guid():
        found["request_id"] = request_id
    if request := current_request.get():
        found |= facts_of_request(request)
    return {**found, **current_job.get(), **getattr(record, "facts", {})}


def facts_of_request(request: HttpRequest) -> dict[str, Any]:
    """The ID of the user and the eval set's slug, as far as the request has come to know them; it asks no database."""
    found: dict[str, Any] = {}
    caller = getattr(request, "auth", None)  # of the HTTP API
    user = caller.user if caller else getattr(request, "_cached_user", None)
    if user is not None and user.pk:
        found["user"] = user.pk
    if request.resolver_match and (slug := request.resolver_match.kwargs.get("slug")):
        found["evalset"] = slug
    return found


# A line of text stays one line, and reads as it was written: controls and what turns the direction of reading.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class _Formatter(logging.Formatter):
    def formatException(self, ei: Any) -> str:
        return QUOTED_ROWS.sub(r"\1: (left out)", super().formatException(ei))

    def _message(self, record: logging.LogRecord) -> str:
        return QUOTED_ROWS.sub(r"\1: (left out)", record.getMessage())

    def _traceback(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info else ""


class JsonLines(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": self._message(record),
            **facts(record),
        }
        if traceback := self._traceback(record):
            line["traceback"] = traceback
        return orjson.dumps(line, default=str).decode()


class TextLines(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # `facts` of the record itself are in its message already.
        known = {**facts(record), **dict.fromkeys(getattr(record, "facts", {}))}
        about = " ".join(f"{name}={value}" for name, value in known.items() if value is not None)
        message = UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), self._message(record))
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {message}"
        traceback = self._traceback(record)
        return line + (f" [{about}]" if about else "") + (f"\n{traceback}" if traceback else "")


def chosen_form(environment: Mapping[str, str]) -> str:
    """LOG_FORMAT, "json" or "text"; without it text on a terminal and for the embedded servers, else JSON."""
    by_itself = "text" if sys.stderr.isatty() or not environment.get("DATABASE_URL") else "json"
    form = environment.get("LOG_FORMAT") or by_itself
    if form not in ("json", "text"):
        raise ImproperlyConfigured(f"LOG_FORMAT is {form!r}; it must be json or text")
    return form


def logging_settings(form: str, level: str) -> dict[str, Any]:
    """The settings of Python's logging: all to standard error in one `form`, "json" or "text"."""
    lines = {"json": JsonLines, "text": TextLines}[form]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": lines}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "django.server": {"level": "WARNING"},  # our own line says more
            "django_guid": {"level": "ERROR"},  # how each request came by its ID
            "gunicorn.error": {"propagate": True},
        },
    }

"""The questions of a release, in the shape that our own import reads."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from labels.exports.reading import question_rows
from labels.models import Release


def question_jsonl(release: Release) -> Iterator[bytes]:
    """One question a line, by the bytes of its ID."""
    for row in question_rows(release, "details"):
        yield orjson.dumps(row.details, option=orjson.OPT_APPEND_NEWLINE)

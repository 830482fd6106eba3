"""JSON documents as people write them by hand, taken only where the database can keep them as they are."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

DEEPEST = 50
LARGEST_WHOLE = 2**63


def parse_document(content: str | bytes) -> Any:
    """The value of a whole JSON document (bytes are UTF-8). ValueError, worded for people, where there is none.

    What Python's parser takes and Postgres does not is refused as well: NaN and Infinity, NUL, half of a surrogate
    pair; so are whole numbers beyond 64 bits, which others would round, and a key that an object has twice.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content.removeprefix("\ufeff")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST} deep") from None
    if deeper_than(value, DEEPEST):
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    _refuse_unstorable(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _object(said: list[tuple[str, Any]]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in said:
        if key in kept:
            raise ValueError(f"an object has the key {key!r} twice")
        kept[key] = value
    return kept


def _refuse_unstorable(value: Any) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError("it holds a NUL character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half of a surrogate pair, which is no character") from None
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it holds a number that is too large")
    elif isinstance(value, int) and abs(value) >= LARGEST_WHOLE:
        raise ValueError("it holds a whole number of more than 64 bits; write it as text, in quotes")
    elif isinstance(value, dict):
        for key, each in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(each)
    elif isinstance(value, list):
        for each in value:
            _refuse_unstorable(each)


def deeper_than(value: Any, depth: int) -> bool:
    """Whether lists and objects stand more than `depth` deep in each other."""
    if not isinstance(value, dict | list):
        return False
    if depth == 0:
        return True
    for each in value.values() if isinstance(value, dict) else value:  # a loop takes half as long as any()
        if isinstance(each, dict | list) and deeper_than(each, depth - 1):
            return True
    return False


def holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(holds_nul(key) or holds_nul(each) for key, each in value.items())
    if isinstance(value, list):
        return any(holds_nul(each) for each in value)
    return False

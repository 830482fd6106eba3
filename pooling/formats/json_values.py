"""JSON a line at a time, or one document as a stream of events: what is wrong becomes a fault with its line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import ijson
import orjson
from ijson.common import IncompleteJSONError, JSONError

from evalsets.strict_json import DEEPEST, holds_nul

from .faults import Findings
from .opening import LineStream, Source
from .text import lines

STEPS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}  # into and out of containers
ESCAPED_BACKSLASH = re.compile(rb"\\\\")
PAIRED = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
HALF_OF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
KEY_ENDS = re.compile(r'"[ \t\r\n]*:')


class Members(dict[str, Any]):
    """A JSON object that keeps all it says in `said`, a key that it has twice included."""

    def __init__(self, said: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.said: list[tuple[str, Any]] = []
        for key, value in said:
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        self.said.append((key, value))
        super().__setitem__(key, value)


def json_objects(
    source: Source, findings: Findings, *, as_members: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object on each line that is not blank, with its line number; `as_members`: all objects are `Members`."""
    for number, text in lines(source, findings):
        if not text or text.isspace():
            continue
        value = parse_json(text, number, findings, keys_once=not as_members)
        if value is None:
            continue
        if not isinstance(value, dict):
            findings.faults.add("json", line=number, value=text, expected="one JSON object on each line")
            continue
        yield number, json.loads(text, object_pairs_hook=Members) if as_members else value


def parse_json(text: str, number: int, findings: Findings, *, keys_once: bool = True) -> Any | None:
    """The value, or None after a fault (a JSON null is a fault as well: no record is null).

    With `keys_once` an object that has one key twice is a fault, since the parser keeps the last alone.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = str(error)
        if "depth" in message or "recursion" in message.lower():
            add_depth_fault(findings, number, text)
        else:
            hint = "; NaN and Infinity are no JSON numbers" if "NaN" in text or "Infinity" in text else ""
            findings.faults.add(
                "json",
                line=number,
                field=f"column {error.colno}",
                value=text[error.pos :],
                expected=message + hint,
            )
        return None
    keys = keys_in(value, DEEPEST)
    if keys is None:
        add_depth_fault(findings, number, text)
        return None
    if "\\u0000" in text and holds_nul(value):
        findings.faults.add("nul", line=number, value=text, expected="text without NUL characters")
        return None
    if value is None:
        findings.faults.add("json", line=number, value=text, expected="one JSON object on each line")
    elif keys_once and may_repeat_keys(text, keys) and add_key_faults(text, number, findings):
        return None
    return value


def may_repeat_keys(text: str, keys: int) -> bool:
    """Whether the JSON text has more of what ends a key than `keys`, those that were kept; texts may hold such too."""
    return text.count(":") > keys and len(KEY_ENDS.findall(text)) > keys


def keys_in(value: Any, depth: int) -> int | None:
    """How many keys all objects of a JSON value have; None where they stand more than `depth` deep in each other."""
    found = 0
    if isinstance(value, dict):
        found = len(value)
        value = value.values()
    elif not isinstance(value, list):
        return 0
    if depth == 0:
        return None
    for each in value:
        if isinstance(each, dict | list):
            inner = keys_in(each, depth - 1)
            if inner is None:
                return None
            found += inner
    return found


def add_key_faults(text: str, number: int, findings: Findings) -> bool:
    """Add a fault for each key that an object of the JSON text has more than once; whether there is any."""
    found: list[str] = []
    json.loads(text, object_pairs_hook=lambda said: found.extend(repeated_keys(said)))
    for key in found:
        add_key_fault(key, number, findings)
    return bool(found)


def repeated_keys(said: Iterable[tuple[str, Any]]) -> list[str]:
    return [key for key, times in Counter(key for key, _value in said).items() if times > 1]


def add_key_fault(key: str, number: int, findings: Findings) -> None:
    findings.faults.add("key-twice", line=number, field=key, expected="each key of an object once")


def json_events(source: Source, findings: Findings, *, expected: str) -> Iterator[tuple[int, int, str, Any]]:
    """(line, level, event, value) of one JSON document that is too large to be held, as ijson names the events.

    `level` is the depth of the list or object that something stands in, 0 for the document itself: start and end of
    a container have the same. Ends after a fault where the document is not JSON.
    """
    stream = LineStream(source)
    depth, checked = 0, 0
    try:
        for event, value in ijson.basic_parse(stream, use_float=True):
            if stream.line != checked:
                checked = stream.line
                if has_half_a_pair(stream.text):  # the parser would put a question mark there
                    findings.faults.add(
                        "json", line=checked, expected="whole characters, not half of a surrogate pair"
                    )
                    return
            step = STEPS.get(event, 0)
            if step < 0:
                depth -= 1
            yield checked, depth, event, value
            if step > 0:
                depth += 1
                if depth > DEEPEST:
                    add_depth_fault(findings, stream.line, "")
                    return
    except (IncompleteJSONError, JSONError, UnicodeDecodeError) as error:
        findings.faults.add("json", line=max(1, stream.line), value=first_line(error), expected=expected)


def has_half_a_pair(line: bytes) -> bool:
    """Whether a line of JSON writes half of a surrogate pair, as in "\\ud83d": no character."""
    if b"\\u" not in line:
        return False
    return bool(HALF_OF_A_PAIR.search(PAIRED.sub(b" ", ESCAPED_BACKSLASH.sub(b" ", line))))


def add_depth_fault(findings: Findings, number: int | None, text: str) -> None:
    findings.faults.add("json-depth", line=number, value=text, expected=f"JSON nested at most {DEEPEST} deep")


def first_line(error: Exception) -> str:
    """What the JSON parser says, without the picture it draws below."""
    message = str(error.args[0] if error.args else error).strip("b'\"")
    return message.replace("\\n", "\n").splitlines()[0] if message else ""

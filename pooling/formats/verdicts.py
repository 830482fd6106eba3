"""The remainder file and its answers: pairs judged elsewhere and brought back.

The remainder is JSONL, one pair a line: `REMAINDER_KEYS` in this order, `grade` null and `note` empty. Whoever
judges fills in `grade`, or `cannot_judge` with the reason; `note` and `seconds` are optional. `revision` names the
text that was read, so that an answer on an older text is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .faults import Findings
from .json_values import json_objects
from .opening import Limits, Progress, Source, Unreadable
from .qrels import RawLabel, grade_of
from .records import id_from_json
from .sniffing import Sniff, sniff

REMAINDER_KEYS = ("question_id", "question", "chunk_id", "text", "revision", "grade", "cannot_judge", "note")
ANSWER_KEYS = {*REMAINDER_KEYS, "seconds", "title"}


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """One answer: a grade, or None with the reason why the pair cannot be judged."""

    question: str
    chunk: str
    grade: int | None
    cannot_judge: str
    note: str
    seconds: float | None
    revision: str
    line: int = field(default=0, compare=False)


@dataclass
class VerdictFile:
    """What was read: each answered pair once. `open` counts the lines without an answer."""

    sniff: Sniff | None = None
    records: list[VerdictRecord] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    read: int = 0
    open: int = 0
    digest: str | None = None


def read_verdicts(
    path: str | Path,
    *,
    format: str | None = None,
    allowed: Collection[int] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> VerdictFile:
    """Read answers. Never raises on content: whatever is wrong stands in `findings`."""
    result = VerdictFile()
    findings = result.findings
    kept: dict[tuple[str, str], VerdictRecord] = {}
    try:
        source = Source(path, limits=limits, progress=progress)
        result.sniff = sniff(source, "verdicts", format)
        for line, record in json_objects(source, findings):
            result.read += 1
            for key in record.keys() - ANSWER_KEYS:
                findings.warnings.add(
                    "keys-ignored", line=line, field=key, expected=", ".join(sorted(ANSWER_KEYS))
                )
            answer = verdict(record, line, allowed, findings)
            if answer is None:
                continue
            if answer.grade is None and not answer.cannot_judge:
                result.open += 1
                findings.warnings.add("not-answered", line=line, field=f"{answer.question}, {answer.chunk}")
                continue
            keep_once(answer, kept, findings)
        result.digest = source.digest
    except Unreadable as error:
        findings.faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)
    if result.read == 0 and not findings.faults:
        findings.faults.add("empty-file", expected="at least one answer")
    result.records = list(kept.values())
    return result


def verdict(
    record: dict[str, Any], line: int, allowed: Collection[int] | None, findings: Findings
) -> VerdictRecord | None:
    names: list[str | None] = []
    for key in ("question_id", "chunk_id"):
        if key not in record:
            findings.faults.add(
                "missing-field", line=line, field=key, value=", ".join(record), expected=f"a field {key}"
            )
            names.append(None)
        else:
            names.append(id_from_json(record[key], line, key, findings))
    before = findings.faults.count()
    grade = None
    if record.get("grade") is not None:
        grade = grade_of(RawLabel(line, "", "", record["grade"]), findings)
        if grade is not None and (
            (allowed is None and grade < 0) or (allowed is not None and grade not in allowed)
        ):
            expected = (
                f"one of {', '.join(map(str, sorted(allowed)))}" if allowed is not None else "0 or more"
            )
            findings.faults.add(
                "grade-outside-scale", line=line, field="grade", value=grade, expected=expected
            )
    cannot_judge = text_of(record, "cannot_judge", line, findings)
    if grade is not None and cannot_judge:
        findings.faults.add(
            "field-type",
            line=line,
            field="cannot_judge",
            value=cannot_judge,
            expected="a grade or cannot_judge, not both",
        )
    seconds = record.get("seconds")
    if seconds is not None and (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not math.isfinite(seconds)
        or seconds < 0
    ):
        findings.faults.add(
            "field-type", line=line, field="seconds", value=seconds, expected="seconds, 0 or more"
        )
    note, revision = text_of(record, "note", line, findings), text_of(record, "revision", line, findings)
    question, chunk = names
    if question is None or chunk is None or findings.faults.count() != before:
        return None
    return VerdictRecord(
        question,
        chunk,
        grade,
        cannot_judge.strip(),
        note,
        None if seconds is None else float(seconds),
        revision,
        line,
    )


def text_of(record: dict[str, Any], key: str, line: int, findings: Findings) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        findings.faults.add("field-type", line=line, field=key, value=value, expected="text in quotes")
        return ""
    return value


def keep_once(answer: VerdictRecord, kept: dict[tuple[str, str], VerdictRecord], findings: Findings) -> None:
    earlier = kept.setdefault((answer.question, answer.chunk), answer)
    if earlier is answer:
        return
    pair = f"{answer.question}, {answer.chunk}"
    if (earlier.grade, earlier.cannot_judge) == (answer.grade, answer.cannot_judge):
        findings.warnings.add(
            "repeated", line=answer.line, field=pair, expected=f"first on line {earlier.line}"
        )
    else:
        findings.faults.add(
            "pair-two-grades",
            line=answer.line,
            field=pair,
            value="cannot judge" if answer.grade is None else answer.grade,
            expected=f"one answer a pair; line {earlier.line} says "
            + ("cannot judge" if earlier.grade is None else str(earlier.grade)),
        )

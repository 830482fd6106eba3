"""Known answers for gold pairs: any form of qrels, and the plainest one: question, chunk, grade on a line."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from .columns import columns_found
from .opening import Limits, Source, Unreadable
from .qrels import WHOLE, LabelRecord, QrelsFile, RawLabel, grade_of, ids_are_good, keep_once, read_qrels
from .text import word_is_good
from .trec import BLANKS, fields_of_lines


def read_known_answers(
    path: str | Path, *, allowed: Collection[int], limits: Limits | None = None
) -> QrelsFile:
    """Read known answers, `allowed` being the grades of the scale. Never raises on content: see `findings`."""
    try:
        plain = _has_three_columns(Source(path, limits=limits))
    except Unreadable:
        plain = False
    return _read_plain(path, allowed, limits) if plain else read_qrels(path, allowed=allowed, limits=limits)


def _has_three_columns(source: Source) -> bool:
    """Whether the first line that says something has three fields, the last a whole number (so it is no header)."""
    for line in source.head().decode("utf-8", "replace").split("\n"):
        stripped = line.strip(" \t\r")
        if stripped and not line.startswith("#"):
            fields = BLANKS.split(stripped)
            return len(fields) == 3 and WHOLE.fullmatch(fields[2]) is not None
    return False


def _read_plain(path: str | Path, allowed: Collection[int], limits: Limits | None) -> QrelsFile:
    result = QrelsFile()
    faults = result.findings.faults
    kept: dict[tuple[str, str], LabelRecord] = {}
    number, offset = 1, 0
    try:
        source = Source(path, limits=limits)
        for block in source.blocks():
            for line, fields in fields_of_lines(block, number, offset, result.findings):
                result.read += 1
                if len(fields) != 3:
                    faults.add(
                        "columns",
                        line=line,
                        field=columns_found(len(fields)),
                        value=" ".join(fields),
                        expected="three columns: question, chunk, grade",
                    )
                    continue
                raw = RawLabel(line, fields[0], fields[1], fields[2])
                grade = grade_of(raw, result.findings)
                if grade is None or not ids_are_good(
                    raw.question, raw.chunk, line, result.findings, word_is_good
                ):
                    continue
                if grade not in allowed:
                    faults.add(
                        "grade-outside-scale",
                        line=line,
                        field="grade",
                        value=grade,
                        expected=f"one of {', '.join(map(str, sorted(allowed)))}",
                    )
                    continue
                keep_once(LabelRecord(raw.question, raw.chunk, grade, line), kept, result.findings)
            number += block.count(b"\n")
            offset += len(block)
        result.digest = source.digest
    except Unreadable as error:
        faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)
    result.records = list(kept.values())
    return result

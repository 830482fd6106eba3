"""What must hold of each reader, whatever the bytes. One function a reader; `fuzz/run.py` and the tests call them.

The first bytes of an input choose the options (format, order, …), the rest is the file. A property returns where it
holds and raises where it does not:

- a reader answers with records or with faults, and each fault has a meaning and can be printed;
- what it hands over can be stored: IDs of 1 to 512 characters without control characters, no NUL, finite numbers;
- reading in blocks of a few bytes gives the same as reading at once, so reading twice gives the same.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evalsets.strict_json import parse_document
from pooling.formats import (
    ChunkFile,
    Findings,
    Limits,
    Source,
    Unreadable,
    format_names,
    read_known_answers,
    read_qrels,
    read_questions,
    read_run,
    read_verdicts,
)
from pooling.formats.catalogue import Kind
from pooling.formats.likeness import is_scientific, shown_by_spreadsheet, spellings
from pooling.formats.text import CONTROL_CHARACTERS, ID_CHARACTERS
from pooling.formats.trec import read_trec

AT_ONCE = Limits(unpacked_bytes=2**16, line_bytes=2**20)
# faults of a file that breaks off: how far each reading came before depends on its blocks
BROKEN_OFF = {"compression", "unpacked-size"}
GRADES = (0, 1, 2, 3)
LARGEST_INT = 2**31 - 1

Choice = TypeVar("Choice")


class Options:
    """Draws options off the front of an input; an input that is used up draws the first of each."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        drawn, self.data = self.data[:1], self.data[1:]
        return choices[drawn[0] % len(choices)] if drawn else choices[0]

    def format(self, kind: Kind) -> str | None:
        return self.one_of([None, *format_names(kind)])

    def limits(self) -> Limits:
        """For the second reading: blocks of a few bytes."""
        return replace(AT_ONCE, block_bytes=self.one_of([7, 1, 2, 64]))


@contextmanager
def file_of(content: bytes) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix="fuzz-")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        yield Path(name)
    finally:
        os.unlink(name)


def questions(data: bytes) -> None:
    options = Options(data)
    format, small = options.format("questions"), options.limits()
    with file_of(options.data) as path:
        file, again = (read_questions(path, format=format, limits=limits) for limits in (AT_ONCE, small))
    check(file.findings, file.records)
    if not both_to_the_end(file.findings, again.findings):
        return
    same(file.records, again.records)
    assert len({record.id for record in file.records}) == len(file.records)


def chunks(data: bytes) -> None:
    options = Options(data)
    format, wanted = options.format("chunks"), options.one_of([None, {"c1", "7"}])
    small = options.limits()
    with file_of(options.data) as path:
        files = [ChunkFile(path, format=format, wanted=wanted, limits=limits) for limits in (AT_ONCE, small)]
        records, again = (list(file) for file in files)
    file, second = files
    check(file.findings, records or file.left_out)
    if not both_to_the_end(file.findings, second.findings):
        return
    same(
        (records, file.read, file.left_out, file.digest), (again, second.read, second.left_out, second.digest)
    )
    storable(records)


def run(data: bytes) -> None:
    options = Options(data)
    format = options.format("run")
    how: dict[str, Any] = {
        "order": options.one_of(["score", "rank"]),
        "duplicates": options.one_of(["refuse", "keep-first"]),
        "several_tags": options.one_of([False, True]),
    }
    small = options.limits()
    with file_of(options.data) as path:
        file, again = (read_run(path, format=format, limits=limits, **how) for limits in (AT_ONCE, small))
        if file.sniff and file.sniff.format == "trec":
            columnar_and_careful_agree(path)
    check(file.findings, file.rankings)
    if not both_to_the_end(file.findings, again.findings):
        return
    same(plain_rankings(file), plain_rankings(again))
    for ranking in file.rankings:
        assert len(set(ranking.chunks.tolist())) == len(ranking.chunks), "a chunk twice in a ranking"
        assert ranking.scores is None or np.isfinite(ranking.scores).all()
        storable(ranking.passages)
        identifier(ranking.question)
    for name in file.vocabulary:
        identifier(name)


def columnar_and_careful_agree(path: Path) -> None:
    read = []
    for small_block in (0, 10**12):
        findings = Findings()
        try:
            entries, tags = read_trec(Source(path, limits=AT_ONCE), findings, small_block=small_block)
        except Unreadable:
            return
        columns = (entries.question, entries.chunk, entries.rank, entries.score, entries.line)
        names = entries.questions.to_pylist(), entries.vocabulary.to_pylist()
        read.append((names, [column.tolist() for column in columns], tags, said(findings)))
    same(*read)


def qrels(data: bytes) -> None:
    options = Options(data)
    format = options.format("qrels")
    how: dict[str, Any] = {
        "negative": options.one_of(["refuse", "skip", "zero"]),
        "allowed": options.one_of([GRADES, None]),
        "with_models": options.one_of([False, True]),
    }
    small = options.limits()
    with file_of(options.data) as path:
        file, again = (read_qrels(path, format=format, limits=limits, **how) for limits in (AT_ONCE, small))
    check(file.findings, file.records or file.skipped_negative or file.skipped_models)
    if not both_to_the_end(file.findings, again.findings):
        return
    same((file.records, file.read, file.grades), (again.records, again.read, again.grades))
    once(file.records)
    for record in file.records:
        assert record.grade >= 0
        assert how["allowed"] is None or record.grade in GRADES


def known_answers(data: bytes) -> None:
    with file_of(data) as path:
        small = replace(AT_ONCE, block_bytes=5)
        file, again = (read_known_answers(path, allowed=GRADES, limits=limits) for limits in (AT_ONCE, small))
    check(file.findings, file.records or file.skipped_models)
    if not both_to_the_end(file.findings, again.findings):
        return
    same(file.records, again.records)
    once(file.records)


def verdicts(data: bytes) -> None:
    options = Options(data)
    format, allowed = options.format("verdicts"), options.one_of([GRADES, None])
    small = options.limits()
    with file_of(options.data) as path:
        file, again = (
            read_verdicts(path, format=format, allowed=allowed, limits=limits) for limits in (AT_ONCE, small)
        )
    check(file.findings, file.records or file.open)
    if not both_to_the_end(file.findings, again.findings):
        return
    same((file.records, file.open), (again.records, again.open))
    once(file.records)
    storable(file.records)


def packed(data: bytes) -> None:
    """Any reader on bytes that are compressed, or pretend to be."""
    options = Options(data)
    name = options.one_of(["run", "questions", "chunks", "qrels", "verdicts"])
    mark = options.one_of([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06"])
    {"run": run, "questions": questions, "chunks": chunks, "qrels": qrels, "verdicts": verdicts}[name](
        bytes(5) + mark + options.data
    )


def document(data: bytes) -> None:
    """A run's configuration, a scale."""
    try:
        value = parse_document(data)
    except ValueError as error:
        str(error).encode()
        return
    storable(value)
    same(value, parse_document(json.dumps(value, allow_nan=False).encode()))


def hints(data: bytes) -> None:
    """The other spellings of an unknown ID, which a report tells."""
    unknown, _, known = data.decode("utf-8", "replace").replace("\x00", "")[:ID_CHARACTERS].partition("\n")
    found = spellings(unknown)
    assert unknown not in found
    assert all(text and "\x00" not in text for text in found)
    if is_scientific(unknown):
        shown_by_spreadsheet(known, unknown)


PROPERTIES: dict[str, Callable[[bytes], None]] = {
    "questions": questions,
    "chunks": chunks,
    "run": run,
    "qrels": qrels,
    "known-answers": known_answers,
    "verdicts": verdicts,
    "packed": packed,
    "document": document,
    "hints": hints,
}


def check(findings: Findings, anything: object) -> None:
    """Records or a fault, and a report that can be printed as JSON and kept in the database."""
    assert anything or findings.faults, "neither records nor faults"
    for collector in (findings.faults, findings.warnings):
        for entry in collector.as_json():
            assert entry["meaning"], f"no meaning for {entry['kind']}"
            assert entry["count"] >= len(entry["examples"]) > 0
            for example in entry["examples"]:
                assert example["line"] is None or example["line"] >= 1
        storable(collector.as_json())
    storable(anything)


def both_to_the_end(first: Findings, second: Findings) -> bool:
    """Fail where two readings of one file found different things; whether they came to its end."""
    broken = [BROKEN_OFF & set(findings.faults.kinds()) for findings in (first, second)]
    same(*map(bool, broken))
    if broken[0]:
        return False
    same(said(first), said(second))
    return True


def said(findings: Findings) -> tuple[Any, Any]:
    return findings.faults.as_json(), findings.warnings.as_json()


def same(first: object, second: object) -> None:
    assert first == second, f"{first!r}\n  is not\n{second!r}"


def once(records: Sequence[Any]) -> None:
    pairs = [(record.question, record.chunk) for record in records]
    assert len(set(pairs)) == len(pairs), "a pair twice"
    for pair in pairs:
        identifier(pair[0])
        identifier(pair[1])


def identifier(name: str) -> None:
    assert 0 < len(name) <= ID_CHARACTERS, "an ID is empty or too long"
    assert not CONTROL_CHARACTERS.search(name), "an ID with a control character"
    name.encode()


def plain_rankings(file: Any) -> list[Any]:
    """The rankings with names instead of positions."""
    return [
        (
            ranking.question,
            [file.vocabulary[at] for at in ranking.chunks.tolist()],
            None if ranking.scores is None else ranking.scores.tolist(),
            ranking.line,
            ranking.abstained,
            ranking.passages,
        )
        for ranking in file.rankings
    ]


def storable(value: object) -> None:
    """Fail on what Postgres cannot keep."""
    if isinstance(value, str):
        assert "\x00" not in value, "a NUL"
        value.encode()  # a lone surrogate is no text
    elif isinstance(value, float):
        assert math.isfinite(value), "a number that is not finite"
    elif isinstance(value, dict):
        for key, each in value.items():
            storable(key)
            storable(each)
    elif is_dataclass(value):
        for each in fields(value):
            storable(getattr(value, each.name))
        for name in ("start", "end"):
            assert (getattr(value, name, None) or 0) <= LARGEST_INT, f"{name} is too large for its column"
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            storable(each)
    elif not isinstance(value, int | date | np.ndarray | None):
        raise AssertionError(f"{type(value)} is not expected here")

"""What a file is taken for, told from the first bytes of its content."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import Any

import orjson

from .catalogue import FORMATS, Kind, format_names
from .columns import is_header
from .opening import Source, Unreadable
from .trec import NUMBER

SHOWN_LINES = 5
LABEL_KEYS = {"id", "_id", "qid", "question_id", "grades", "grade"}
FIRST_KEY = re.compile(r'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*(.)', re.DOTALL)


@dataclass
class Sniff:
    """What a file is taken for: `format` is a name of `FORMATS[kind]`, `why` says it in words.

    `columns` are the names of the fields, `first_lines` the first lines as they stand.
    """

    kind: Kind
    format: str
    why: str
    columns: list[str] = field(default_factory=list)
    first_lines: list[str] = field(default_factory=list)
    packing: str = "plain"
    member: str | None = None
    skipped: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "why": self.why,
            "columns": self.columns,
            "first_lines": self.first_lines,
            "packing": self.packing,
            "member": self.member,
            "skipped": self.skipped,
        }


def sniff(source: Source, kind: Kind, format: str | None = None) -> Sniff:
    """What the source is taken for; `format` overrides. Raises `Unreadable` when nothing fits."""
    names = format_names(kind)
    if format is not None and format not in names:
        raise Unreadable(
            "unknown-format", field="format", value=format, expected=f"one of {', '.join(names)}"
        )
    head = source.head().decode("utf-8", "replace")
    shown = [line.rstrip("\r")[:200] for line in head.split("\n")[: SHOWN_LINES + 1] if line.strip()][
        :SHOWN_LINES
    ]
    if format is None:
        format, why = guess(head, kind)
    else:
        why = "the format was named"
    return Sniff(
        kind=kind,
        format=format,
        why=why,
        columns=columns_of(head, kind, format),
        first_lines=shown,
        packing=source.packing,
        member=source.member,
        skipped=source.skipped,
    )


def guess(head: str, kind: Kind) -> tuple[str, str]:
    """(format, why) for the first characters of a file; raises `Unreadable` when nothing fits."""
    content = [line for line in head.split("\n") if line.strip()]
    if not content:
        raise Unreadable("empty-file", expected="at least one record")
    start = content[0].lstrip()
    if begins_json(start, kind):
        return guess_json(head, content, kind)
    if kind == "questions" and start[0] == "<":
        if start.lower().startswith("<top>"):
            return "trec", "it starts with <top>"
        return "trec-xml", "it starts with an XML tag"
    if "\t" not in content[0]:
        if is_header(csv_fields(content[0]), kind):
            return "csv", "its first line is a comma-separated header"
        refuse_header(content[0], csv_fields(content[0], ";"), "semicolons", kind)
    if kind == "run":
        refuse_header(content[0], content[0].split(), "tabs or blanks", kind)
        return guess_run(content)
    if kind == "qrels":
        if is_header(content[0].rstrip("\r").split("\t"), kind):
            return "beir", "its first line is a tab-separated header"
        return "trec", "its lines are columns of text"
    if kind == "questions" and any("\t" in line for line in content):
        return "tsv", "its lines hold tabs"
    if kind == "chunks" and any("\t" in line for line in content):
        whole = content[:-1] if len(content) > 1 and not head.endswith("\n") else content
        if all(line.count("\t") >= 2 for line in whole):
            return "tsv-title", "every line has two tabs"
        return "tsv", "its lines hold tabs, some only one"
    examples = "; ".join(f"{known.name}: {known.example.splitlines()[0]}" for known in FORMATS[kind])
    raise Unreadable(
        "unknown-format", field="first line", value=content[0], expected=f"one of these: {examples}"
    )


def refuse_header(line: str, names: list[str], separators: str, kind: Kind) -> None:
    """Raise `Unreadable` where the parts of the line are names of columns: no format has a header like that."""
    if is_header(names, kind) and not any(NUMBER.fullmatch(name) for name in names):
        raise Unreadable(
            "unknown-format",
            field="first line",
            value=line.strip(),
            expected=f"commas between the columns; this looks like a header of CSV with {separators} instead"
            + (", and TREC's six columns have no header" if kind == "run" else ""),
        )


def begins_json(line: str, kind: Kind) -> bool:
    """Whether the first line is JSON and not columns whose first ID begins with a bracket."""
    if line[0] not in "{[":
        return False
    if line[1:].lstrip()[:1] in ("", '"', *"{}[]"):
        return True
    columns = {"run": 6, "qrels": 4}
    return len(line.split()) != columns[kind] if kind in columns else "\t" not in line


def guess_run(content: list[str]) -> tuple[str, str]:
    data = [line for line in content if not line.startswith("#")]
    if data and len(re.split("[ \t]+", data[0].strip(" \t\r"))) == 3:
        raise Unreadable(
            "unknown-format",
            field="first line",
            value=data[0].strip(),
            expected="six columns (question, Q0, chunk, rank, score, tag); if the three columns are question, chunk "
            "and rank, name the format msmarco",
        )
    return "trec", "its lines are columns of text"


def guess_json(head: str, content: list[str], kind: Kind) -> tuple[str, str]:
    if kind in ("questions", "chunks"):
        beir_keys = {"_id", "text", "metadata"} | ({"title"} if kind == "chunks" else set())
        try:
            first = orjson.loads(content[0])
        except orjson.JSONDecodeError:
            first = None
        if isinstance(first, dict) and "_id" in first and first.keys() <= beir_keys:
            return "beir", "its first line is a JSON object with BEIR's keys"
        return "jsonl", "it starts with a JSON value"
    if kind == "verdicts":
        return "jsonl", "it starts with a JSON value"
    if content[0].lstrip()[0] == "[":
        return "json", "it starts with a JSON list"
    first_key = FIRST_KEY.match(head)
    if kind == "run":
        if first_key and first_key.group(2) != "{":
            return "jsonl", "its first line is a JSON object that is one ranking"
        return "json", "it is a JSON object of objects"
    # labels: a record a line, or one document that holds the records
    try:
        record = orjson.loads(content[0])
    except orjson.JSONDecodeError:
        record = {}
    keys = set(record) if isinstance(record, dict) else set()
    if keys & LABEL_KEYS or (first_key and first_key.group(1) in LABEL_KEYS and len(content) == 1):
        return "jsonl", "its first line is a JSON object that is one record"
    return "json", "it is one JSON document"


def csv_fields(line: str, separator: str = ",") -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r")], delimiter=separator), [])
    except csv.Error:
        return []


def columns_of(head: str, kind: Kind, format: str) -> list[str]:
    """The names of the fields of a file of this format, from its header or first record where it has one."""
    fixed = {
        ("run", "trec"): ["question", "Q0", "chunk", "rank", "score", "tag"],
        ("run", "msmarco"): ["question", "chunk", "rank"],
        ("run", "json"): ["question", "chunk", "score"],
        ("qrels", "trec"): ["question", "ignored", "chunk", "grade"],
        ("questions", "tsv"): ["id", "text"],
        ("chunks", "tsv"): ["id", "text"],
        ("chunks", "tsv-title"): ["id", "title", "text"],
        ("questions", "trec"): ["num", "title", "desc", "narr"],
    }
    if (kind, format) in fixed:
        return fixed[kind, format]
    first = next((line for line in head.split("\n") if line.strip()), "")
    if format == "csv":
        return csv_fields(first)
    if format == "beir" and kind == "qrels":
        return first.rstrip("\r").split("\t")
    if format in ("jsonl", "beir"):
        try:
            record = orjson.loads(first)
        except orjson.JSONDecodeError:
            return []
        return list(record) if isinstance(record, dict) else []
    return []

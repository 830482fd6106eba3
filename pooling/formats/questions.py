"""Questions from JSONL, BEIR, TSV, CSV and TREC topics."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from .columns import CHUNK_COLUMNS, QUESTION_COLUMNS, QUESTION_NAMES
from .faults import Findings
from .opening import Limits, Progress, Source, Unreadable
from .records import FieldReader, Raw, csv_records, id_from_json, jsonl_records, tsv_records
from .sniffing import Sniff, sniff
from .topics import topic_records

SPLITS = ("dev", "holdout")
CHUNK_KEYS = {"title", "text"}
# Keys under which no chunk has anything.
QUESTION_KEYS = {"query", "question", *QUESTION_NAMES, *(QUESTION_COLUMNS.keys() - CHUNK_COLUMNS.keys())}
# From this share of records that look like chunks on, a file is one of chunks.
NEARLY_ALL = 0.9
OWN_FIELDS = {"narrative", "slices", "split", "answerable", "group", "scope", "effective_date", "facts"}


class Fact(NamedTuple):
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One question as the file has it; what the file leaves out has its neutral value. `given` names the rest."""

    id: str
    text: str
    narrative: str = ""
    slices: tuple[str, ...] = ()
    split: str = ""
    answerable: bool = True
    group: str = ""
    scope: str = ""
    effective_date: date | None = None
    facts: tuple[Fact, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    given: frozenset[str] = field(default=frozenset(), compare=False)
    line: int = field(default=0, compare=False)


@dataclass
class QuestionFile:
    """What was read: `records` in the order of the file, each ID once. Empty where the file is unreadable.

    `read` counts the records of the file, repeated ones included; `digest` is the SHA-256 of the content.
    """

    sniff: Sniff | None = None
    records: list[QuestionRecord] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    read: int = 0
    digest: str | None = None


def read_questions(
    path: str | Path,
    *,
    format: str | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> QuestionFile:
    """Read a file of questions. Never raises on content: whatever is wrong stands in `findings`."""
    result = QuestionFile()
    findings = result.findings
    try:
        source = Source(path, limits=limits, progress=progress)
        result.sniff = sniff(source, "questions", format)
        kept: dict[str, QuestionRecord] = {}
        like_chunks = 0
        for raw in raw_questions(source, result.sniff, findings):
            result.read += 1
            like_chunks += raw.keys >= CHUNK_KEYS and not raw.keys & QUESTION_KEYS
            record = question(raw, findings)
            if record is not None:
                keep_once(record, kept, findings)
        if result.read and like_chunks >= NEARLY_ALL * result.read:
            findings.faults.add(
                "chunks-for-questions",
                count=like_chunks,
                field="title and text",
                expected="import the file as chunks; questions have one text, under text, query or question",
            )
        result.records = list(kept.values())
        result.digest = source.digest
    except Unreadable as error:
        findings.faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)
    check_groups(result.records, findings)
    if not result.records and not findings.faults:
        findings.faults.add("empty-file", expected="at least one question")
    return result


def raw_questions(source: Source, sniffed: Sniff, findings: Findings) -> Iterator[Raw]:
    if sniffed.format in ("jsonl", "beir"):
        return jsonl_records(source, findings, QUESTION_COLUMNS)
    if sniffed.format == "tsv":
        return tsv_records(source, findings, "questions", ("id", "text"))
    if sniffed.format == "csv":
        return with_ids(csv_records(source, findings, "questions"), findings)
    return topic_records(source, findings, xml=sniffed.format == "trec-xml")


def with_ids(records: Iterator[Raw], findings: Findings) -> Iterator[Raw]:
    """Questions that come without IDs get one from their text: the same text has the same ID ever after."""
    for raw in records:
        if "id" not in raw.fields:
            text = raw.fields.get("text", "")
            raw.fields["id"] = "q-" + hashlib.sha256(text.encode()).hexdigest()[:12]
            findings.warnings.add("ids-made", line=raw.line, field=raw.fields["id"], value=text)
        yield raw


def question(raw: Raw, findings: Findings) -> QuestionRecord | None:
    lift_own_fields(raw.fields)
    take = FieldReader(raw, findings)
    record = QuestionRecord(
        id=take.identifier("id"),
        text=take.text("text", needed=True),
        narrative=take.text("narrative"),
        slices=slices(take),
        split=take.text("split").strip().lower(),
        answerable=take.flag("answerable", True),
        group=take.optional_id("group"),
        scope=take.text("scope"),
        effective_date=take.day("effective_date"),
        facts=facts(take),
        metadata=take.mapping("metadata"),
        given=frozenset(raw.fields),
        line=raw.line,
    )
    if record.split and record.split not in SPLITS:
        take.wrong("split", "split", record.split, "dev or holdout")
    if take.good and not record.text.strip():
        take.wrong("empty-text", "text", record.text, "the question's text")
    return record if take.good else None


def lift_own_fields(fields: dict[str, Any]) -> None:
    """Our BEIR export keeps a question's fields in its metadata; taken back in, they are the question's again."""
    metadata = fields.get("metadata")
    if isinstance(metadata, dict) and metadata.keys() >= OWN_FIELDS:
        own = {name: metadata[name] for name in OWN_FIELDS}
        rest = {name: value for name, value in metadata.items() if name not in OWN_FIELDS}
        fields.update({**own, **fields, "metadata": rest})


def slices(take: FieldReader) -> tuple[str, ...]:
    names = take.values("slices")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            take.wrong("field-type", "slices", name, "a list of names in quotes")
            return ()
    return tuple(dict.fromkeys(names))


def facts(take: FieldReader) -> tuple[Fact, ...]:
    kept: dict[str, Fact] = {}
    for entry in take.values("facts"):
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str) or "id" not in entry:
            take.wrong("field-type", "facts", entry, 'a list of {"id": …, "text": …}')
            return ()
        name = id_from_json(entry["id"], take.raw.line, "facts.id", take.findings)
        if name is None:
            take.good = False
            return ()
        if name in kept and kept[name].text != entry["text"]:
            take.wrong(
                "same-id-other-content", "facts.id", name, "each fact of a question with an ID of its own"
            )
        kept[name] = Fact(name, entry["text"])
    return tuple(kept.values())


def keep_once(record: QuestionRecord, kept: dict[str, QuestionRecord], findings: Findings) -> None:
    earlier = kept.setdefault(record.id, record)
    if earlier is record:
        return
    if earlier == record:
        findings.warnings.add(
            "repeated",
            line=record.line,
            field=record.id,
            value=record.text,
            expected=f"first on line {earlier.line}",
        )
    else:
        findings.faults.add(
            "same-id-other-content",
            line=record.line,
            field=record.id,
            value=record.text,
            expected=f"the content of line {earlier.line}, which has the same ID: {earlier.text[:80]!r}",
        )


def check_groups(records: list[QuestionRecord], findings: Findings) -> None:
    """One group in two splits would let what is tuned on dev leak into the holdout."""
    first: dict[str, QuestionRecord] = {}
    for record in records:
        if not record.group:
            continue
        earlier = first.setdefault(record.group, record)
        if earlier.split != record.split:
            findings.faults.add(
                "group-in-two-splits",
                line=record.line,
                field=record.group,
                value=f"{record.id}: {record.split or 'no split'}",
                expected=f"{earlier.split or 'no split'}, as {earlier.id} on line {earlier.line}",
            )

"""Chunks from BEIR, JSONL, TSV and CSV, as a stream: a corpus may be larger than the memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from .columns import CHUNK_COLUMNS
from .faults import Findings
from .opening import Limits, Progress, Source, Unreadable
from .records import FieldReader, Raw, csv_records, jsonl_records, tsv_records
from .sniffing import Sniff, sniff


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk as the file has it; what the file leaves out has its neutral value.

    `doc_id` is the parent document; `start` and `end` the span of characters in it; `given` names the fields
    that the file has.
    """

    id: str
    text: str
    title: str = ""
    doc_id: str = ""
    url: str = ""
    revision: str = ""
    start: int | None = None
    end: int | None = None
    effective_from: date | None = None
    effective_to: date | None = None
    scope: str = ""
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    given: frozenset[str] = field(default=frozenset(), compare=False)
    line: int = field(default=0, compare=False)


class ChunkFile:
    """Iterate once: yields the good records in the order of the file, and fills `findings` meanwhile.

    The same ID may come more than once: whoever stores the stream compares (see `same_id_fault`), since
    keeping every ID in memory would not do for millions. `read` counts the records seen so far and
    `digest` is known at the end. With `wanted`, other IDs are counted in `left_out` and not looked at.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        wanted: Container[str] | None = None,
        limits: Limits | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.findings = Findings()
        self.sniff: Sniff | None = None
        self.read = 0
        self.left_out = 0
        self.digest: str | None = None
        self._wanted = wanted
        self._source: Source | None = None
        try:
            self._source = Source(path, limits=limits, progress=progress)
            self.sniff = sniff(self._source, "chunks", format)
        except Unreadable as error:
            self._unreadable(error)

    def _unreadable(self, error: Unreadable) -> None:
        self.findings.faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)

    def __iter__(self) -> Iterator[ChunkRecord]:
        if self._source is None or self.sniff is None:
            return
        try:
            for raw in raw_chunks(self._source, self.sniff, self.findings):
                self.read += 1
                if self._wanted is not None and str(raw.fields.get("id")) not in self._wanted:
                    self.left_out += 1
                    continue
                record = chunk(raw, self.findings)
                if record is not None:
                    yield record
        except Unreadable as error:
            self._unreadable(error)
        self.digest = self._source.digest
        if self.read == 0 and not self.findings.faults:
            self.findings.faults.add("empty-file", expected="at least one chunk")


def raw_chunks(source: Source, sniffed: Sniff, findings: Findings) -> Iterator[Raw]:
    if sniffed.format in ("jsonl", "beir"):
        return jsonl_records(source, findings, CHUNK_COLUMNS)
    if sniffed.format == "csv":
        return csv_records(source, findings, "chunks")
    names = ("id", "title", "text") if sniffed.format == "tsv-title" else ("id", "text")
    return tsv_records(source, findings, "chunks", names)


def chunk(raw: Raw, findings: Findings) -> ChunkRecord | None:
    lift_own_fields(raw.fields)
    take = FieldReader(raw, findings)
    record = ChunkRecord(
        id=take.identifier("id"),
        text=take.text("text", needed=True),
        title=take.text("title"),
        doc_id=take.optional_id("doc_id"),
        url=take.text("url"),
        revision=take.label("revision"),
        start=take.whole_number("start"),
        end=take.whole_number("end"),
        effective_from=take.day("effective_from"),
        effective_to=take.day("effective_to"),
        scope=take.text("scope"),
        metadata=take.mapping("metadata"),
        given=frozenset(raw.fields),
        line=raw.line,
    )
    if not take.good:
        return None
    if record.start is not None and record.end is not None and record.end < record.start:
        take.wrong("span", "end", record.end, f"at least start, {record.start}")
    if record.effective_from and record.effective_to and record.effective_to < record.effective_from:
        take.wrong(
            "span", "effective_to", record.effective_to, f"not before effective_from, {record.effective_from}"
        )
    if not record.text.strip():
        findings.warnings.add(
            "empty-text", line=raw.line, field=record.id, expected="a text that can be judged"
        )
    return record if take.good else None


def lift_own_fields(fields: dict[str, Any]) -> None:
    """BEIR keeps everything beside title and text in the metadata; parent and address have fields of their own."""
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        own = {name: metadata[name] for name in ("doc_id", "url") if isinstance(metadata.get(name), str)}
        if own:
            rest = {name: value for name, value in metadata.items() if name not in own}
            fields.update({**own, **fields, "metadata": rest})


def same_id_fault(
    findings: Findings, *, id: str, line: int, text: str, earlier_line: int, earlier_text: str
) -> None:
    """One ID with two contents in one file: nobody can know which is meant."""
    findings.faults.add(
        "same-id-other-content",
        line=line,
        field=id,
        value=text,
        expected=f"the content of line {earlier_line}, which has the same ID: {earlier_text[:80]!r}",
    )


def repeated_warning(
    findings: Findings, *, id: str, line: int, text: str, earlier_line: int, count: int = 1
) -> None:
    findings.warnings.add(
        "repeated", line=line, field=id, value=text, expected=f"first on line {earlier_line}", count=count
    )

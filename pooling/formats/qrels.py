"""Existing labels: TREC qrels, BEIR qrels, label JSON and JSONL, CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ijson

from .columns import columns_found
from .faults import Findings
from .json_values import Members, add_key_fault, json_events, json_objects, repeated_keys
from .opening import Limits, Progress, Source, Unreadable
from .records import csv_records, id_from_json, table_records
from .sniffing import Sniff, sniff
from .spreadsheets import as_it_was
from .text import id_is_good, lines, word_is_good
from .trec import NUMBER, fields_of_lines

Negative = Literal["refuse", "skip", "zero"]

WHOLE = re.compile(r"([+-]?\d{1,9})(?:\.0*)?", re.ASCII)
NEGATIVE_EXPLAINED = (
    "a grade of 0 or more; in several TREC tracks -1 marks pooled but unjudged and -2 junk: an option skips "
    "them, another imports 0"
)
# what our own qrels have in the second column of an outside judge's label
MARK_OF_MODEL = "model"
# in a record of a whole question "question" is its text, and "id" comes with it
QUESTION_KEYS = ("id", "_id", "qid", "question_id", "question")
RECORD_LISTS = ("questions", "records", "labels")


class LabelRecord(NamedTuple):
    question: str
    chunk: str
    grade: int
    line: int


class RawLabel(NamedTuple):
    line: int
    question: str
    chunk: str
    grade: object  # text from columns, a JSON value from records
    by_model: bool = False


@dataclass
class QrelsFile:
    """What was read: each pair once, in the order of the file.

    `read` counts the labels of the file, repeated and skipped ones included; `skipped_negative` those that
    `negative="skip"` left out, `zeroed_negative` those that `negative="zero"` took as 0, `skipped_models` those that
    our own export marks as a model's; `grades` counts each grade as the file writes it, before negatives are changed.
    """

    sniff: Sniff | None = None
    records: list[LabelRecord] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    read: int = 0
    skipped_negative: int = 0
    skipped_models: int = 0
    zeroed_negative: int = 0
    grades: dict[int, int] = field(default_factory=dict)
    digest: str | None = None


def read_qrels(
    path: str | Path,
    *,
    format: str | None = None,
    allowed: Collection[int] | None = None,
    negative: Negative = "refuse",
    with_models: bool = False,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> QrelsFile:
    """Read labels. `allowed` are the grades of the scale (None takes any of 0 or more). Labels that our own export
    marks as a model's are left out, with a warning, unless `with_models`.

    Never raises on content: whatever is wrong stands in `findings`.
    """
    result = QrelsFile()
    findings = result.findings
    kept: dict[tuple[str, str], LabelRecord] = {}
    names: dict[str, str] = {}  # one string object a name, since each comes many times
    try:
        source = Source(path, limits=limits, progress=progress)
        result.sniff = sniff(source, "qrels", format)
        for raw in READERS[result.sniff.format](source, findings):
            result.read += 1
            if raw.by_model and not with_models:
                result.skipped_models += 1
                findings.warnings.add(
                    "label-of-model",
                    line=raw.line,
                    field=f"{raw.question}, {raw.chunk}",
                    value=raw.grade,
                    expected="people's labels; what a model says is imported as an outside judge",
                )
                continue
            grade = grade_of(raw, findings)
            if grade is None:
                continue
            result.grades[grade] = result.grades.get(grade, 0) + 1
            if grade < 0:
                if negative == "refuse":
                    findings.faults.add(
                        "grade-negative",
                        line=raw.line,
                        field="grade",
                        value=grade,
                        expected=NEGATIVE_EXPLAINED,
                    )
                    continue
                if negative == "skip":
                    result.skipped_negative += 1
                    continue
                result.zeroed_negative += 1
                grade = 0
            if allowed is not None and grade not in allowed:
                findings.faults.add(
                    "grade-outside-scale",
                    line=raw.line,
                    field="grade",
                    value=grade,
                    expected=f"one of {', '.join(map(str, sorted(allowed)))}",
                )
                continue
            question = names.setdefault(raw.question, raw.question)
            chunk = names.setdefault(raw.chunk, raw.chunk)
            keep_once(LabelRecord(question, chunk, grade, raw.line), kept, findings)
        result.digest = source.digest
    except Unreadable as error:
        findings.faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)
    if result.read == 0 and not findings.faults:
        findings.faults.add("empty-file", expected="at least one label")
    result.records = list(kept.values())
    return result


def keep_once(label: LabelRecord, kept: dict[tuple[str, str], LabelRecord], findings: Findings) -> None:
    earlier = kept.setdefault((label.question, label.chunk), label)
    if earlier is label:
        return
    pair = f"{label.question}, {label.chunk}"
    if earlier.grade == label.grade:
        findings.warnings.add(
            "repeated",
            line=label.line,
            field=pair,
            value=label.grade,
            expected=f"first on line {earlier.line}",
        )
    else:
        findings.faults.add(
            "pair-two-grades",
            line=label.line,
            field=pair,
            value=label.grade,
            expected=f"one grade a pair; line {earlier.line} says {earlier.grade}",
        )


def grade_of(raw: RawLabel, findings: Findings) -> int | None:
    """The whole number a grade stands for ("1.0" is 1), or None after a fault. Nothing is ever rounded."""
    value = raw.grade
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**9:
        return int(value)
    text = value if isinstance(value, str) else ""
    whole = WHOLE.fullmatch(text)
    if whole:
        return int(whole.group(1))
    if isinstance(value, float) or NUMBER.fullmatch(text):
        findings.faults.add(
            "grade-fraction",
            line=raw.line,
            field="grade",
            value=value,
            expected="a whole number; choose how fractions become grades before the import, cutting them off is wrong",
        )
    else:
        findings.faults.add("grade", line=raw.line, field="grade", value=value, expected="a whole number")
    return None


def trec_labels(source: Source, findings: Findings) -> Iterator[RawLabel]:
    """Four columns; the second (an iteration, an assessor, Q0) is ignored, but for our own mark of a model's label."""
    number, offset = 1, 0
    for block in source.blocks():
        for line, fields in fields_of_lines(block, number, offset, findings):
            if len(fields) != 4:
                findings.faults.add(
                    "columns",
                    line=line,
                    field=columns_found(len(fields)),
                    value=" ".join(fields),
                    expected=four_columns(len(fields)),
                )
                continue
            question, mark, chunk, grade = fields
            if ids_are_good(question, chunk, line, findings, word_is_good):
                yield RawLabel(line, question, chunk, grade, mark == MARK_OF_MODEL)
        number += block.count(b"\n")
        offset += len(block)


def four_columns(found: int) -> str:
    expected = "four columns: question, 0, chunk, grade"
    if found == 6:
        return f"{expected}; six columns are a run, which is imported as a run"
    if found == 3:
        return f"{expected}; with three columns the grade or the second column is missing (BEIR's form has a header)"
    if found > 4:
        return f"{expected}; more nearly always means a space inside an ID"
    return expected


def ids_are_good(
    question: str,
    chunk: str,
    line: int,
    findings: Findings,
    is_good: Callable[..., bool] = id_is_good,
) -> bool:
    first = is_good(question, line=line, field="question", findings=findings)
    return is_good(chunk, line=line, field="chunk", findings=findings) and first


def beir_labels(source: Source, findings: Findings) -> Iterator[RawLabel]:
    rows = ((line, text.split("\t")) for line, text in lines(source, findings) if text.strip())
    header = next(rows, None)
    if header is not None:
        for raw in table_records(header, rows, findings, "qrels"):
            yield from column_label(raw.line, raw.fields, findings)


def csv_labels(source: Source, findings: Findings) -> Iterator[RawLabel]:
    for raw in csv_records(source, findings, "qrels"):
        if "from_model" in raw.fields:  # our own export
            raw.fields.update({name: as_it_was(raw.fields[name]) for name in ("question", "chunk")})
        yield from column_label(raw.line, raw.fields, findings)


def column_label(line: int, fields: Mapping[str, str], findings: Findings) -> Iterator[RawLabel]:
    if ids_are_good(fields["question"], fields["chunk"], line, findings):
        by_model = fields.get("from_model", "").strip().lower() in ("yes", "true")
        yield RawLabel(line, fields["question"], fields["chunk"], fields["grade"].strip(), by_model)


def jsonl_labels(source: Source, findings: Findings) -> Iterator[RawLabel]:
    for line, record in json_objects(source, findings, as_members=True):
        yield from record_labels(line, record, findings)


def json_labels(source: Source, findings: Findings) -> Iterator[RawLabel]:
    """A list of records, or an object with such a list under questions, records or labels; streamed."""
    expected = "a list of label records"
    found = False
    # The level that records stand at, 0 outside of their list; and the last key of the document.
    records_at, name = 0, ""
    builder: ijson.ObjectBuilder | None = None
    start = 0
    for line, level, event, value in json_events(source, findings, expected=expected):
        if builder is not None:
            builder.event(event, value)
            if event == "end_map" and level == records_at:
                yield from record_labels(start, builder.value, findings)
                builder = None
        elif level == records_at > 0 and event == "start_map":
            found, start = True, line
            builder = ijson.ObjectBuilder(map_type=Members)
            builder.event(event, value)
        elif level == records_at > 0:
            findings.faults.add("field-type", line=line, value=value, expected=expected)
            return
        elif level == 0:
            records_at = 1 if event == "start_array" else 0
        elif level == 1 and event == "map_key":
            name = value
        elif level == 1:
            records_at = 2 if event == "start_array" and name in RECORD_LISTS else 0
    if not found and not findings.faults:
        findings.faults.add("field-type", line=1, expected=expected)


def record_labels(line: int, record: dict[str, Any], findings: Findings) -> Iterator[RawLabel]:
    """The pairs of one question's record: its `grades`; or the one pair of a record with `chunk` and `grade`.

    A chunk twice in `grades` is two labels, which are compared as any; another key twice is a fault.
    """
    if isinstance(record, Members) and len(record.said) > len(record):
        for key in repeated_keys(record.said):
            add_key_fault(key, line, findings)
        return
    name = next((record[key] for key in QUESTION_KEYS if record.get(key) is not None), None)
    if name is None:
        findings.faults.add(
            "missing-field", line=line, field="id", value=", ".join(record), expected="the question's ID"
        )
        return
    question = id_from_json(name, line, "id", findings)
    grades = record.get("grades")
    if grades is None and "grade" in record and "chunk" in record:
        chunk = id_from_json(record["chunk"], line, "chunk", findings)
        grades = Members([] if chunk is None else [(chunk, record["grade"])])
    if not isinstance(grades, Members):
        kind = "missing-field" if grades is None else "field-type"
        findings.faults.add(kind, line=line, field="grades", value=name, expected='{"chunk": grade, …}')
        return
    if question is None:
        return
    by_models = record.get("model_ids")
    by_models = set(map(str, by_models)) if isinstance(by_models, list) else set()
    for chunk, grade in grades.said:
        if id_is_good(chunk, line=line, field="grades", findings=findings):
            yield RawLabel(line, question, chunk, grade, chunk in by_models)


READERS: dict[str, Callable[[Source, Findings], Iterator[RawLabel]]] = {
    "trec": trec_labels,
    "beir": beir_labels,
    "json": json_labels,
    "jsonl": jsonl_labels,
    "csv": csv_labels,
}

"""Records of named fields from JSONL, CSV and TSV, before anybody asks what they mean."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from .columns import COLUMNS, NEEDED, Columns, columns_found, is_header, locate, names_of
from .faults import Findings
from .json_values import json_objects, parse_json
from .opening import Limits, Source
from .text import id_is_good, lines, warn_if_decoded_twice

LARGEST_JSON_ID = 2**63
LARGEST_NUMBER = 2**31 - 1  # of the columns that hold them
DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

# The default of 128 KiB would refuse long chunks. The limit is the process's own; ours bounds a line anyway.
csv.field_size_limit(Limits().line_bytes)


class Raw(NamedTuple):
    """One record: our names of the fields -> their values, as JSON types or, from columns, as text.

    `keys` are the file's own names of them where it is JSONL, read or not.
    """

    line: int
    fields: dict[str, Any]
    keys: frozenset[str] = frozenset()


def jsonl_records(source: Source, findings: Findings, columns: Columns) -> Iterator[Raw]:
    """JSONL under our names; keys that were not read are counted as a warning."""
    for number, value in json_objects(source, findings):
        fields: dict[str, Any] = {}
        read = set()
        for name, aliases in columns.items():
            for alias in aliases:
                if alias in value:
                    fields[name] = value[alias]
                    read.add(alias)
                    break
        for key in value:
            if key not in read:
                findings.warnings.add("keys-ignored", line=number, field=key, expected=", ".join(columns))
        yield Raw(number, fields, frozenset(value))


def csv_rows(source: Source, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """RFC 4180 records that are not blank, with the number of the line each starts on."""
    seen = 0

    def numbered() -> Iterator[str]:
        nonlocal seen
        for number, text in lines(source, findings, keep_ends=True):
            seen = number
            yield text

    reader = csv.reader(numbered(), strict=True)
    while True:
        start = seen + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            findings.faults.add(
                "quotes",
                line=start,
                value=f"lines {start} to {seen}: {error}",
                expected='a field with quotes, commas or line feeds inside is quoted; a quote inside is doubled ("")',
            )
            return
        if row:
            yield start, row


def csv_records(source: Source, findings: Findings, kind: str) -> Iterator[Raw]:
    """The rows of a CSV file with a header, under our names; empty optional fields are left out."""
    rows = csv_rows(source, findings)
    first = next(rows, None)
    if first is None:
        return
    yield from table_records(first, rows, findings, kind)


def table_records(
    header: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]], findings: Findings, kind: str
) -> Iterator[Raw]:
    number, names = header
    columns = COLUMNS[kind]
    if not is_header(names, kind):
        hint = ""
        for character, called in ((";", "semicolons"), ("\t", "tabs")):
            if character in names[0]:
                hint = f"; the columns seem to be separated by {called}, save with commas"
        for missing in NEEDED[kind]:
            if missing not in locate(names, columns)[0]:
                findings.faults.add(
                    "header",
                    line=number,
                    field=missing,
                    value=", ".join(names),
                    expected=f"a column {names_of(columns, missing)}{hint}",
                )
        return
    positions, unknown = locate(names, columns)
    for name in unknown:
        findings.warnings.add("columns-ignored", line=number, field=name, expected=", ".join(columns))
    for line, row in rows:
        if len(row) != len(names):
            findings.faults.add(
                "columns",
                line=line,
                field=columns_found(len(row)),
                value=",".join(row),
                expected=f"{len(names)} columns as in the header; a comma inside a field needs quotes around the field",
            )
            continue
        fields = {name: row[at] for name, at in positions.items()}
        yield Raw(line, {name: value for name, value in fields.items() if value or name in NEEDED[kind]})


def tsv_records(source: Source, findings: Findings, kind: str, names: Sequence[str]) -> Iterator[Raw]:
    """`names` columns a line, split at the first tabs only, so that the last may hold tabs. Quotes are plain.

    A header is skipped where it names these columns in this order, and a fault where it names others.
    """
    first = True
    for number, text in lines(source, findings):
        if not text:
            continue
        parts = text.split("\t", len(names) - 1)
        if first:
            first = False
            header = text.split("\t")
            positions = locate(header, COLUMNS[kind])[0]
            if is_header(header, kind) and "id" in positions:
                if [positions.get(name) for name in names] != [*range(len(header))]:
                    findings.faults.add(
                        "header",
                        line=number,
                        value=text,
                        expected=f"the columns {', '.join(names)} alone; a table with others is read as CSV, "
                        "with commas between the columns",
                    )
                    return
                findings.warnings.add("header-skipped", line=number, value=text)
                continue
        if len(parts) != len(names):
            findings.faults.add(
                "columns",
                line=number,
                field=columns_found(len(parts)),
                value=text,
                expected=f"{', tab, '.join(names)}; a text with line feeds inside needs JSONL",
            )
            continue
        yield Raw(number, dict(zip(names, parts, strict=True)))


class FieldReader:
    """Takes typed values out of one raw record; each wrong one is a fault, after which `good` is False."""

    def __init__(self, raw: Raw, findings: Findings) -> None:
        self.raw = raw
        self.findings = findings
        self.good = True

    def wrong(self, kind: str, field: str, value: object, expected: str) -> None:
        self.good = False
        self.findings.faults.add(kind, line=self.raw.line, field=field, value=value, expected=expected)

    def identifier(self, field: str) -> str:
        value = self.raw.fields.get(field)
        if value is None:
            self.wrong("missing-field", field, ", ".join(self.raw.fields), f"a field {field}")
            return ""
        text = id_from_json(value, self.raw.line, field, self.findings)
        if text is None:
            self.good = False
            return ""
        return text

    def text(self, field: str, *, needed: bool = False) -> str:
        value = self.raw.fields.get(field)
        if value is None:
            if needed:
                self.wrong("missing-field", field, ", ".join(self.raw.fields), f"a field {field}")
            return ""
        if not isinstance(value, str):
            self.wrong("field-type", field, value, "text in quotes")
            return ""
        warn_if_decoded_twice(value, line=self.raw.line, field=field, findings=self.findings)
        return value

    def optional_id(self, field: str) -> str:
        value = self.raw.fields.get(field)
        return "" if value is None or value == "" else self.identifier(field)

    def label(self, field: str) -> str:
        """A short text that some tools write as a number."""
        value = self.raw.fields.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return self.text(field)

    def flag(self, field: str, default: bool) -> bool:
        value = self.raw.fields.get(field)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in ("true", "yes", "1"):
            return True
        if isinstance(value, str) and value.strip().lower() in ("false", "no", "0"):
            return False
        self.wrong("field-type", field, value, "true or false")
        return default

    def whole_number(self, field: str) -> int | None:
        value = self.raw.fields.get(field)
        if value is None:
            return None
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
            self.wrong("field-type", field, value, f"a whole number from 0 to {LARGEST_NUMBER:,}")
            return None
        return value

    def day(self, field: str) -> date | None:
        value = self.raw.fields.get(field)
        if value is None:
            return None
        try:
            if not isinstance(value, str) or not DAY.fullmatch(value):
                raise ValueError
            return date.fromisoformat(value)
        except ValueError:
            self.wrong("date", field, value, "YYYY-MM-DD")
            return None

    def values(self, field: str) -> list[Any]:
        """A JSON list; from a column, JSON as well or the parts between semicolons."""
        value = self.raw.fields.get(field)
        if value is None:
            return []
        if isinstance(value, str):
            if not value.lstrip().startswith("["):
                return [part.strip() for part in value.split(";") if part.strip()]
            value = parse_json(value, self.raw.line, self.findings)
            if value is None:  # and the fault is told
                self.good = False
                return []
        if not isinstance(value, list):
            self.wrong("field-type", field, value, "a list")
            return []
        return value

    def mapping(self, field: str) -> dict[str, Any]:
        value = self.raw.fields.get(field)
        if isinstance(value, str):
            value = parse_json(value, self.raw.line, self.findings) if value.strip() else None
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong("field-type", field, value, "a JSON object")
            return {}
        return value


def id_from_json(value: object, line: int | None, field: str, findings: Findings) -> str | None:
    """An ID from a JSON value, or None after a fault. A whole number is taken as its digits, with a warning."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_JSON_ID:
        findings.warnings.add(
            "id-number", line=line, field=field, value=value, expected=f'"{value}" in quotes'
        )
        value = str(value)
    if not isinstance(value, str):
        findings.faults.add(
            "field-type", line=line, field=field, value=value, expected="an ID as text in quotes"
        )
        return None
    return value if id_is_good(value, line=line, field=field, findings=findings) else None

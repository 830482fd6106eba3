"""What a reader found wrong, kept small whatever the size of the file.

Every kind of fault or warning is counted, and only the first examples are kept. `as_json()` gives the
shape that commands print and pages show:
`[{"kind", "meaning", "count", "examples": [{"line", "field", "value", "expected"}]}]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

EXAMPLES_KEPT = 20
VALUE_SHOWN = 80

# One sentence a kind, for pages, command output and the documentation.
MEANINGS: dict[str, str] = {
    # the file as a whole
    "unknown-format": "The file does not look like any of the formats this import takes.",
    "empty-file": "The file has no result lines.",
    "compression": "The compressed file is damaged, cut short or compressed in a way that is not taken.",
    "unpacked-size": "The unpacked content is larger than the limit.",
    "archive": "The archive cannot be taken as it is.",
    "archive-name": "A name inside the archive leads out of its folder.",
    "unreadable": "The file cannot be read.",
    # text
    "encoding": "The bytes are not UTF-8.",
    "nul": "A NUL character stands in the text.",
    "control-character": "An ID holds a control character.",
    "line-length": "A line is longer than the limit.",
    "mojibake": "The text looks as if it had been decoded twice with the wrong code page; it is taken as it is.",
    # fields
    "columns": "A line has the wrong number of columns.",
    "header": "The header line does not name the columns that are needed.",
    "columns-ignored": "These columns are not known and were not read.",
    "header-skipped": "The first line names the columns and was not read as a record.",
    "quotes": "The quotes of a CSV record do not match.",
    "json": "The line is not valid JSON.",
    "json-depth": "The JSON is nested too deeply.",
    "key-twice": "A JSON object has the same key more than once.",
    "missing-field": "A record lacks a field that is needed.",
    "field-type": "A field is not of the type that is needed.",
    "keys-ignored": "These keys were not read: they are not known, or another key stands for the same.",
    "date": "A date is not written as YYYY-MM-DD.",
    "span": "A span or period ends before it starts.",
    "split": "The split is neither dev nor holdout.",
    "empty-text": "The text is empty.",
    "id-white-space": "An ID holds white space though the columns of the file are separated by it.",
    "id-empty": "An ID is empty.",
    "id-length": "An ID is longer than 512 characters.",
    "id-number": "An ID was written as a JSON number and is taken as the text of that number.",
    "ids-made": "The questions have no IDs; IDs were made from their text.",
    "topic": "A topic cannot be read.",
    "chunks-for-questions": "The records look like chunks: they have a title beside their text.",
    # records against each other
    "same-id-other-content": "One ID stands for two different contents.",
    "repeated": "The same record stands in the file more than once and is counted once.",
    "group-in-two-splits": "The questions of one group are in more than one split.",
    # runs
    "score": "A score is not a finite number.",
    "rank": "A rank is not a number.",
    "rank-suspicious": "A rank is not a small whole number; a space inside an ID shifts the columns.",
    "rank-contradicts-score": "The rank column gives another order than the scores.",
    "ties": "Scores are tied; within a tie the order comes from the rank column, then from the lines.",
    "duplicate-chunk": "A chunk stands twice in one ranking.",
    "duplicates-dropped": "A chunk stood twice in one ranking; its first place was kept.",
    "several-tags": "The file carries more than one run tag.",
    "ranking-twice": "A question has more than one ranking in the file.",
    # labels
    "grade": "A grade is not a whole number.",
    "grade-fraction": "A grade is a fraction.",
    "grade-negative": "A grade is below zero.",
    "grade-outside-scale": "A grade is not on the scale of the eval set.",
    "pair-two-grades": "One question/chunk pair has two different grades.",
    "scale-reversed": "The systems rank the low grades above the high ones: the codes may run backwards.",
    "other-grade": "Somebody else gave the pair another grade.",
    "label-of-model": "The label is marked as a model's, which is no judgment; it was left out.",
    "judge-regraded": "The judge gave the pair another grade in this repetition before; the new one replaces it.",
    "older-text": "The answer was given on an older text of the chunk and stays with it.",
    # the file against the eval set
    "no-questions": "The eval set has no questions yet.",
    "no-question-overlap": "None of the question IDs is known to the eval set.",
    "no-chunk-overlap": "None of the chunk IDs is known to the eval set.",
    "unknown-question": "The eval set does not have this question.",
    "unknown-chunk": "The eval set does not have this chunk.",
    "unknown-revision": "The chunk has no such revision.",
    "questions-skipped": "The eval set does not have these questions; they were left out.",
    "questions-missing": "The file says nothing of these questions of the eval set.",
    "questions-declared-empty": "The file says nothing of these questions; they were declared empty.",
    "cut-without-text": "Passages were cut short, but their texts are not there; they stay unjudged.",
    "questions-empty": "The run returned nothing for these questions.",
    "questions-without-labels": "These questions have no label in the file.",
    "question-reworded": "The question's text changes.",
    "judged-question-reworded": "The question's text changes though it was judged with the old one.",
    "chunks-without-text": "The text of these chunks is not there yet; nobody can judge them until it is.",
    "chunk-known-otherwise": "The ID is not known, but one that is written otherwise is; IDs are compared exactly.",
    "chunk-revised": "The chunk's text changes: a new revision.",
    "labels-left-behind": "Labels stay with the older texts that were read; the new texts are unjudged.",
    "more-than-k": "Rankings are longer than the k that was asked for.",
    "run-name": "The name of the run cannot be taken.",
    "system-name": "The name of the system cannot be taken.",
    "tag-shared": "Another run of this system came from a file with the same tag.",
    "identical-run": "Another system's run has exactly these rankings.",
    "not-answered": "A pair carries no grade and no reason; it stays open.",
}


class Example(NamedTuple):
    line: int | None
    field: str
    value: str
    expected: str


@dataclass
class Entry:
    count: int = 0
    examples: list[Example] = field(default_factory=list)


class Faults:
    """Counts by kind, with the first examples of each. False when empty."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def add(
        self,
        kind: str,
        *,
        line: int | None = None,
        field: str = "",
        value: object = "",
        expected: str = "",
        count: int = 1,
    ) -> None:
        """Count one (or `count`) of a kind and keep it as an example while there are few."""
        entry = self._entries.setdefault(kind, Entry())
        entry.count += count
        if len(entry.examples) < EXAMPLES_KEPT:
            entry.examples.append(Example(line, shorten(field), shorten(value), expected))

    def has_room(self, kind: str) -> bool:
        """Whether another example of this kind would be kept: lets a caller skip costly explanations."""
        entry = self._entries.get(kind)
        return entry is None or len(entry.examples) < EXAMPLES_KEPT

    def count(self, kind: str | None = None) -> int:
        if kind is not None:
            return self._entries[kind].count if kind in self._entries else 0
        return sum(entry.count for entry in self._entries.values())

    def kinds(self) -> list[str]:
        return list(self._entries)

    def examples(self, kind: str) -> list[Example]:
        return list(self._entries[kind].examples) if kind in self._entries else []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        return iter(self._entries.items())

    def as_json(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": kind,
                "meaning": MEANINGS.get(kind, ""),
                "count": entry.count,
                "examples": [example._asdict() for example in entry.examples],
            }
            for kind, entry in self._entries.items()
        ]


@dataclass
class Findings:
    """What one reading found: faults stop an import, warnings are only told."""

    faults: Faults = field(default_factory=Faults)
    warnings: Faults = field(default_factory=Faults)


def shorten(value: object) -> str:
    """The value as text, cut so that a report stays readable; NUL is shown, since databases refuse it."""
    text = value if isinstance(value, str) else str(value)
    text = text.replace("\x00", "\\0")
    return text if len(text) <= VALUE_SHOWN else text[: VALUE_SHOWN - 1] + "…"

"""Runs as JSONL (one ranking a line), as nested JSON (question, chunk, score) and as CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .columns import CHUNK_NAMES, QUESTION_NAMES
from .entries import EntryBuilder
from .faults import Findings
from .json_values import json_events, json_objects
from .opening import Source
from .records import csv_records, id_from_json
from .text import id_is_good
from .trec import Tags, number

QUESTION_KEYS = (*QUESTION_NAMES, "_id", "id")
CHUNK_KEYS = ("id", "_id", *CHUNK_NAMES)
RANKING_KEYS = {"results", "abstained", "query", "question", "text", *QUESTION_KEYS}


class Passage(NamedTuple):
    """The text of a chunk as a run packed it: cut short or not. None where the run gave no text."""

    text: str | None
    truncated: bool


@dataclass
class JsonRun:
    """What JSON can say beyond entries: a ranking that is there but empty, abstention, the text of passages.

    `lines` has each question with the line of its ranking; `passages` goes by the row of the entry.
    """

    builder: EntryBuilder = field(default_factory=EntryBuilder)
    lines: dict[str, int] = field(default_factory=dict)
    reports_abstention: bool = False
    abstained: set[str] = field(default_factory=set)
    passages: dict[int, Passage] = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)


def read_jsonl(source: Source, findings: Findings) -> JsonRun:
    run = JsonRun()
    for line, record in json_objects(source, findings):
        question = first_id(record, QUESTION_KEYS, "qid", line, findings)
        if question is None:
            continue
        if question in run.lines:
            findings.faults.add(
                "ranking-twice",
                line=line,
                field=f"question {question}",
                expected=f"one ranking a question; the first is on line {run.lines[question]}",
            )
            continue
        run.lines[question] = line
        for key in record.keys() - RANKING_KEYS:
            findings.warnings.add(
                "keys-ignored", line=line, field=key, expected=", ".join(sorted(RANKING_KEYS))
            )
        abstained = record.get("abstained", False)
        if not isinstance(abstained, bool):
            findings.faults.add(
                "field-type", line=line, field="abstained", value=abstained, expected="true or false"
            )
        elif "abstained" in record:
            run.reports_abstention = True
            if abstained:
                run.abstained.add(question)
        results = record.get("results")
        if results is None and abstained is True:
            results = []
        if not isinstance(results, list):
            kind = "missing-field" if results is None else "field-type"
            findings.faults.add(
                kind,
                line=line,
                field="results",
                value=results or "",
                expected="a list; an empty ranking is []",
            )
            continue
        read_results(run, question, results, line, findings)
    return run


def read_results(run: JsonRun, question: str, results: list[Any], line: int, findings: Findings) -> None:
    scored = unscored = 0
    for position, result in enumerate(results, 1):
        if isinstance(result, str | int):
            result = {"id": result}
        if not isinstance(result, dict):
            findings.faults.add(
                "field-type",
                line=line,
                field=f"result {position}",
                value=result,
                expected='{"id": …, "score": …}',
            )
            continue
        chunk = first_id(result, CHUNK_KEYS, f"result {position}: id", line, findings)
        score = json_number(result.get("score"), "score", position, line, findings)
        rank = json_number(result.get("rank"), "rank", position, line, findings)
        text, truncated = result.get("text"), result.get("truncated", False)
        if (text is not None and not isinstance(text, str)) or not isinstance(truncated, bool):
            findings.faults.add(
                "field-type",
                line=line,
                field=f"result {position}",
                value=truncated if text is None or isinstance(text, str) else text,
                expected="text in quotes, truncated true or false",
            )
            continue
        if result.get("score") is None:
            unscored += 1
        else:
            scored += 1
        if chunk is None:
            continue
        if text is not None or truncated:
            run.passages[len(run.builder)] = Passage(text, truncated)
        run.builder.add(question, chunk, rank=rank, score=score, line=line)
    if scored and unscored:
        findings.faults.add(
            "score",
            line=line,
            field=f"question {question}",
            value=f"{unscored} of {len(results)} results have no score",
            expected="a score on every result of a ranking or on none",
        )


def first_id(
    record: dict[str, Any], keys: tuple[str, ...], name: str, line: int, findings: Findings
) -> str | None:
    for key in keys:
        if key in record:
            return id_from_json(record[key], line, name, findings)
    findings.faults.add(
        "missing-field", line=line, field=name, value=", ".join(record), expected=" or ".join(keys[:4])
    )
    return None


def json_number(value: object, kind: str, position: int, line: int, findings: Findings) -> float | None:
    if value is None:
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond what a float holds
        pass
    findings.faults.add(
        kind,
        line=line,
        field=f"result {position}: {kind}",
        value=value,
        expected="a finite number without quotes",
    )
    return None


def read_nested(source: Source, findings: Findings) -> JsonRun:
    """One object of objects, streamed: `{question: {chunk: score}}`."""
    run = JsonRun()
    question: str | None = None
    chunk = ""
    expected = 'one object: {"question": {"chunk": score}}'
    for line, level, event, value in json_events(source, findings, expected=expected):
        if event in ("start_map", "start_array"):
            if level < 3 and (event == "start_array" or level == 2):
                wrong_shape(findings, line, "a list" if event == "start_array" else "an object")
        elif event == "map_key":
            if level == 1:
                question = nested_question(run, value, line, findings)
            elif level == 2:
                chunk = value
        elif event not in ("end_map", "end_array"):
            if level < 2:
                wrong_shape(findings, line, value)
            elif level == 2 and question is not None:
                add_nested(run, question, chunk, value, line, findings)
    return run


def wrong_shape(findings: Findings, line: int, value: object) -> None:
    findings.faults.add(
        "field-type", line=line, value=value, expected='one object of objects: {"question": {"chunk": score}}'
    )


def nested_question(run: JsonRun, name: str, line: int, findings: Findings) -> str | None:
    if not id_is_good(name, line=line, field="question", findings=findings):
        return None
    if name in run.lines:
        findings.faults.add(
            "ranking-twice",
            line=line,
            field=f"question {name}",
            expected=f"one ranking a question; the first is on line {run.lines[name]}",
        )
        return None
    run.lines[name] = line
    return name


def add_nested(run: JsonRun, question: str, chunk: str, value: object, line: int, findings: Findings) -> None:
    good = id_is_good(chunk, line=line, field=f"question {question}: chunk", findings=findings)
    if isinstance(value, bool) or not isinstance(value, int | float):
        findings.faults.add(
            "score",
            line=line,
            field=f"question {question}, chunk {chunk}",
            value=value,
            expected="a finite number",
        )
    elif good:
        run.builder.add(question, chunk, rank=None, score=float(value), line=line)


def read_csv_run(source: Source, findings: Findings) -> JsonRun:
    """Columns question and chunk with score, rank or both; with neither the order of the lines counts."""
    run = JsonRun()
    scored: dict[str, bool] = {}  # whether the first entry of a question has a score
    for raw in csv_records(source, findings, "run"):
        fields = raw.fields
        good = [
            id_is_good(fields[name], line=raw.line, field=name, findings=findings)
            for name in ("question", "chunk")
        ]
        found = len(findings.faults.kinds()), findings.faults.count()
        values = {
            name: number(fields[name].strip(), name, raw.line, findings) if name in fields else None
            for name in ("rank", "score")
        }
        if found != (len(findings.faults.kinds()), findings.faults.count()) or not all(good):
            continue
        if scored.setdefault(fields["question"], "score" in fields) != ("score" in fields):
            findings.faults.add(
                "score",
                line=raw.line,
                field=f"question {fields['question']}",
                value=fields.get("score", ""),
                expected="a score on every result of a ranking or on none",
            )
            continue
        if "tag" in fields:
            run.tags.setdefault(fields["tag"], raw.line)
        run.builder.add(
            fields["question"], fields["chunk"], rank=values["rank"], score=values["score"], line=raw.line
        )
    return run

"""Labels and verdicts from files: text in, records and findings out."""

import json
from pathlib import Path

import pytest

from pooling.formats import VerdictRecord, read_qrels, read_verdicts

SCALE = range(4)


def qrels_of(tmp_path: Path, text: str, **options):
    path = tmp_path / "qrels"
    path.write_bytes(text.encode())
    return read_qrels(path, **options)


def labels(read) -> list[tuple[str, str, int]]:
    return [record[:3] for record in read.records]


RECORDS = {
    "trec; the second column means nothing": (
        "q1 Q0 c1 1\nq1 3 c2 0\nq1 assessorA c3 2\nq1\t0\tc4   1\n",
        "trec",
        [("q1", "c1", 1), ("q1", "c2", 0), ("q1", "c3", 2), ("q1", "c4", 1)],
    ),
    "comments, blank lines, a hash in an ID": (
        "# by team B\n\nq1 0 doc#4_9 1\n",
        "trec",
        [("q1", "doc#4_9", 1)],
    ),
    "IDs are opaque": (
        "001 0 0005 1\n1 0 5 0\n010 0 5 1\n",
        "trec",
        [("001", "0005", 1), ("1", "5", 0), ("010", "5", 1)],
    ),
    "IDs begin with brackets": ("[1 0 {a} 1\n{2 0 [ 0\n", "trec", [("[1", "{a}", 1), ("{2", "[", 0)]),
    "1.0 is 1": ("q1 0 d2 1.0\nq1 0 d3 +2\n", "trec", [("q1", "d2", 1), ("q1", "d3", 2)]),
    "beir": (
        "query-id\tcorpus-id\tscore\nq1\tc1\t0\nq1\tc 2\t3\n",
        "beir",
        [("q1", "c1", 0), ("q1", "c 2", 3)],
    ),
    "beir and csv carry any space": (
        "query-id\tcorpus-id\tscore\nq1\tc\u00a02\t3\n",
        "beir",
        [("q1", "c\u00a02", 3)],
    ),
    "csv": ("question,chunk,grade\nq10,c2,1\nq2,c10,0\n", "csv", [("q10", "c2", 1), ("q2", "c10", 0)]),
    "csv with other columns": ("question,chunk,assessor,grade\nq1,c1,A,0\n", "csv", [("q1", "c1", 0)]),
    "jsonl": (
        '{"id": "q1", "judged_ids": ["a"], "grades": {"a": 0, "b": 3}}\n{"id": "q2", "grades": {}}\n',
        "jsonl",
        [("q1", "a", 0), ("q1", "b", 3)],
    ),
    "jsonl, a pair a line": (
        '{"question": "q1", "chunk": "a", "assessor": "A", "grade": 0}\n{"question": "q1", "chunk": "b", "grade": 2}\n',
        "jsonl",
        [("q1", "a", 0), ("q1", "b", 2)],
    ),
    "jsonl with a list first": (
        '{"slices": [], "id": "q1", "grades": {"a": 0}}\n',
        "jsonl",
        [("q1", "a", 0)],
    ),
    "json": (
        '[{"id": "q1", "grades": {"a": 0}},\n{"id": "q2", "grades": {"b": 1.0}}]',
        "json",
        [("q1", "a", 0), ("q2", "b", 1)],
    ),
    "json with a frame": (
        '{\n "release": 3,\n "questions": [\n  {"id": "q1", "grades": {"a": 2}}\n ]\n}',
        "json",
        [("q1", "a", 2)],
    ),
    "json with a frame on one line": (
        '{"release": 3, "questions": [{"id": "q1", "grades": {"a": 2}}]}',
        "json",
        [("q1", "a", 2)],
    ),
}


@pytest.mark.parametrize(("text", "format", "expected"), RECORDS.values(), ids=RECORDS.keys())
def test_records(tmp_path, text, format, expected):
    read = qrels_of(tmp_path, text, allowed=SCALE)
    assert read.findings.faults.as_json() == []
    assert (read.sniff.format, labels(read)) == (format, expected)


FAULTS = {
    "grade of a million digits": ("q1 0 d1 " + "1" * 1_000_000 + "x\n", "grade", 1, "1" * 79 + "…", ""),
    "half of a surrogate pair": (
        '[\n{"id": "q1", "grades": {"\\ud83d": 1}}]',
        "json",
        2,
        "",
        "half of a surrogate pair",
    ),
    "fraction": ("q1 0 d1 0.7\n", "grade-fraction", 1, "0.7", "cutting them off is wrong"),
    "fraction above one": ("q1 0 d1 2.5\n", "grade-fraction", 1, "2.5", ""),
    "small fraction in scientific notation": ("q1 0 d1 1e-3\n", "grade-fraction", 1, "1e-3", ""),
    "fraction in JSON": ('{"id": "q1", "grades": {"a": 0.5}}', "grade-fraction", 1, "0.5", ""),
    "a word": ("q1 0 d1 yes\n", "grade", 1, "yes", "whole number"),
    "grade true": ('{"id": "q1", "grades": {"a": true}}', "grade", 1, "True", ""),
    "negative": ("q1 0 d1 1\nq1 0 d2 -1\n", "grade-negative", 2, "-1", "pooled but unjudged"),
    "outside the scale": ("q1 0 d1 4\n", "grade-outside-scale", 1, "4", "one of 0, 1, 2, 3"),
    "two grades for a pair": (
        "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 0\n",
        "pair-two-grades",
        3,
        "0",
        "line 1 says 1",
    ),
    "three columns": ("q1 d1 1\n", "columns", 1, "q1 d1 1", "grade or the second column is missing"),
    "a run": ("q1 Q0 d1 1 2.5 s\n", "columns", 1, "q1 Q0 d1 1 2.5 s", "run"),
    "a space in an ID": ("q1 0 my d1 1\n", "columns", 1, "q1 0 my d1 1", "space inside an ID"),
    "a no-break space in an ID": (
        "q1 0 my\u00a0d1 1\n",
        "id-white-space",
        1,
        "'my\\xa0d1'",
        "U+00A0 at position 2",
    ),
    "csv with semicolons": (
        "question;chunk;grade\nq1;c1;1\n",
        "unknown-format",
        None,
        "question;chunk;grade",
        "semicolons instead",
    ),
    "two assessors in one file": (
        '{"question": "q1", "chunk": "a", "grade": 2}\n{"question": "q1", "chunk": "a", "grade": 1}\n',
        "pair-two-grades",
        2,
        "1",
        "line 1 says 2",
    ),
    "two grades for a pair in one record": (
        '{"id": "q1", "grades": {"a": 0, "b": 1, "a": 3}}\n',
        "pair-two-grades",
        1,
        "3",
        "line 1 says 0",
    ),
    "two grades for a pair in one document": (
        '[{"id": "q1",\n"grades": {"a": 0,\n"a": 3}}]',
        "pair-two-grades",
        1,
        "3",
        "line 1 says 0",
    ),
    "grades twice in one record": (
        '{"id": "q1", "grades": {"a": 0}, "grades": {"b": 1}}\n',
        "key-twice",
        1,
        "",
        "each key",
    ),
    "a question twice in one record of a document": (
        '[{"id": "q1",\n"id": "q2", "grades": {"a": 0}}]',
        "key-twice",
        1,
        "",
        "each key",
    ),
    "record without grades": ('{"id": "q1"}', "missing-field", 1, "q1", "grade"),
    "record without a question": ('{"grades": {"a": 1}}', "missing-field", 1, "grades", ""),
    "JSON cut short": ('[{"id": "q1", "grades": {"a": 1}}', "json", 1, "parse error: premature EOF", ""),
    "JSON of another kind": ("[1, 2]", "field-type", 1, "1", "label records"),
    "only comments": ("# nothing\n", "empty-file", None, "", ""),
    "beir line with too few columns": (
        "query-id\tcorpus-id\tscore\nq1\tc1\n",
        "columns",
        2,
        "q1,c1",
        "3 columns",
    ),
}


@pytest.mark.parametrize(("text", "kind", "line", "value", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path, text, kind, line, value, expected):
    read = qrels_of(tmp_path, text, allowed=SCALE)
    assert read.findings.faults.kinds() == [kind]
    (example,) = read.findings.faults.examples(kind)
    assert (example.line, example.value) == (line, value)
    assert expected in example.expected


@pytest.mark.parametrize(
    "text", ["[" * 3000 + "]" * 3000, '[{"id": "q", "grades": ' + "[" * 3000 + "]" * 3000 + "}]"]
)
def test_deep_json_is_refused(tmp_path, text):
    assert qrels_of(tmp_path, text).findings.faults.count() == 1


def test_dots_in_ids_are_no_depth(tmp_path):
    chunk = ".".join("abc" * 30)
    records = [{"id": "q.1", "grades": {chunk: 2}}]
    read = qrels_of(tmp_path, json.dumps({"release": {"questions": [7]}, "questions": records}))
    assert [tuple(record)[:3] for record in read.records] == [("q.1", chunk, 2)]
    assert not read.findings.faults


def test_negatives_by_choice(tmp_path):
    text = "q1 0 d1 -1\nq1 0 d2 -2\nq1 0 d3 0\nq1 0 d4 2\n"
    skipped = qrels_of(tmp_path, text, allowed=SCALE, negative="skip")
    assert labels(skipped) == [("q1", "d3", 0), ("q1", "d4", 2)]
    assert (skipped.read, skipped.skipped_negative) == (4, 2)
    zeroed = qrels_of(tmp_path, text, allowed=SCALE, negative="zero")
    assert labels(zeroed) == [("q1", "d1", 0), ("q1", "d2", 0), ("q1", "d3", 0), ("q1", "d4", 2)]
    assert (zeroed.zeroed_negative, zeroed.grades) == (2, {-1: 1, -2: 1, 0: 1, 2: 1})


def test_codes_that_run_backwards_do_not_get_in_unseen(tmp_path):
    read = qrels_of(tmp_path, "1 0 184 -1\n1 0 29 1\n1 0 31 2\n1 0 12 4\n", allowed=SCALE)
    assert read.findings.faults.kinds() == ["grade-negative", "grade-outside-scale"]
    assert read.grades == {-1: 1, 1: 1, 2: 1, 4: 1}


def test_a_pair_twice_with_one_grade_counts_once(tmp_path):
    read = qrels_of(tmp_path, "q1 0 d1 0\nq1 0 d1 0\nq1 7 d1 0.0\n", allowed=SCALE)
    assert labels(read) == [("q1", "d1", 0)]
    assert read.findings.warnings.count("repeated") == 2


def verdicts_of(tmp_path: Path, text: str):
    path = tmp_path / "verdicts"
    path.write_bytes(text.encode())
    return read_verdicts(path, allowed=SCALE)


def test_verdicts(tmp_path):
    read = verdicts_of(
        tmp_path,
        '{"question_id": "q1", "question": "?", "chunk_id": "c1", "text": "x", "grade": 0, "note": "n", "seconds": 4}\n'
        '{"question_id": "q1", "chunk_id": "c2", "grade": null, "cannot_judge": "text broken"}\n'
        '{"question_id": "q1", "chunk_id": "c3", "grade": null, "note": ""}\n'
        '{"question_id": "q1", "chunk_id": "c1", "grade": 0}\n',
    )
    assert read.findings.faults.as_json() == []
    assert read.records == [
        VerdictRecord("q1", "c1", 0, "", "n", 4.0, ""),
        VerdictRecord("q1", "c2", None, "text broken", "", None, ""),
    ]
    assert (read.read, read.open) == (4, 1)
    assert read.findings.warnings.kinds() == ["not-answered", "repeated"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"chunk_id": "c1", "grade": 0}', "missing-field"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": 9}', "grade-outside-scale"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": -1}', "grade-outside-scale"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": 0.5}', "grade-fraction"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": 1, "cannot_judge": "x"}', "field-type"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": 1, "seconds": -1}', "field-type"),
        ('{"question_id": "q1", "chunk_id": "c1", "grade": 1, "note": 5}', "field-type"),
        (
            '{"question_id": "q1", "chunk_id": "c1", "grade": 1}\n{"question_id": "q1", "chunk_id": "c1", "grade": 0}',
            "pair-two-grades",
        ),
        ("q1 0 c1 1\n", "unknown-format"),
        ("", "empty-file"),
    ],
)
def test_verdict_fault(tmp_path, text, kind):
    assert verdicts_of(tmp_path, text).findings.faults.kinds() == [kind]

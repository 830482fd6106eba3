"""Runs: text in, ordered rankings and findings out."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from pooling.formats import Limits, read_run, trec
from pooling.formats.faults import Findings
from pooling.formats.opening import Source


def run_of(tmp_path: Path, text: str, **options):
    path = tmp_path / "run"
    path.write_bytes(text.encode())
    return read_run(path, **options)


def rankings(run) -> dict[str, list[str]]:
    return {ranking.question: [run.vocabulary[at] for at in ranking.chunks] for ranking in run.rankings}


ORDERS = {
    "score descending, whatever the line order": (
        "q1 Q0 a 3 1.0 s\nq1 Q0 b 1 3.0 s\nq1 Q0 c 2 2.0 s\n",
        {"q1": ["b", "c", "a"]},
    ),
    "ties by rank ascending": ("q1 Q0 a 2 1.0 s\nq1 Q0 b 1 1.0 s\n", {"q1": ["b", "a"]}),
    "ties of score and rank by line": ("q1 Q0 b 1 1.0 s\nq1 Q0 a 1 1.0 s\n", {"q1": ["b", "a"]}),
    "all equal keeps what the user saw": (
        "q1 Q0 d1 1 1 s\nq1 Q0 d2 2 1 s\nq1 Q0 d3 3 1 s\n",
        {"q1": ["d1", "d2", "d3"]},
    ),
    "rounded scores": (
        "q1 Q0 c1 1 0.861 s\nq1 Q0 c9 2 0.854 s\nq1 Q0 c8 3 0.854 s\nq1 Q0 c95 4 0.854 s\n",
        {"q1": ["c1", "c9", "c8", "c95"]},
    ),
    "scientific, signed and short numbers": (
        "q1 Q0 c1 1 -1.2e1 s\nq1 Q0 c2 2 -3.5E-01 s\nq1 Q0 c3 3 -.5 s\nq1 Q0 c4 4 +0 s\nq1 Q0 c5 5 1e3 s\n",
        {"q1": ["c5", "c4", "c2", "c3", "c1"]},
    ),
    "ranks from zero": ("q1 Q0 c1 0 3 s\nq1 Q0 c2 1 2 s\n", {"q1": ["c1", "c2"]}),
    "questions interleaved": (
        "q2 Q0 a 1 1 s\nq1 Q0 b 1 2 s\nq2 Q0 c 2 5 s\nq1 Q0 a 2 1 s\n",
        {"q2": ["c", "a"], "q1": ["b", "a"]},
    ),
    "any run of spaces and tabs": ("q1\tQ0  a \t 1   2.0\ts  \n  q1 Q0 b 2 1.0 s\n", {"q1": ["a", "b"]}),
    "comments and blank lines": ("# made on Monday\n\nq1 Q0 d#4_9 1 3.2 s\n \t\n# end\n", {"q1": ["d#4_9"]}),
    "IDs are opaque": (
        "007 Q0 7 1 3 s\n7 Q0 007 1 3 s\nNA Q0 null 1 3 s\n1e5 Q0 100000 1 3 s\n",
        {"007": ["7"], "7": ["007"], "NA": ["null"], "1e5": ["100000"]},
    ),
    "quotes are plain characters": ("q1 Q0 \"a 1 3 s\nq1 Q0 b' 2 2 s\n", {"q1": ['"a', "b'"]}),
    "normalisation is left alone": (
        "q1 Q0 Café 1 3 s\nq1 Q0 Cafe\u0301 2 2 s\n",
        {"q1": ["Café", "Cafe\u0301"]},
    ),
}


@pytest.mark.parametrize(("text", "expected"), ORDERS.values(), ids=ORDERS.keys())
def test_order(tmp_path, text, expected):
    run = run_of(tmp_path, text)
    assert run.findings.faults.as_json() == []
    assert rankings(run) == expected


FAULTS = {
    "five columns": ("q1 Q0 c1 1 3.2 s\nq1 Q0 c2 2 2.9\n", "columns", 2, "5 columns", "six columns"),
    "seven columns": (
        "q1 Q0 c1 1 3.2 s\nq1 Q0 my c2 2 2.9 s\n",
        "columns",
        2,
        "7 columns",
        "space inside an ID",
    ),
    "qrels by mistake": ("q1 0 c1 1\n", "columns", 1, "4 columns", "qrels"),
    "comment lines count": ("# one\n\nq1 Q0 c1 1 x s\n", "score", 3, "score", "finite"),
    "NaN": ("q1 Q0 c1 1 nan s\n", "score", 1, "score", "finite"),
    "infinite": ("q1 Q0 c1 1 -inf s\n", "score", 1, "score", "finite"),
    "too large for a float": ("q1 Q0 c1 1 1e999 s\n", "score", 1, "score", "finite"),
    "underscored number": ("q1 Q0 c1 1 1_0 s\n", "score", 1, "score", "finite"),
    "decimal comma": ("q1 Q0 c1 1 1,5 s\n", "score", 1, "score", "finite"),
    "digits of another script": ("q1 Q0 c1 1 ١٢ s\n", "score", 1, "score", "finite"),
    "rank is a word": ("q1 Q0 Terms v2 3 7.5\n", "rank", 1, "rank", "space inside an ID"),
    "chunk twice": (
        "q1 Q0 c1 1 2.1 s\nq1 Q0 c2 2 2 s\nq1 Q0 c1 3 1 s\n",
        "duplicate-chunk",
        3,
        "question q1",
        "line 1",
    ),
    "score of a million digits": ("q1 Q0 c1 1 " + "1" * 1_000_000 + "x s\n", "score", 1, "score", "finite"),
    "two tags": ("q1 Q0 c1 1 2.1 A\nq1 Q0 c2 2 2 B\n", "several-tags", 2, "tag", "'A' is on line 1"),
    "control character": ("q1 Q0 c\x01x 1 2.1 A\n", "control-character", 1, "chunk", "U+0001 at position 1"),
    "upper control character": ("q1 Q0 c\u0085x 1 2.1 A\n", "control-character", 1, "chunk", "U+0085"),
    "no-break space": ("q1 Q0 Caf\u00a0e 1 2.1 A\n", "id-white-space", 1, "chunk", "U+00A0 at position 3"),
    "ideographic space": ("q\u30001 Q0 c1 1 2.1 A\n", "id-white-space", 1, "question", "JSON and CSV"),
    "vertical tab does not separate": ("q1 Q0 c1\x0b1 2.1 A\n", "columns", 1, "5 columns", "six"),
    "ID too long": (
        "q1 Q0 " + "x" * 513 + " 1 2.1 A\n",
        "id-length",
        1,
        "chunk",
        "512 characters, found 513",
    ),
    "empty": ("", "empty-file", None, "", ""),
    "only comments": ("# nothing today\n", "empty-file", None, "", ""),
    "three columns": ("q1 c1 1\n", "unknown-format", None, "first line", "msmarco"),
}


@pytest.mark.parametrize(("text", "kind", "line", "field", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path, text, kind, line, field, expected):
    run = run_of(tmp_path, text)
    assert run.findings.faults.kinds() == [kind]
    (example,) = run.findings.faults.examples(kind)
    assert (example.line, example.field) == (line, field)
    assert expected in example.expected
    assert run.rankings == []


def test_512_characters_are_fine(tmp_path):
    assert rankings(run_of(tmp_path, f"q1 Q0 {'ü' * 512} 1 2.1 A\n")) == {"q1": ["ü" * 512]}


def test_space_in_id_case_tells_both_kinds(tmp_path):
    run = run_of(tmp_path, "q1 Q0 Policy 2024 9.5 s\nq1 Q0 Guide 7 1 8.5 s\nq1 Q0 Terms v2 3 7.5 s\n")
    assert [example.line for example in run.findings.faults.examples("columns")] == [2, 3]
    assert run.findings.warnings.examples("rank-suspicious")[0].line == 1


def test_every_fault_is_counted_and_twenty_are_shown(tmp_path):
    run = run_of(tmp_path, "q1 Q0 c1 1 x s\n" * 30 + "q1 Q0 c1 1\n" * 5)
    counts = {
        entry["kind"]: (entry["count"], len(entry["examples"])) for entry in run.findings.faults.as_json()
    }
    assert counts == {"score": (30, 20), "columns": (5, 5)}


def test_several_tags_are_a_warning_when_the_system_is_named(tmp_path):
    run = run_of(tmp_path, "q1 Q0 c1 1 2.1 A\nq1 Q0 c2 2 2 B\n", several_tags=True)
    assert rankings(run) == {"q1": ["c1", "c2"]}
    assert run.findings.warnings.kinds() == ["several-tags"]
    assert run.tags == ["A", "B"]


def test_duplicates_keep_the_better_place(tmp_path):
    text = "q1 Q0 c2 3 1.0 s\nq1 Q0 c1 2 2.062094 s\nq1 Q0 c1 1 2.062095 s\n"
    run = run_of(tmp_path, text, duplicates="keep-first")
    assert rankings(run) == {"q1": ["c1", "c2"]}
    assert run.rankings[0].scores.tolist() == [2.062095, 1.0]
    assert run.dropped == 1
    (example,) = run.findings.warnings.examples("duplicates-dropped")
    assert (example.line, example.expected) == (2, "kept: line 3")


def test_many_duplicates_are_all_counted(tmp_path):
    run = run_of(tmp_path, "".join(f"q1 Q0 c{n % 10} {n} {1000 - n} s\n" for n in range(100)))
    assert run.findings.faults.count("duplicate-chunk") == 90
    assert len(run.findings.faults.examples("duplicate-chunk")) == 20


def test_ties_are_summed_up(tmp_path):
    text = "q1 Q0 a 1 1 s\nq1 Q0 b 2 1 s\nq1 Q0 c 3 1 s\nq2 Q0 a 1 2 s\nq2 Q0 b 2 1 s\n"
    run = run_of(tmp_path, text)
    (example,) = run.findings.warnings.examples("ties")
    assert example.value == "3 of 5 scores tied on 1 of 2 questions"
    assert run.findings.warnings.count("ties") == 3


def test_rank_against_score_is_warned_of_and_rank_can_be_taken(tmp_path):
    text = "q1 Q0 a 1 1.0 s\nq1 Q0 b 2 2.0 s\nq1 Q0 c 3 0.5 s\n"
    by_score = run_of(tmp_path, text)
    assert rankings(by_score) == {"q1": ["b", "a", "c"]}
    assert by_score.findings.warnings.count("rank-contradicts-score") == 1
    by_rank = run_of(tmp_path, text, order="rank")
    assert rankings(by_rank) == {"q1": ["a", "b", "c"]}
    assert by_rank.rankings[0].scores.tolist() == [1.0, 2.0, 0.5]
    assert by_rank.findings.warnings.count("rank-contradicts-score") == 1


def test_no_example_of_a_warning_is_blank(tmp_path):
    run = run_of(tmp_path, "q1 Q0 a 2 2 s\nq1 Q0 b 1 1 s\n")
    (entry,) = run.findings.warnings.as_json()
    assert (entry["kind"], entry["count"], len(entry["examples"])) == ("rank-contradicts-score", 1, 1)


def test_agreeing_ranks_are_not_warned_of(tmp_path):
    assert run_of(tmp_path, "q1 Q0 a 0 2.0 s\nq1 Q0 b 1 1.0 s\n").findings.warnings.as_json() == []


def test_order_by_rank_needs_ranks(tmp_path):
    run = run_of(tmp_path, '{"q1": {"a": 1}}', order="rank")
    assert run.findings.faults.kinds() == ["rank"]


@pytest.mark.parametrize("rank", ["-3", "1.5", "2024"])
def test_odd_ranks_are_warned_of(tmp_path, rank):
    run = run_of(tmp_path, f"q1 Q0 a {rank} 2.0 s\n")
    assert rankings(run) == {"q1": ["a"]}
    assert run.findings.warnings.kinds() == ["rank-suspicious"]


JSONL = {
    "scores": (
        '{"qid": "q1", "results": [{"id": "a", "score": 1}, {"id": "b", "score": 2.5}]}',
        {"q1": ["b", "a"]},
    ),
    "list order without scores": ('{"qid": "q1", "results": [{"id": "b"}, {"id": "a"}]}', {"q1": ["b", "a"]}),
    "ranks without scores": (
        '{"qid": "q1", "results": [{"id": "b", "rank": 2}, {"id": "a", "rank": 1}]}',
        {"q1": ["a", "b"]},
    ),
    "plain IDs": ('{"qid": "q1", "results": ["b", "a"]}', {"q1": ["b", "a"]}),
    "an empty ranking is a fact": (
        '{"qid": "q1", "results": []}\n\n{"qid": "q2", "results": ["a"]}',
        {"q1": [], "q2": ["a"]},
    ),
    "only empty rankings": ('{"qid": "q1", "results": []}', {"q1": []}),
    "IDs with blanks and tabs' neighbours": (
        '{"qid": "q 1", "results": ["b c", "a,\\"d"]}',
        {"q 1": ["b c", 'a,"d']},
    ),
}


@pytest.mark.parametrize(("text", "expected"), JSONL.values(), ids=JSONL.keys())
def test_jsonl(tmp_path, text, expected):
    run = run_of(tmp_path, text)
    assert run.findings.faults.as_json() == []
    assert run.sniff.format == "jsonl"
    assert rankings(run) == expected


def test_jsonl_carries_abstention_text_and_truncation(tmp_path):
    run = run_of(
        tmp_path,
        '{"qid": "q1", "abstained": true}\n'
        '{"qid": "q2", "results": [{"id": "a", "score": 1, "text": "low"},'
        ' {"id": "b", "score": 2, "text": "high", "truncated": true}, {"id": "c", "score": 0}]}\n',
    )
    first, second = run.rankings
    assert (first.abstained, len(first.chunks), second.abstained) == (True, 0, False)
    (cut,) = run.cut_passages
    assert rankings(run)["q2"] == [cut.id, "a", "c"]
    assert second.passages == [("high", True), ("low", False), None]
    assert second.scores.tolist() == [2.0, 1.0, 0.0]


def context(*passages: tuple[str, str | None]) -> str:
    results = [{"id": chunk, "text": text, "truncated": True} for chunk, text in passages]
    return json.dumps({"qid": "q1", "results": results}) + "\n"


def test_a_cut_passage_has_an_id_of_its_own_that_is_the_same_in_every_run(tmp_path):
    first = run_of(tmp_path, context(("a", "Refunds take"), ("b", "Refunds take")))
    again = run_of(tmp_path, context(("b", "Refunds take"), ("a", "Refunds")))
    assert first.chunks == ["a", "b"]
    assert [(first.chunks[cut.whole], cut.text) for cut in first.cut_passages] == [
        ("a", "Refunds take"),
        ("b", "Refunds take"),
    ]
    of_a, of_b = (cut.id for cut in first.cut_passages)
    assert of_a.startswith("a#cut-")
    assert of_b.startswith("b#cut-")
    assert of_a.removeprefix("a") != of_b.removeprefix("b")
    assert again.cut_passages[0].id == of_b
    assert again.cut_passages[1].id != of_a


def test_a_cut_passage_of_the_longest_id_has_a_shorter_one(tmp_path):
    longest = [512 * "x", 511 * "x" + "y"]
    run = run_of(tmp_path, context(*((name, "Refunds take") for name in longest)))
    names = [cut.id for cut in run.cut_passages]
    assert [len(name) for name in names] == [512, 512]
    assert len(set(names)) == 2


def test_a_cut_passage_and_its_id_in_one_ranking_are_one_text_twice(tmp_path):
    (cut,) = run_of(tmp_path, context(("a", "Refunds take"))).cut_passages
    run = run_of(tmp_path, context(("a", "Refunds take"), (cut.id, None)))
    (example,) = run.findings.faults.examples("duplicate-chunk")
    assert (example.field, example.value) == ("question q1", cut.id)


def test_a_passage_that_was_cut_but_not_told_is_warned_of(tmp_path):
    run = run_of(tmp_path, context(("a", None), ("b", " \n"), ("c", "Refunds")))
    assert rankings(run)["q1"][:2] == ["a", "b"]
    (example,) = run.findings.warnings.examples("cut-without-text")
    assert (example.line, example.field) == (1, "question q1")
    assert run.findings.warnings.count("cut-without-text") == 2


JSONL_FAULTS = {
    "not JSON": ('{"qid": "q1", "results": []}\n{"qid": ', "json", 2),
    "NaN": ('{"qid": "q1", "results": [{"id": "a", "score": NaN}]}', "json", 1),
    "score in quotes": ('{"qid": "q1", "results": [{"id": "a", "score": "1"}]}', "score", 1),
    "score true": ('{"qid": "q1", "results": [{"id": "a", "score": true}]}', "score", 1),
    "some scores only": ('{"qid": "q1", "results": [{"id": "a", "score": 1}, {"id": "b"}]}', "score", 1),
    "question twice": ('{"qid": "q1", "results": []}\n{"qid": "q1", "results": []}', "ranking-twice", 2),
    "results twice": ('{"qid": "q1", "results": ["a"], "results": ["b"]}', "key-twice", 1),
    "score twice": ('{"qid": "q1", "results": [{"id": "a", "score": 1, "score": 2}]}', "key-twice", 1),
    "no results": ('{"qid": "q1"}', "missing-field", 1),
    "results of another kind": ('{"qid": "q1", "results": {"a": 1}}', "field-type", 1),
    "no question": ('{"results": []}', "missing-field", 1),
    "chunk ID null": ('{"qid": "q1", "results": [{"id": null}]}', "field-type", 1),
    "chunk ID empty": ('{"qid": "q1", "results": [""]}', "id-empty", 1),
    "chunk ID with a line feed": ('{"qid": "q1", "results": ["a\\nb"]}', "control-character", 1),
    "chunk twice": ('{"qid": "q1", "results": ["a", "a"]}', "duplicate-chunk", 1),
    "abstained in words": ('{"qid": "q1", "results": [], "abstained": "yes"}', "field-type", 1),
    "half a character": ('{"qid": "q1", "results": ["\\ud800"]}', "json", 1),
    "NUL": ('{"qid": "q1", "results": [{"id": "a", "text": "\\u0000"}]}', "nul", 1),
    "deep": ('{"qid": "q1", "results": ' + "[" * 3000 + "]" * 3000 + "}", "json-depth", 1),
    "a list of records": ('[{"qid": "q1", "results": []}]', "field-type", 1),
}


@pytest.mark.parametrize(("text", "kind", "line"), JSONL_FAULTS.values(), ids=JSONL_FAULTS.keys())
def test_jsonl_fault(tmp_path, text, kind, line):
    run = run_of(tmp_path, text)
    assert run.findings.faults.kinds() == [kind]
    assert run.findings.faults.examples(kind)[0].line == line
    assert run.rankings == []


def test_numbers_as_ids_are_taken_as_their_digits_with_a_warning(tmp_path):
    run = run_of(tmp_path, '{"qid": 7, "results": [{"id": 12}]}')
    assert rankings(run) == {"7": ["12"]}
    assert run.findings.warnings.count("id-number") == 2


def test_numbers_that_lose_digits_are_no_ids(tmp_path):
    run = run_of(tmp_path, '{"qid": "q1", "results": [{"id": 123456789012345678901234567890}, {"id": 1.5}]}')
    assert run.findings.faults.count("field-type") == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": {"a": 1, "b": 2.5}, "q2": {}, "007": {"a": -1e-3}}',
        '{\n  "q1": {\n    "a": 1,\n    "b": 2.5\n  },\n  "q2": {},\n  "007": {"a": -1e-3}\n}\n',
    ],
)
def test_nested_json(tmp_path, text):
    run = run_of(tmp_path, text)
    assert run.sniff.format == "json"
    assert run.findings.faults.as_json() == []
    assert rankings(run) == {"q1": ["b", "a"], "q2": [], "007": ["a"]}


NESTED_FAULTS = {
    "score in quotes": ('{\n"q1": {\n"a": "1"}}', "score", 3),
    "score null": ('{"q1": {"a": null}}', "score", 1),
    "chunk twice": ('{"q1": {"a": 1,\n "a": 2}}', "duplicate-chunk", 1),
    "question twice": ('{"q1": {"a": 1},\n"q1": {"b": 1}}', "ranking-twice", 2),
    "cut short": ('{"q1": {"a": 1', "json", 1),
    "half of a surrogate pair": ('{"q1":\n{"\\ud83d": 1}}', "json", 2),
    "the other half": ('{"q\\\\\\udc00": {"a": 1}}', "json", 1),
    "NaN": ('{"q1": {"a": 1},\n"q2": {"a": NaN}}', "json", 2),
    "a list": ('["q1"]', "field-type", 1),
    "empty": ("{}", "empty-file", None),
    "three levels": ('{"q1": {"a": {"score": 1}}}', "field-type", 1),
}


@pytest.mark.parametrize(("text", "kind", "line"), NESTED_FAULTS.values(), ids=NESTED_FAULTS.keys())
def test_nested_json_fault(tmp_path, text, kind, line):
    run = run_of(tmp_path, text, format="json")
    assert run.findings.faults.kinds() == [kind]
    assert run.findings.faults.examples(kind)[0].line == line


@pytest.mark.parametrize("text", ["[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000])
def test_deeply_nested_json_is_refused(tmp_path, text):
    assert "json-depth" in run_of(tmp_path, text).findings.faults.kinds()


def test_msmarco_by_its_own_name(tmp_path):
    text = "q1\tb\t2\nq1\ta\t1\nq2 c 1\n"
    run = run_of(tmp_path, text, format="msmarco")
    assert rankings(run) == {"q1": ["a", "b"], "q2": ["c"]}
    assert run.rankings[0].scores is None
    assert run_of(tmp_path, text).findings.faults.kinds() == ["unknown-format"]


def test_msmarco_faults(tmp_path):
    run = run_of(tmp_path, "q1\tb\tfirst\nq1 a\nq1 a\u2003b 1\n", format="msmarco")
    assert [(kind, entry.examples[0].line) for kind, entry in run.findings.faults] == [
        ("rank", 1),
        ("columns", 2),
        ("id-white-space", 3),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qid,docid,rank,score,tag\nq1,a,2,1.0,s\nq1,b,1,2.0,s\n", {"q1": ["b", "a"]}),
        ("query-id,corpus-id,score\nq1,a,1\nq1,b,2\n", {"q1": ["b", "a"]}),
        ("question,chunk,rank\nq1,a,2\nq1,b,1\n", {"q1": ["b", "a"]}),
        ('question,chunk\nq1,"a, with comma"\nq1,b\n', {"q1": ["a, with comma", "b"]}),
        ('question,chunk\r\n"q ""1""",a\r\n', {'q "1"': ["a"]}),
    ],
)
def test_csv(tmp_path, text, expected):
    run = run_of(tmp_path, text)
    assert run.sniff.format == "csv"
    assert run.findings.faults.as_json() == []
    assert rankings(run) == expected


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("qid,docid,score\nq1,a,1\nq1,b\n", "columns", 3),
        ("qid,docid,score\nq1,a,high\n", "score", 2),
        ('qid,docid,score\nq1,"a,1\nq1,b,2\n', "quotes", 2),
        ("qid,docid,score\nq1,a,1\nq1,,2\n", "id-empty", 3),
        ("qid,docid,score\nq1,a,1\nq1,b,\nq2,a,\n", "score", 3),
        ("qid,docid,score\nq1,a,\nq1,b,1\n", "score", 3),
    ],
)
def test_csv_fault(tmp_path, text, kind, line):
    run = run_of(tmp_path, text)
    assert run.findings.faults.kinds() == [kind]
    assert run.findings.faults.examples(kind)[0].line == line


def test_csv_without_the_needed_columns(tmp_path):
    run = run_of(tmp_path, "a;b;score\nq1;a;1\n", format="csv")
    assert [example.field for example in run.findings.faults.examples("header")] == ["question", "chunk"]
    assert "semicolons" in run.findings.faults.examples("header")[0].expected
    run = run_of(tmp_path, "qid\tdocid\nq1\ta\n", format="csv")
    assert "tabs" in run.findings.faults.examples("header")[0].expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qid;docid;rank;score\nq1;a;1;2.5\n", "semicolons instead"),
        ('"qid";"docid"\r\n"q1";"a"\r\n', "semicolons instead"),
        ("qid\tdocid\trank\tscore\nq1\ta\t1\t2.5\n", "tabs or blanks instead"),
        ("qid\tdocid\trank\nq1\ta\t1\n", "tabs or blanks instead"),
        ("qid Q0 docid rank score tag\nq1 Q0 a 1 2.5 s\n", "six columns have no header"),
    ],
)
def test_a_table_that_is_not_separated_by_commas_is_told(tmp_path, text, said):
    run = run_of(tmp_path, text)
    assert run.findings.faults.kinds() == ["unknown-format"]
    (example,) = run.findings.faults.examples("unknown-format")
    assert example.value == text.splitlines()[0]
    assert "commas between the columns" in example.expected
    assert said in example.expected


def test_ids_that_are_words_of_headers_are_ids(tmp_path):
    assert rankings(run_of(tmp_path, "query Q0 id 1 2.5 s\n")) == {"query": ["id"]}


def test_an_unknown_format_name_lists_the_known_ones(tmp_path):
    run = run_of(tmp_path, "q1 Q0 a 1 1 s\n", format="parquet")
    assert "trec, jsonl, json, msmarco, csv" in run.findings.faults.examples("unknown-format")[0].expected


def read_both(path: Path) -> list:
    """The same file by the columnar and by the careful reader."""
    results = []
    for small_block in (0, 10**12):
        findings = Findings()
        entries, tags = trec.read_trec(Source(path), findings, small_block=small_block)
        questions, vocabulary = entries.questions.to_pylist(), entries.vocabulary.to_pylist()
        results.append(
            (
                [questions[code] for code in entries.question],
                [vocabulary[code] for code in entries.chunk],
                entries.rank.tolist(),
                entries.score.tolist(),
                entries.line.tolist(),
                tags,
                findings.faults.as_json(),
            )
        )
    return results


ODD_LINES = [
    "q1 Q0 a 1 2.5 s",
    "q1\tQ0\ta 2 2.5 s",
    "q1  Q0 a 2 2.5 s ",
    "q1  a 2 2.5 s",
    "  q1 Q0 ü 3 2.5 s\r",
    "q1 Q0 a\x0bb 3 2.5 s",
    "q1 Q0 b 3 nan s",
    "q1 Q0 b 3 inf s",
    "q1 Q0 b 3 +1 s",
    "q1 Q0 b 3 1e400 s",
    "q1 Q0 b x 1 s",
    "#a b c d e f",
    "# comment",
    "",
    "q1 Q0 b 3 1",
    "q1 Q0 b 3 1 s t",
    'q1 Q0 "b 3 1 s',
    "q1 Q0 c\u0085 3 1 s",
    "\ufeffq1 Q0 b 3 1 s",
    "q1 Q0 " + "x" * 513 + " 3 1 s",
    "NA Q0 null 3 1 other",
    "q1 Q0 b 3 0x10 s",
    "q1 Q0 b 3 1_0 s",
    "q1 Q0 b 3 .5 s",
    "q1 Q0 b 3 5. s",
    "q1 Q0 b 1e1 5E-3 s",
    "q1 Q0 a\x7f 1 1 s",
    "q1 Q0 a\xa0b 1 1 s",
    "q1 Q0 b 3 1 s\u2003",
    "q1 Q\udcff a 1 1 s",  # a byte that is not UTF-8, where nothing is read
]


@pytest.mark.parametrize("line", ODD_LINES)
def test_columnar_and_careful_reader_agree_on_one_odd_line(tmp_path, line):
    path = tmp_path / "run"
    plain = "".join(f"q{n} Q0 d{n} {n} {n / 7} s\n" for n in range(5))
    for text in (plain + line + "\n" + plain, line, plain + line, line + "\n" + plain):
        path.write_bytes(text.encode(errors="surrogateescape"))
        columnar, careful = read_both(path)
        assert columnar == careful


def test_columnar_and_careful_reader_agree_on_random_mixtures(tmp_path):
    choose = random.Random(7)
    path = tmp_path / "run"
    for _round in range(60):
        lines = choose.choices(ODD_LINES[:4] * 5 + ODD_LINES, k=choose.randrange(1, 12))
        path.write_bytes(
            "\n".join(lines).encode(errors="surrogateescape") + choose.choice([b"", b"\n", b"\r\n"])
        )
        columnar, careful = read_both(path)
        assert columnar == careful


def test_columnar_reader_is_used_for_plain_blocks():
    tags: dict[str, int] = {}
    part = trec.columnar(b"q1 Q0 a 1 2.5 s\nq1\tQ0  b 2 1.5 s\r\n", 11, tags)
    assert part is not None
    assert part.line.tolist() == [11, 12]
    assert part.score.tolist() == [2.5, 1.5]
    assert tags == {"s": 11}


def test_many_blocks_make_one_run(tmp_path, monkeypatch):
    monkeypatch.setattr(trec, "PARTS_AT_ONCE", 3)
    choose = random.Random(3)
    expected: dict[str, list[tuple[float, int, str]]] = {}
    lines = []
    for number in range(400):
        question, chunk, score = f"q{choose.randrange(7)}", f"d{number % 97}-{number}", choose.randrange(50)
        lines.append(f"{question} Q0 {chunk} {number} {score} s")
        expected.setdefault(question, []).append((-score, number, chunk))
    for small_block in (0, 10**12):
        monkeypatch.setattr(trec.read_trec, "__kwdefaults__", {"small_block": small_block})
        run = run_of(tmp_path, "\n".join(lines), limits=Limits(block_bytes=300))
        assert rankings(run) == {
            q: [chunk for *_key, chunk in sorted(found)] for q, found in expected.items()
        }
        assert run.read == 400


def test_order_against_a_slow_twin(tmp_path):
    choose = random.Random(11)
    for _round in range(30):
        lines, twin = [], {}
        for number in range(choose.randrange(1, 60)):
            question = f"q{choose.randrange(4)}"
            rank, score = choose.randrange(5), choose.choice([-1.5, 0.0, 0.25, 3.0])
            lines.append(f"{question} Q0 c{number} {rank} {score} s")
            twin.setdefault(question, []).append((-score, rank, number))
        run = run_of(tmp_path, "\n".join(lines), limits=Limits(block_bytes=300))
        assert rankings(run) == {q: [f"c{n}" for _s, _r, n in sorted(found)] for q, found in twin.items()}
        by_rank = run_of(tmp_path, "\n".join(lines), order="rank")
        assert rankings(by_rank) == {
            q: [f"c{n}" for _s, _r, n in sorted(found, key=lambda entry: (entry[1], entry[0], entry[2]))]
            for q, found in twin.items()
        }


def test_types_of_the_arrays(tmp_path):
    ranking = run_of(tmp_path, "q1 Q0 a 1 2.5 s\n").rankings[0]
    assert (ranking.chunks.dtype, ranking.scores.dtype) == (np.int32, np.float64)

"""Questions: text in, records and findings out."""

import tracemalloc
from datetime import date
from pathlib import Path

import pytest

from pooling.formats import Fact, Limits, QuestionRecord, read_questions


def questions_of(tmp_path: Path, text: str, **options):
    path = tmp_path / "questions"
    path.write_bytes(text.encode())
    return read_questions(path, **options)


def pairs(read) -> list[tuple[str, str]]:
    return [(record.id, record.text) for record in read.records]


FULL = (
    '{"id": "q1", "text": "How long?", "narrative": "n", "slices": ["a", "b", "a"], "split": "holdout",'
    ' "answerable": false, "group": "g", "scope": "staff", "effective_date": "2024-02-29",'
    ' "facts": [{"id": "f1", "text": "14 days"}], "metadata": {"x": [1]}}'
)

RECORDS = {
    "jsonl with _id": ('{"_id": "q1", "text": "a"}', "beir", [("q1", "a")]),
    "jsonl with qid and query": ('{"qid": "q1", "query": "a"}', "jsonl", [("q1", "a")]),
    "jsonl with id and question": ('\ufeff{"id": "q1", "question": "a"}\r\n', "jsonl", [("q1", "a")]),
    "tsv": ("q1\ta b\nq2\tc\n", "tsv", [("q1", "a b"), ("q2", "c")]),
    "tsv splits at the first tab only": ("q1\ta\tb\n", "tsv", [("q1", "a\tb")]),
    "tsv takes quotes as they are": (
        'q1\t"to be or not to be" who said it\nq2\t5\' 10" in cm\nq3\tplain\n',
        "tsv",
        [("q1", '"to be or not to be" who said it'), ("q2", "5' 10\" in cm"), ("q3", "plain")],
    ),
    "tsv with IDs that are no numbers": (
        "001\tfirst\n1\tanother\n010\tthird\nNA\tx\n1e5\ty\n",
        "tsv",
        [("001", "first"), ("1", "another"), ("010", "third"), ("NA", "x"), ("1e5", "y")],
    ),
    "tsv with operators": (
        'q1\tQueen\'s statement\nq2\tand/or {x}\nq3\tcovid-19 -fees +"late" :*\nq4\tÇağdaş 语 🦊\n',
        "tsv",
        [
            ("q1", "Queen's statement"),
            ("q2", "and/or {x}"),
            ("q3", 'covid-19 -fees +"late" :*'),
            ("q4", "Çağdaş 语 🦊"),
        ],
    ),
    "tsv with an ID full of blanks and quotes": (
        "q1'; drop table x; --\tO'Neil\n",
        "tsv",
        [("q1'; drop table x; --", "O'Neil")],
    ),
    "a hash starts no comment here": ("#1\tfirst\n", "tsv", [("#1", "first")]),
    "csv by RFC 4180": (
        'id,text\nq1,"a, ""b""\nand c"\nq2,d\n',
        "csv",
        [("q1", 'a, "b"\nand c'), ("q2", "d")],
    ),
    "csv in another order": ("text,qid\na,q1\n", "csv", [("q1", "a")]),
    "trec topics, tags unclosed": (
        "<top>\n<num> Number: 301\n<title> International Crime\n\n<desc> Description:\nWhat is\nit?\n\n"
        "<narr> Narrative:\nA relevant\ndocument\n</top>\n\n"
        "<top>\n<num> Number: 051\n<title> Topic: Airbus < Boeing\n</top>\n",
        "trec",
        [("301", "International Crime"), ("051", "Airbus < Boeing")],
    ),
    "trec topics, closed and crowded": (
        "<top>\n<num>1</num><title>\nDIELECTRIC CONSTANT\n</title>\n</top>\n<top><num>2</num><title>b</title></top>",
        "trec",
        [("1", "DIELECTRIC CONSTANT"), ("2", "b")],
    ),
    "trec topics without a title": (
        "<top>\n<num> Number: 1\n<desc> Description:\nWhat is it?\n</top>",
        "trec",
        [("1", "What is it?")],
    ),
    "trec topics in XML": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<topics>\n<topic number="1"><query>covid &amp; flu</query>'
        "<question>q?</question><narrative>n</narrative></topic>\n"
        "<topic><num>2</num><title>b</title><desc>d</desc></topic>\n</topics>",
        "trec-xml",
        [("1", "covid & flu"), ("2", "b")],
    ),
    "trec topics in XML, text alone": (
        '<topics task="x"><topic number="7">free text</topic></topics>',
        "trec-xml",
        [("7", "free text")],
    ),
}


@pytest.mark.parametrize(("text", "format", "expected"), RECORDS.values(), ids=RECORDS.keys())
def test_records(tmp_path, text, format, expected):
    read = questions_of(tmp_path, text)
    assert read.findings.faults.as_json() == []
    assert (read.sniff.format, pairs(read)) == (format, expected)


def test_all_fields(tmp_path):
    (record,) = questions_of(tmp_path, FULL).records
    assert record == QuestionRecord(
        id="q1",
        text="How long?",
        narrative="n",
        slices=("a", "b"),
        split="holdout",
        answerable=False,
        group="g",
        scope="staff",
        effective_date=date(2024, 2, 29),
        facts=(Fact("f1", "14 days"),),
        metadata={"x": [1]},
    )


def test_all_fields_from_csv(tmp_path):
    text = (
        "id,text,slices,split,answerable,group,effective_date,facts\n"
        'q1,a,x; y,dev,no,g,2024-01-01,"[{""id"": ""f"", ""text"": ""t""}]"\nq2,b,,,,,,\n'
    )
    first, second = questions_of(tmp_path, text).records
    assert (first.slices, first.split, first.answerable, first.group) == (("x", "y"), "dev", False, "g")
    assert (first.effective_date, first.facts) == (date(2024, 1, 1), (Fact("f", "t"),))
    assert second == QuestionRecord("q2", "b")


def test_topic_fields(tmp_path):
    text = (
        "<top>\n<num> Number: 1\n<dom> Domain: X\n<title> t\n<desc> Description:\nd\n"
        "<narr> Narrative:\nn1\nn2\n</top>"
    )
    (record,) = questions_of(tmp_path, text).records
    assert (record.text, record.narrative) == ("t", "d\n\nn1\nn2")


FAULTS = {
    "no ID": ('{"text": "a"}', "missing-field", 1, "id"),
    "no text": ('{"id": "q1"}', "missing-field", 1, "text"),
    "text of another type": ('{"id": "q1", "text": 5}', "field-type", 1, "text"),
    "blank text": ('{"id": "q1", "text": "  "}', "empty-text", 1, "text"),
    "empty ID": ('{"id": "", "text": "a"}', "id-empty", 1, "id"),
    "ID with a tab": ('{"id": "a\\tb", "text": "a"}', "control-character", 1, "id"),
    "ID true": ('{"id": true, "text": "a"}', "field-type", 1, "id"),
    "unknown split": ('{"id": "q1", "text": "a", "split": "train"}', "split", 1, "split"),
    "date": ('{"id": "q1", "text": "a", "effective_date": "1.2.2024"}', "date", 1, "effective_date"),
    "no such day": ('{"id": "q1", "text": "a", "effective_date": "2023-02-29"}', "date", 1, "effective_date"),
    "answerable": ('{"id": "q1", "text": "a", "answerable": "maybe"}', "field-type", 1, "answerable"),
    "slices": ('{"id": "q1", "text": "a", "slices": {"a": 1}}', "field-type", 1, "slices"),
    "a slice without a name": ('{"id": "q1", "text": "a", "slices": [1]}', "field-type", 1, "slices"),
    "facts": ('{"id": "q1", "text": "a", "facts": ["x"]}', "field-type", 1, "facts"),
    "a fact's ID for two texts": (
        '{"id": "q1", "text": "a", "facts": [{"id": 1, "text": "x"}, {"id": 1, "text": "y"}]}',
        "same-id-other-content",
        1,
        "facts.id",
    ),
    "not an object": ('{"id": "q1", "text": "a"}\n[1]', "json", 2, ""),
    "not JSON": ('{"id": "q1", "text": "a"}\n\n{"id"', "json", 3, "column 6"),
    "a key twice": (
        '{"id": "q1", "text": "a"}\n{"id": "q2", "text": "b", "te\\u0078t" : "c"}',
        "key-twice",
        2,
        "text",
    ),
    "a key twice far inside": (
        '{"id": "q1", "text": "a", "metadata": {"x": [{"a": 1, "a": 1}]}}',
        "key-twice",
        1,
        "a",
    ),
    "a key twice in a cell of JSON": (
        'id,text,metadata\nq1,a,"{""x"": 1,\n""x"": 2}"\n',
        "key-twice",
        2,
        "x",
    ),
    "NUL": ('{"id": "q1", "text": "\\u0000"}', "nul", 1, ""),
    "deep": ('{"id": "q1", "text": "a", "metadata": ' + '{"a":' * 60 + "1" + "}" * 61, "json-depth", 1, ""),
    "very deep": ("[" * 3000 + "]" * 3000, "json-depth", 1, ""),
    "line without a tab": ("q1\ta\nsecond half\n", "columns", 2, "1 column"),
    "csv with too many fields": ("id,text\nq1,a,b\n", "columns", 2, "3 columns"),
    "csv with an open quote": ('id,text\nq1,a\nq2,"b\nq3,c\n', "quotes", 3, ""),
    "csv with text behind a quote": ('id,text\nq1,"a"b\n', "quotes", 2, ""),
    "topic outside": ("<top>\n<num>1\n<title>a\n</top>\nstray\n", "topic", 5, ""),
    "topic without a number": ("<top>\n<title>a\n</top>", "missing-field", 1, "id"),
    "XML cut short": ('<topics>\n<topic number="1"><query>a</query></topic>\n', "topic", 3, ""),
    "XML with entities": (
        '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>\n<topics><topic number="1">&a;</topic></topics>',
        "topic",
        2,
        "",
    ),
    "NUL in a cell of JSON": ('id,text,slices\nq1,a,"[""\\u0000""]"\n', "nul", 2, ""),
    "nothing": ("\n \n", "empty-file", None, ""),
    "header alone": ("id,text\n", "empty-file", None, ""),
    "csv with semicolons": ("id;text\nq1;a\n", "unknown-format", None, "first line"),
    "tsv with columns of its own": ("qid\tquery\tnarrative\nq1\ta\tb\n", "header", 1, ""),
    "tsv in another order": ("text\tid\na\tq1\n", "header", 1, ""),
    "prose": ("just some words\n", "unknown-format", None, "first line"),
}


@pytest.mark.parametrize(("text", "kind", "line", "field"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path, text, kind, line, field):
    read = questions_of(tmp_path, text)
    assert read.findings.faults.kinds() == [kind]
    (example,) = read.findings.faults.examples(kind)
    assert (example.line, example.field) == (line, field)
    assert read.findings.faults.as_json()[0]["meaning"]


def test_one_id_for_two_texts_names_both_lines(tmp_path):
    read = questions_of(tmp_path, "44\tdate column\n44\tafter 2012\n45\tsmall\n45\tsmall\n")
    (example,) = read.findings.faults.examples("same-id-other-content")
    assert (example.line, example.field, example.value) == (2, "44", "after 2012")
    assert "line 1" in example.expected
    (repeated,) = read.findings.warnings.examples("repeated")
    assert (repeated.line, repeated.expected) == (4, "first on line 3")
    assert read.read == 4


def test_one_id_with_other_fields_is_other_content(tmp_path):
    read = questions_of(tmp_path, '{"id": "q1", "text": "a"}\n{"id": "q1", "text": "a", "split": "dev"}')
    assert read.findings.faults.kinds() == ["same-id-other-content"]


def test_a_group_in_two_splits_would_leak(tmp_path):
    read = questions_of(
        tmp_path,
        '{"id": "q1", "text": "a", "group": "g", "split": "dev"}\n'
        '{"id": "q2", "text": "b", "group": "g", "split": "holdout"}\n'
        '{"id": "q3", "text": "c", "group": "h", "split": "dev"}\n',
    )
    (example,) = read.findings.faults.examples("group-in-two-splits")
    assert (example.line, example.field, example.value) == (2, "g", "q2: holdout")
    assert example.expected == "dev, as q1 on line 1"


def test_ids_are_made_once_from_the_text(tmp_path):
    first = questions_of(tmp_path, "text\nopening hours\nfees\n")
    assert [text for _id, text in pairs(first)] == ["opening hours", "fees"]
    assert all(name.startswith("q-") and not any(map(str.isspace, name)) for name, _text in pairs(first))
    assert first.findings.warnings.count("ids-made") == 2
    again = questions_of(tmp_path, "text\nnew\nfees\nopening hours\nfees\n")
    assert sorted(pairs(again)[1:]) == sorted(pairs(first))
    assert again.findings.warnings.count("repeated") == 1


def test_a_tab_separated_header_is_told_and_skipped(tmp_path):
    read = questions_of(tmp_path, "qid\tquery\nq1\ta\n")
    assert pairs(read) == [("q1", "a")]
    assert read.findings.warnings.kinds() == ["header-skipped"]


def test_a_table_that_is_not_separated_by_commas_is_told(tmp_path):
    (example,) = questions_of(tmp_path, "id;text\nq1;a\n").findings.faults.examples("unknown-format")
    assert "with semicolons instead" in example.expected
    (example,) = questions_of(tmp_path, "id\ttext\tsplit\n").findings.faults.examples("header")
    assert "read as CSV" in example.expected


def test_a_first_id_may_begin_with_a_bracket(tmp_path):
    assert pairs(questions_of(tmp_path, "[q1]\ta\n{2\tb\n")) == [("[q1]", "a"), ("{2", "b")]


def test_a_first_question_that_is_a_word_of_headers_is_a_question(tmp_path):
    read = questions_of(tmp_path, "q1\tquery\nq2\ttitle\n")
    assert pairs(read) == [("q1", "query"), ("q2", "title")]


def test_what_looks_like_keys_in_a_text_is_text(tmp_path):
    read = questions_of(tmp_path, '{"id": "q1", "text": ":a \\"id\\": 1, \\"id\\" : 2", "slices": [":"]}')
    assert not read.findings.faults
    assert pairs(read) == [("q1", ':a "id": 1, "id" : 2')]


def test_unknown_keys_are_told(tmp_path):
    read = questions_of(tmp_path, '{"id": "q1", "text": "a", "turn": 3}')
    assert read.findings.warnings.examples("keys-ignored")[0].field == "turn"


def test_a_key_beside_the_one_that_was_read_is_told(tmp_path):
    read = questions_of(tmp_path, '{"_id": "q1", "title": "Grinder", "query": "How is it cleaned?"}')
    assert read.findings.warnings.examples("keys-ignored")[0].field == "title"
    assert not read.findings.faults


CHUNK = '{"_id": "c%d", "title": "Grinder", "text": "Clean it.", "metadata": {}}\n'


def test_a_corpus_is_no_file_of_questions(tmp_path):
    corpus = "".join(CHUNK % number for number in range(10))
    read = questions_of(tmp_path, corpus)
    assert read.findings.faults.kinds() == ["chunks-for-questions"]
    assert "import the file as chunks" in read.findings.faults.examples("chunks-for-questions")[0].expected


@pytest.mark.parametrize(
    "content",
    [
        '{"_id": "c1", "title": "Grinder", "text": "How?", "narrative": "Home users."}',
        '{"_id": "q1", "title": "How is it cleaned?"}',
        CHUNK % 1 + '{"_id": "q2", "text": "How?"}',
    ],
)
def test_a_title_makes_no_chunks_of_questions(tmp_path, content):
    assert not questions_of(tmp_path, content).findings.faults


def test_format_can_be_named(tmp_path):
    assert pairs(questions_of(tmp_path, "id,text\tb\n", format="tsv")) == [("id,text", "b")]
    assert questions_of(tmp_path, "q1\ta\n", format="csv").findings.faults.kinds() == ["header"]


def test_what_it_is_taken_for_can_be_shown(tmp_path):
    shown = questions_of(tmp_path, "id,text,slices\nq1,a,x\n").sniff.as_json()
    assert shown["format"] == "csv"
    assert shown["columns"] == ["id", "text", "slices"]
    assert shown["first_lines"] == ["id,text,slices", "q1,a,x"]
    assert shown["why"]


@pytest.mark.parametrize("junk", ["<a/>\n", "<a>" + "x" * 50 + "</a>\n"])
def test_what_is_no_topic_is_not_kept_in_memory(tmp_path, junk):
    path = tmp_path / "topics.xml"
    path.write_text(f'<topics>{junk * 50_000}<topic number="1"><query>a</query></topic></topics>')
    tracemalloc.start()
    read = read_questions(path, limits=Limits(block_bytes=4096))
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [record.text for record in read.records] == ["a"]
    assert peak < 1_500_000, "50,000 elements take 5 MB"


def test_a_topic_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "topics.xml"
    path.write_text('<topics>\n<topic number="1"><query>' + f"{'long line ' * 1000}\n" * 450)
    (example,) = read_questions(path).findings.faults.examples("topic")
    assert "without a topic's end" in example.value

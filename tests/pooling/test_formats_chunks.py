"""Chunks: text in, a stream of records and findings out."""

from datetime import date
from pathlib import Path

import pytest

from pooling.formats import ChunkFile, ChunkRecord


def chunks_of(tmp_path: Path, text: str, **options) -> tuple[list[ChunkRecord], ChunkFile]:
    path = tmp_path / "chunks"
    path.write_bytes(text.encode())
    file = ChunkFile(path, **options)
    return list(file), file


RECORDS = {
    "beir": (
        '{"_id": "c1", "title": "t", "text": "x", "metadata": {"u": 1}}',
        "beir",
        [ChunkRecord("c1", "x", title="t", metadata={"u": 1})],
    ),
    "jsonl": (
        '{"id": "c1", "text": "x", "doc_id": "d", "url": "http://e.org", "revision": 3, "start": 0, "end": 9,'
        ' "effective_from": "2024-01-01", "effective_to": "2024-12-31", "scope": "staff"}',
        "jsonl",
        [
            ChunkRecord(
                "c1",
                "x",
                doc_id="d",
                url="http://e.org",
                revision="3",
                start=0,
                end=9,
                effective_from=date(2024, 1, 1),
                effective_to=date(2024, 12, 31),
                scope="staff",
            )
        ],
    ),
    "two columns, one with a tab in the text": (
        "c1\tone \ttwo\nc2\tclean\n",
        "tsv",
        [ChunkRecord("c1", "one \ttwo"), ChunkRecord("c2", "clean")],
    ),
    "three columns": (
        "c1\tTitle\tone\ttwo\nc2\t\ttext\n",
        "tsv-title",
        [ChunkRecord("c1", "one\ttwo", title="Title"), ChunkRecord("c2", "text")],
    ),
    "csv": ('id,title,text\nc1,t,"a, b"\n', "csv", [ChunkRecord("c1", "a, b", title="t")]),
    "formulas are text": ('{"_id": "=1+1", "text": "\\t=1+1"}', "beir", [ChunkRecord("=1+1", "\t=1+1")]),
    "spreadsheet victims": (
        "73928e03\ta\n1-2\tb\n04567\tc\n",
        "tsv",
        [ChunkRecord("73928e03", "a"), ChunkRecord("1-2", "b"), ChunkRecord("04567", "c")],
    ),
    "line separators inside a text do not end the line": (
        "c1\ta\u2028b\x0bc\n",
        "tsv",
        [ChunkRecord("c1", "a\u2028b\x0bc")],
    ),
    "the same ID twice is the storer's to compare": (
        "c1\ta\nc1\tb\n",
        "tsv",
        [ChunkRecord("c1", "a"), ChunkRecord("c1", "b")],
    ),
}


@pytest.mark.parametrize(("text", "format", "expected"), RECORDS.values(), ids=RECORDS.keys())
def test_records(tmp_path, text, format, expected):
    records, file = chunks_of(tmp_path, text)
    assert file.findings.faults.as_json() == []
    assert (file.sniff.format, records) == (format, expected)
    assert file.read == len(expected)
    assert file.digest


@pytest.mark.parametrize("text", ['{"id": "c1", "text": "%s"}', "c1\t%s\n", "id,text\nc1,%s\n"])
def test_a_chunk_of_200_000_characters(tmp_path, text):
    records, file = chunks_of(tmp_path, text % ("word " * 40_000).strip())
    assert not file.findings.faults
    assert len(records[0].text) == 199_999


FAULTS = {
    "line without a tab": ("c1\ta\nc2\tb\nno tab here\nc3\tc\n", "columns", 3, "1 column"),
    "text twice": (
        '{"_id": "c1", "text": "x:"}\n{"_id": "c2", "text": "x", "text": "y"}',
        "key-twice",
        2,
        "text",
    ),
    "csv with semicolons": ("id;title;text\nc1;t;x\n", "unknown-format", None, "first line"),
    "tsv in another order": ("id\ttext\turl\nc1\tx\thttp://\n", "header", 1, ""),
    "tsv with a column too many": ("id\ttitle\ttext\turl\nc1\tt\tx\tu\n", "header", 1, ""),
    "span backwards": ('{"id": "c1", "text": "x", "start": 9, "end": 3}', "span", 1, "end"),
    "period backwards": (
        '{"id": "c1", "text": "x", "effective_from": "2024-02-01", "effective_to": "2024-01-01"}',
        "span",
        1,
        "effective_to",
    ),
    "start below zero": ('{"id": "c1", "text": "x", "start": -1}', "field-type", 1, "start"),
    "start beyond 31 bits": ('{"id": "c1", "text": "x", "start": 2147483648}', "field-type", 1, "start"),
    "a day by its week": (
        '{"id": "c1", "text": "x", "effective_to": "2024-W01-1"}',
        "date",
        1,
        "effective_to",
    ),
    "NUL in a cell of JSON": ('id,text,metadata\nc1,x,"{""a"": ""\\u0000""}"\n', "nul", 2, ""),
    "metadata of another type": ('{"id": "c1", "text": "x", "metadata": []}', "field-type", 1, "metadata"),
    "no text": ('{"id": "c1"}', "missing-field", 1, "text"),
    "nothing": ("", "empty-file", None, ""),
    "header alone": ("id,text\n", "empty-file", None, ""),
    "unclosed quote": ('id,text\nc1,"a\n', "quotes", 2, ""),
}


@pytest.mark.parametrize(("text", "kind", "line", "field"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path, text, kind, line, field):
    _records, file = chunks_of(tmp_path, text)
    assert file.findings.faults.kinds() == [kind]
    (example,) = file.findings.faults.examples(kind)
    assert (example.line, example.field) == (line, field)


def test_three_columns_by_name_need_both_tabs(tmp_path):
    _records, file = chunks_of(tmp_path, "c1\tt\tx\nc2\tx\n", format="tsv-title")
    assert file.findings.faults.examples("columns")[0].line == 2


def test_a_chunk_without_text_is_warned_of(tmp_path):
    records, file = chunks_of(tmp_path, '{"id": "c1", "text": ""}')
    assert records == [ChunkRecord("c1", "")]
    assert file.findings.warnings.kinds() == ["empty-text"]


def test_only_wanted_chunks_are_kept(tmp_path):
    records, file = chunks_of(tmp_path, "c1\ta\nc2\tb\nc3\tc\n", wanted={"c2"})
    assert [record.id for record in records] == ["c2"]
    assert (file.read, file.left_out) == (3, 2)

"""Whatever the bytes, a reader answers with records or with faults, never with an exception."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pooling.formats import FORMATS, ChunkFile, Limits, read_qrels, read_questions, read_run, read_verdicts

LIMITS = Limits(unpacked_bytes=100_000, line_bytes=50_000)

PIECES = [
    b"q1 Q0 c1 1 2.5 s\n",
    b"q1 0 c1 1\n",
    b"q1\ttext\n",
    b"id,text\n",
    b'q1,"a ""b"""\n',
    b'{"id": "q1", "text": "a", "results": [{"id": "c", "score": 1}], "grades": {"c": 0}}\n',
    b'{"question_id": "q", "chunk_id": "c", "grade": 1}\n',
    b'{"q1": {"c": 1}}',
    b'[{"id": "q", "grades": {"c": 1}}]',
    b"<top>\n<num> Number: 1\n<title> a\n</top>\n",
    b'<topics><topic number="1">a</topic></topics>',
    b"query-id\tcorpus-id\tscore\n",
    b"qid,docid,score\n",
    b"# comment\n",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\x00",
    b"\xff",
    b'"',
    b"[" * 2000,
    b'{"a":' * 2000,
    b"\\ud800",
    b"1e999",
    b"<!DOCTYPE a [",
    b'<?xml version="1.0" encoding="utf-16"?>',
    b'<?xml version="1.0" encoding="no-such"?>',
]

contents = st.one_of(
    st.binary(max_size=300),
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=10).map(b"".join),
    st.text(max_size=100).map(str.encode),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "text", "qid", "results", "score", "grades", "c"]), inner, max_size=3
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode()),
)


def read(kind: str, path: Path, format: str | None):
    if kind == "chunks":
        file = ChunkFile(path, format=format, limits=LIMITS)
        return list(file), file.findings
    reader = {
        "questions": read_questions,
        "run": read_run,
        "qrels": read_qrels,
        "verdicts": read_verdicts,
        "judge": read_qrels,
    }[kind]
    result = reader(path, format=format, limits=LIMITS)
    return (result.rankings if kind == "run" else result.records), result.findings


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("kind", "format"),
    [
        (kind, format)
        for kind, formats in FORMATS.items()
        for format in [None, *(known.name for known in formats)]
    ],
)
def test_any_bytes_give_records_or_faults(kind, format, packed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any"

        @settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
        @given(contents)
        def check(content: bytes) -> None:
            path.write_bytes(gzip.compress(content) if packed else content)
            records, findings = read(kind, path, format)
            assert records or findings.faults or kind == "verdicts"
            json.dumps(findings.faults.as_json(), allow_nan=False).encode()
            json.dumps(findings.warnings.as_json(), allow_nan=False).encode()
            for entry in findings.faults.as_json():
                assert entry["meaning"]
                assert not any("\x00" in example["value"] for example in entry["examples"])

        check()


@pytest.mark.parametrize("head", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PK\x05\x06"])
def test_any_bytes_behind_a_packing_mark(head):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any"

        @settings(
            max_examples=100, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
        )
        @given(st.binary(max_size=200))
        def check(content: bytes) -> None:
            path.write_bytes(head + content)
            records, findings = read("run", path, None)
            assert records or findings.faults

        check()


@pytest.mark.parametrize("kind", FORMATS)
def test_examples_of_the_catalogue_can_be_read(kind, tmp_path):
    for known in FORMATS[kind]:
        path = tmp_path / "example"
        path.write_text(known.example)
        records, findings = read(kind, path, known.name)
        assert findings.faults.as_json() == [], known.name
        assert records, known.name
        if known.name not in ("msmarco", "beir", "jsonl", "tsv"):
            assert read(kind, path, None)[1].faults.as_json() == [], known.name

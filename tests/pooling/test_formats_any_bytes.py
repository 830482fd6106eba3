"""Whatever the bytes, a reader answers with records or with faults, never with an exception: `fuzz/properties.py`."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.properties import PROPERTIES
from fuzz.seeds import seeds, tokens
from pooling.formats import FORMATS, ChunkFile, read_qrels, read_questions, read_run, read_verdicts

TOKENS = [*tokens(), b"[" * 2000, b'{"a":' * 2000]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "text", "qid", "results", "score", "grades", "c"]), inner, max_size=3
        )
    ),
    max_leaves=10,
)


def contents(reader: str) -> st.SearchStrategy[bytes]:
    """Option bytes and a file: random, of tokens, of JSON, or a seed with something put into it."""
    options = st.binary(min_size=5, max_size=5)
    pieces = st.sampled_from(TOKENS) | st.binary(max_size=8)
    anything = st.one_of(
        st.binary(max_size=300),
        st.lists(pieces, max_size=10).map(b"".join),
        json_values.map(json.dumps).map(str.encode),
    )
    changed = st.tuples(st.sampled_from(list(seeds(reader))), st.floats(0, 1), pieces, st.integers(0, 4))
    return st.tuples(options, anything).map(b"".join) | changed.map(put_into)


def put_into(drawn: tuple[bytes, float, bytes, int]) -> bytes:
    seed, place, piece, left_out = drawn
    at = int(place * len(seed))
    return seed[:at] + piece + seed[at + left_out :]


@pytest.mark.parametrize("reader", PROPERTIES)
def test_any_bytes_give_records_or_faults(reader):
    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(contents(reader))
    def check(data: bytes) -> None:
        PROPERTIES[reader](data)

    check()


@pytest.mark.parametrize("reader", PROPERTIES)
def test_what_the_fuzzer_begins_with(reader):
    for seed in seeds(reader):
        PROPERTIES[reader](seed)


@pytest.mark.parametrize("kind", FORMATS)
def test_examples_of_the_catalogue_can_be_read(kind, tmp_path):
    def read(format: str | None):
        if kind == "chunks":
            file = ChunkFile(path, format=format)
            return list(file), file.findings
        file = READERS[kind](path, format=format)
        return (file.rankings if kind == "run" else file.records), file.findings

    for known in FORMATS[kind]:
        path = tmp_path / "example"
        path.write_text(known.example)
        records, findings = read(known.name)
        assert findings.faults.as_json() == [], known.name
        assert records, known.name
        if known.name not in ("msmarco", "beir", "jsonl", "tsv"):
            assert read(None)[1].faults.as_json() == [], known.name


READERS = {
    "questions": read_questions,
    "run": read_run,
    "qrels": read_qrels,
    "verdicts": read_verdicts,
    "judge": read_qrels,
}

"""JSON written by hand: a run's configuration, a scale."""

import json

import pytest

from evalsets.strict_json import parse_document


@pytest.mark.parametrize(
    "content",
    [
        '{"model": "bm25", "k1": 0.9, "deep": [{"a": null}, true], "name": "\\ud83d\\ude00 \\\\u0000"}',
        '\ufeff{"a": 1}'.encode(),
        b"\r\n [9223372036854775807, -1, 1e300] ",
    ],
)
def test_what_the_database_can_keep_is_taken_as_it_is(content):
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    assert parse_document(content) == json.loads(text)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "Expecting value"),
        ("{'a': 1}", "line 1 column 2"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": 1e999}', "too large"),
        ('{"a": [9223372036854775808]}', "64 bits"),
        ('{"a": ' + "1" * 5000 + "}", "digits"),
        ('{"a": {"\\u0000": 1}}', "NUL"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ("[" * 51 + "]" * 51, "nested more than 50 deep"),
        ("[" * 100_000 + "]" * 100_000, "nested more than 50 deep"),
        (b'"\xff"', "utf-8"),
        ('{"a": {"b": 1, "\\u0062": 1}}', "the key 'b' twice"),
    ],
)
def test_what_it_cannot_is_refused_in_words(content, why):
    with pytest.raises(ValueError, match=why):
        parse_document(content)

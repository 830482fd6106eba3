"""The command `verdict`: what two chunks are to each other, said and taken back."""

from __future__ import annotations

import pytest

from judging.models import PairVerdict
from labels.services.duplicates import find_equal
from tests.commands import call, call_json
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import judge

pytestmark = pytest.mark.django_db
BY = ("--by", "carol")


@pytest.fixture
def chunks(evalset, carol):
    return make_chunks(evalset, "a", "b", "c")


def test_a_verdict_is_given_told_and_taken_back(evalset, carol, chunks, capsys):
    arguments = ("verdict", "handbook", "a", "b", "same", "--note", "one page, two formats", *BY)
    status, document = call_json(*arguments, capsys=capsys)
    assert status == 0
    assert document == {
        "first": "a",
        "second": "b",
        "verdict": "same",
        "assessor": "carol",
        "note": "one page, two formats",
        "written": True,
        "classes_before": [],
        "classes": [["a", "b"]],
        "sentence": "Classes before: none. Classes now: a, b.",
    }
    event = evalset.events.get()
    assert (event.verb, event.by) == ("classes-changed", carol)
    _, out = call("verdict", "handbook", "b", "a", capsys=capsys)
    assert out == "b and a: same, by carol.\n"
    assert "Nothing was written" in call("verdict", "handbook", "b", "a", "same", *BY, capsys=capsys)[1]
    _, taken = call_json("verdict", "handbook", "b", "a", "take-back", *BY, capsys=capsys)
    assert (taken["verdict"], taken["classes"]) == (None, [])
    assert PairVerdict.objects.count() == 2


def test_newer_and_older_are_told_of_the_first_that_is_named(chunks, capsys):
    assert call("verdict", "handbook", "b", "a", "newer", *BY, capsys=capsys)[0] == 0
    for pair, word in (("ba", "newer"), ("ab", "older")):
        assert call_json("verdict", "handbook", *pair, capsys=capsys)[1]["verdict"] == word
    status, document = call_json("verdict", "handbook", "a", "b", "newer", *BY, capsys=capsys)
    assert (status, document["verdict"]) == (0, "newer")


def test_what_waits_is_listed(evalset, alice, chunks, capsys):
    [question] = make_questions(evalset, "q1")
    for chunk in chunks[:2]:
        add_revision(chunk, "The same words.")
        judge(question, chunk, 1, by=alice)
    find_equal(evalset=evalset)
    _, document = call_json("verdict", "handbook", capsys=capsys)
    assert document == {"waiting": [{"first": "a", "second": "b", "similarity": 1.0, "equal": True}]}
    _, out = call("verdict", "handbook", capsys=capsys)
    assert out == "a  b  equal\n1 pairs wait for a verdict.\n"
    call("verdict", "handbook", "a", "b", "different", *BY, capsys=capsys)
    assert call_json("verdict", "handbook", capsys=capsys)[1] == {"waiting": []}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "name CHUNK_B too"),
        (["a", "b", "same"], "name them with --by"),
        (["a", "b", "same", "--by", "alice"], "alice does not lead handbook"),
        (["a", "A", "same", *BY], "There is no chunk 'A' in handbook"),
        (["a", "a", "same", *BY], "cannot be compared with itself"),
        (["a", "c", "same", *BY], "a and c cannot be one class: a differs from b; b has the content of c."),
    ],
)
def test_it_says_what_is_wrong(alice, chunks, capsys, arguments, message):
    call("verdict", "handbook", "a", "b", "different", *BY, capsys=capsys)
    call("verdict", "handbook", "b", "c", "same", *BY, capsys=capsys)
    status, document = call_json("verdict", "handbook", *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]
    assert PairVerdict.objects.count() == 2

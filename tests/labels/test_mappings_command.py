"""The command `mappings`: new texts beside old ones, and the lead's decision."""

from __future__ import annotations

import pytest

from labels.models import TextMapping
from labels.services.mapping import find_mappings
from tests.commands import call, call_json
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import judge

pytestmark = pytest.mark.django_db
OLD = "Refunds are paid within 14 days. Write to us before you send anything back."
MAPPINGS = ("mappings", "handbook")


@pytest.fixture
def revised(evalset, alice, carol):
    """q1 found its evidence in a sentence that stays, q2 in none; then a new text comes."""
    questions = make_questions(evalset, "q1", "q2")
    [chunk] = make_chunks(evalset, "refund", text=False)
    add_revision(chunk, OLD, number=1)
    spans = [{"start": 33, "end": 44, "text": OLD[33:44]}]
    judge(questions[0], chunk, 2, by=alice, spans=spans)
    judge(questions[1], chunk, 3, by=alice)
    add_revision(chunk, OLD.replace("14", "30"))
    find_mappings(evalset=evalset, by=None)
    return chunk


def test_what_waits_is_listed_with_its_labels(revised, capsys):
    status, document = call_json(*MAPPINGS, capsys=capsys)
    assert status == 0
    [row] = document["waiting"]
    assert (row["old"], row["old_revision"], row["new"], row["new_revision"]) == ("refund", 1, "refund", 2)
    assert [(one["question"], one["label"], bool(one["rule"])) for one in row["labels"]] == [
        ("q1", 2, True),
        ("q2", 3, False),
    ]
    _, out = call(*MAPPINGS, capsys=capsys)
    assert "    q2: 3, a person decides\n1 wait for a decision." in out


def test_nothing_is_decided_without_a_yes(revised, capsys):
    status, document = call_json(*MAPPINGS, "refund", "refund", "carry", "--by", "carol", capsys=capsys)
    assert (status, "with --yes" in document["error"]) == (3, True)
    assert TextMapping.objects.get().decided_at is None


@pytest.mark.parametrize(("act", "carried"), [("carry", 2), ("leave", 0)])
def test_a_decision_is_the_leads_and_stands(evalset, revised, carol, capsys, act, carried):
    arguments = (*MAPPINGS, "refund", "refund", act, "--by", "carol", "--yes")
    status, document = call_json(*arguments, capsys=capsys)
    assert (status, document["decided"], document["carried"]) == (0, act, carried)
    assert TextMapping.objects.get().decided_by == carol
    assert evalset.events.get(verb="labels-carried").by == carol
    assert call_json(*MAPPINGS, capsys=capsys)[1] == {"waiting": []}
    status, document = call_json(*arguments, capsys=capsys)
    assert (status, "No text of refund waits" in document["error"]) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refund", "refund", "carry"], "and --by"),
        (["refund"], "A decision needs OLD, NEW"),
        (["refund", "refunds", "carry", "--by", "carol"], "There is no chunk 'refunds'"),
        (["refund", "refund", "carry", "--by", "alice"], "alice does not lead"),
    ],
)
def test_it_says_what_is_wrong(revised, capsys, arguments, message):
    status, document = call_json(*MAPPINGS, *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]

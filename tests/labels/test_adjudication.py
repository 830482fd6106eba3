"""Settling contested pairs: blind until decided, the decision overrides, the originals stay."""

import uuid

import pytest

from evalsets.errors import BadInput
from judging.models import Assessor, Judgment
from judging.services.adjudication import adjudicate
from labels.settling import contested_pairs, labels_of_question
from tests.conftest import add_revision, make_chunks, make_questions


@pytest.fixture
def contested(evalset, alice, bob):
    [question] = make_questions(evalset, "q1")
    [chunk] = make_chunks(evalset, "c1")
    for user, grade, note in ((alice, 0, "not about it"), (bob, 3, "the rule itself")):
        assessor = Assessor.objects.create(evalset=evalset, kind="person", user=user, name=user.username)
        Judgment.objects.create(
            evalset=evalset,
            question=question,
            chunk=chunk,
            revision=1,
            assessor=assessor,
            grade=grade,
            note=note,
        )
    assert len(contested_pairs(evalset)) == 1
    return question, chunk


def page_of(question, chunk) -> str:
    return f"/e/handbook/contested/{question.pk}/{chunk.pk}/"


@pytest.mark.parametrize(("decision", "label"), [("0", 0), ("2", 2), ("cannot-judge", None)])
def test_a_decision_settles_the_pair_and_keeps_the_originals(
    decision, label, contested, evalset, carol, client_for
) -> None:
    question, chunk = contested
    client = client_for(carol)
    response = client.post(
        page_of(*contested), {"decision": decision, "note": "Why.", "key": str(uuid.uuid4())}
    )
    assert response["Location"] == "/e/handbook/contested/next/"
    assert labels_of_question(question)[chunk.pk].label == label
    assert contested_pairs(evalset) == []
    assert Judgment.objects.filter(source="desk").count() == 2
    assert client.get("/e/handbook/contested/next/")["Location"] == "/e/handbook/contested/"


def test_who_said_what_is_shown_only_after_the_decision(contested, carol, client_for) -> None:
    client = client_for(carol)
    before = client.get(page_of(*contested)).content.decode()
    assert "not about it" in before
    assert "by alice" not in before
    client.post(page_of(*contested), {"decision": "1", "key": str(uuid.uuid4())})
    assert "by alice" in client.get(page_of(*contested)).content.decode()


def test_one_act_is_one_decision_and_a_later_one_replaces_it(contested, evalset, carol) -> None:
    question, chunk = contested
    key = uuid.uuid4()
    for _ in range(2):
        adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=key)
    assert Judgment.objects.filter(source="adjudication").count() == 1
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=3, by=carol, key=uuid.uuid4())
    assert labels_of_question(question)[chunk.pk].label == 3


def test_a_grade_off_the_scale_is_refused(contested, evalset, carol, client_for) -> None:
    question, chunk = contested
    with pytest.raises(BadInput, match="0 to 3"):
        adjudicate(evalset=evalset, question=question, chunk=chunk, grade=9, by=carol, key=uuid.uuid4())
    client_for(carol).post(page_of(*contested), {"decision": "9", "key": str(uuid.uuid4())})
    assert not Judgment.objects.filter(source="adjudication").exists()


def test_a_decision_belongs_to_the_text_that_was_read(contested, evalset, carol) -> None:
    question, chunk = contested
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=uuid.uuid4())
    add_revision(chunk, "Another text.")
    assert labels_of_question(question) == {}

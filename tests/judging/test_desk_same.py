"""Verdicts from the desk: only on what the assessor was given, beside what they read before, names no system."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from judging.models import ChunkClass, PairVerdict
from judging.services.claims import claim_next
from judging.views.verdicts import read_before
from tests.conftest import add_revision, make_chunks, make_run
from tests.judging.batches import batch_of, grade, pair_of


@pytest.fixture
def batch(evalset, alice, carol):
    for name, text in (
        ("a", "Refunds are paid within 14 days."),
        ("b", "Refunds are paid within 30 days."),
        ("c", "Our shops open at nine."),
    ):
        add_revision(make_chunks(evalset, name, text=False)[0], text, number=1)
    made = batch_of(evalset, {"q1": ["a", "c", "b"]}, by=carol, assessors=[alice])
    make_run(evalset, "secret-run", {"q1": ["a", "b"]}, system="secret-system")
    claim_next(batch=made, by=alice)
    grade(pair_of(made, "q1", "a"), alice, 2)
    grade(pair_of(made, "q1", "c"), alice, 0)
    return made


def address(batch, cid: str) -> str:
    return reverse("judging:desk-same", args=[batch.evalset.slug, batch.pk, pair_of(batch, "q1", cid).pk])


def form(batch, other: str, verdict: str = "same") -> dict:
    return {"verdict": f"{verdict}:{batch.evalset.chunks.get(external_id=other).pk}", "key": uuid.uuid4()}


def test_what_was_read_before_comes_the_likest_first(batch, alice, client_for):
    response = client_for(alice).get(address(batch, "b"))
    page = response.content.decode()
    assert [(str(item.chunk), item.grade) for item in response.context["read_before"]] == [("a", 2), ("c", 0)]
    assert "<del>14</del><ins>30</ins>" in page
    assert "secret" not in page


def test_a_verdict_from_the_desk_makes_a_class_and_goes_back(batch, alice, client_for):
    response = client_for(alice).post(address(batch, "b"), form(batch, "a"))
    pair = pair_of(batch, "q1", "b")
    assert response["Location"] == f"{batch.desk_url}?pair={pair.pk}"
    given = PairVerdict.objects.get()
    assert (given.verdict, given.question, given.assessor.user) == ("same", pair.question, alice)
    assert ChunkClass.objects.get().members.count() == 2


@pytest.mark.parametrize("verdict", ["same", "first-newer", "second-newer", "different"])
def test_what_was_said_reads_right_afterwards(batch, alice, client_for, verdict):
    client = client_for(alice)
    client.post(address(batch, "b"), form(batch, "a", verdict))
    assessor = batch.assessors.get()
    assert [item.said for item in read_before(assessor, pair_of(batch, "q1", "b"))] == [verdict, ""]
    page = client.get(address(batch, "b")).content.decode()
    pressed = re.findall(r'value="([a-z-]+):\d+"[^>]*aria-pressed="true"', page)
    assert pressed == [verdict]


def test_gone_back_to_the_page_another_verdict_replaces(batch, alice, client_for):
    client = client_for(alice)
    sent = form(batch, "a", "same")
    for _ in range(2):
        client.post(address(batch, "b"), sent)
    assert PairVerdict.objects.count() == 1
    client.post(address(batch, "b"), {**sent, "verdict": sent["verdict"].replace("same", "different")})
    assert list(PairVerdict.objects.order_by("pk").values_list("verdict", flat=True)) == ["same", "different"]


def test_a_verdict_in_json_says_what_became_of_it(batch, alice, client_for):
    client, headers = client_for(alice), {"Accept": "application/json"}
    answer = client.post(address(batch, "b"), form(batch, "a", "first-newer"), headers=headers)
    assert answer.json() == {"said": "Saved: the one on the desk is the newer version."}
    client.post(address(batch, "b"), form(batch, "c", "same"))
    refused = client.post(address(batch, "c"), form(batch, "a", "same"), headers=headers)
    assert (refused.status_code, "b replaces a" in refused.json()["error"]) == (409, True)
    bad = client.post(address(batch, "b"), form(batch, "a", "none"), headers=headers)
    assert (bad.status_code, bad.json()["error"][:18]) == (400, "That is no verdict")
    other = {**form(batch, "a"), "as_user": "999999"}
    assert client.post(address(batch, "b"), other, headers=headers).status_code == 409


def test_a_refusal_names_the_chain(batch, alice, client_for):
    client = client_for(alice)
    client.post(address(batch, "b"), form(batch, "a", "first-newer"))
    client.post(address(batch, "b"), form(batch, "c", "same"))
    response = client.post(address(batch, "c"), form(batch, "a", "same"), follow=True)
    assert "b replaces a" in response.content.decode()


def test_only_chunks_that_one_was_given_and_graded(batch, alice, bob, client_for):
    client = client_for(alice)
    assert client.post(address(batch, "b"), form(batch, "b")).status_code == 404
    nowhere = {"verdict": "same:999999999", "key": uuid.uuid4()}
    assert client.post(address(batch, "b"), nowhere).status_code == 404
    assert client_for(bob).get(address(batch, "b")).status_code == 403
    page = client.post(address(batch, "b"), form(batch, "a", "maybe"), follow=True).content.decode()
    assert "That is no verdict" in page
    assert not PairVerdict.objects.exists()


def test_the_desk_leads_there_by_a_link_with_a_key(batch, alice, client_for):
    page = client_for(alice).get(f"{batch.desk_url}?pair={pair_of(batch, 'q1', 'b').pk}").content.decode()
    assert f'href="{address(batch, "b")}" data-key="d"' in page

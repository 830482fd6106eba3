"""Carrying labels over: which texts belong together, what a rule carries, what a person says, the marks it leaves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from evalsets.errors import Refused
from evalsets.models import Job
from judging.models import Judgment
from labels.exports.formats import FORMATS
from labels.models import TextMapping
from labels.services.carrying import carriages_of, carry_by_rule, decide_mapping, plan_by_rule
from labels.services.mapping import find_mappings
from labels.services.publishing import publish_release
from labels.settling import labels_of_question
from labels.surviving import EVIDENCE, SAME_WORDS, survival
from labels.tasks import carry_by_rule_job, find_mappings_job
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import judge

OLD = "Refunds are paid within 14 days. Write to us before you send anything back."


def span(text: str, inside: str = OLD) -> dict:
    start = inside.index(text)
    return {"start": start, "end": start + len(text), "text": text}


@pytest.mark.parametrize(
    ("new", "evidence", "rule", "whole"),
    [
        (OLD.upper() + "\n", [], SAME_WORDS, 0),
        (OLD, ["within 14 days"], SAME_WORDS, 1),
        ("New: " + OLD, ["within 14 days"], EVIDENCE, 1),
        ("New: " + OLD, [], None, 0),
        (OLD.replace("14", "30"), ["within 14 days"], None, 0),
        (OLD.replace("14", "30"), ["within 14 days", "Write to us"], None, 1),
        (OLD.replace("14", "30"), ["Write to us"], EVIDENCE, 1),
        ("", ["Write to us"], None, 0),
    ],
)
def test_when_a_label_survives(new, evidence, rule, whole):
    found = survival(OLD, new, [span(text) for text in evidence])
    assert (found.rule, len(found.spans)) == (rule, whole)
    assert all(new[item["start"] : item["end"]] == item["text"] for item in found.spans)


@pytest.fixture
def revised(evalset, alice, bob):
    """q1 found its evidence in a sentence that stays, q2 in one that changes, q3 none at all; then a new text comes."""
    questions = make_questions(evalset, "q1", "q2", "q3")
    [chunk] = make_chunks(evalset, "refund#1", text=False)
    add_revision(chunk, OLD, number=1)
    judge(questions[0], chunk, 2, by=alice, spans=[span("Write to us")])
    judge(questions[1], chunk, 3, by=alice, spans=[span("14 days")])
    judge(questions[1], chunk, 3, by=bob)
    judge(questions[2], chunk, 0, by=alice)
    add_revision(chunk, OLD.replace("14", "30"))
    find_mappings(evalset=evalset, by=None)
    return evalset


def labels(evalset) -> dict[str, tuple[str, int]]:
    return {
        question.external_id: sorted(
            (evalset.chunks.get(pk=key).external_id, pair.label)
            for key, pair in labels_of_question(question).items()
        )
        for question in evalset.questions.all()
    }


def test_a_new_text_of_a_chunk_is_found_and_its_labels_stay_behind(revised):
    mapping = TextMapping.objects.get()
    assert (mapping.method, mapping.old_revision, mapping.new_revision) == ("revision", 1, 2)
    assert labels(revised) == {"q1": [], "q2": [], "q3": []}
    assert [(item.label, item.marked, len(item.spans), item.rule) for item in carriages_of([mapping])] == [
        (2, 1, 1, EVIDENCE),
        (3, 1, 0, None),
        (0, 0, 0, None),
    ]
    assert plan_by_rule(revised) == (1, 2)


def test_a_rule_carries_only_whole_evidence_and_marks_the_label(revised, carol):
    assert carry_by_rule(evalset=revised, by=carol) == (1, 2)
    assert labels(revised) == {"q1": [("refund#1", 2)], "q2": [], "q3": []}

    carried = Judgment.objects.get(source="carried")
    original = Judgment.objects.get(question__external_id="q1", revision=1)
    assert carried.assessor.user == carol
    assert carried.details == {
        "carried_from": {
            "chunk": "refund#1",
            "revision": 1,
            "judgments": [original.pk],
            "settled_by": "unanimous",
            "because": EVIDENCE,
        }
    }
    assert carried.spans == [span("Write to us", OLD.replace("14", "30"))]
    assert TextMapping.objects.get().decided_at is None
    assert plan_by_rule(revised) == (0, 2)
    assert carry_by_rule(evalset=revised, by=carol) == (0, 2)


def test_the_export_of_judgments_says_where_a_label_came_from(revised, carol):
    carry_by_rule(evalset=revised, by=carol)
    release = publish_release(evalset=revised, by=carol).release
    rows = csv.DictReader(b"".join(FORMATS["judgments"].stream(release)).decode().splitlines())
    assert [(row["source"], row["carried_from"], row["carried_from_revision"]) for row in rows][:2] == [
        ("desk", "", ""),
        ("carried", "refund#1", "1"),
    ]


def test_looking_again_keeps_what_is_still_to_be_asked(revised, carol):
    carry_by_rule(evalset=revised, by=carol)
    assert find_mappings(evalset=revised, by=carol).revision == 1
    assert plan_by_rule(revised) == (0, 2)

    add_revision(revised.chunks.get(), "Nothing of it is left.")

    assert find_mappings(evalset=revised, by=carol).revision == 1
    assert TextMapping.objects.get(decided_at=None).old_revision == 2


def test_the_command_plans_and_carries_in_a_persons_name(revised, carol, capsys):
    call_command("carry_labels", "handbook")
    assert "1 labels can be carried by rule; 2 wait for a person." in capsys.readouterr().out
    assert not Judgment.objects.filter(source="carried").exists()

    call_command("carry_labels", "handbook", "--by-rule", "carol", "--json")

    assert json.loads(capsys.readouterr().out) == {
        "mappings": {"revision": 1, "span": 0, "text": 0},
        "by_rule": 1,
        "to_ask": 2,
        "carried": 1,
    }
    assert Judgment.objects.get(source="carried").assessor.user == carol


def test_a_person_carries_the_rest_the_negatives_too(revised, carol):
    assert decide_mapping(mapping=TextMapping.objects.get(), by=carol, carry=True) == 3
    assert labels(revised) == {"q1": [("refund#1", 2)], "q2": [("refund#1", 3)], "q3": [("refund#1", 0)]}
    reasons = (
        Judgment.objects.filter(source="carried")
        .order_by("question__external_id")
        .values_list("details", flat=True)
    )
    assert [item["carried_from"]["because"] for item in reasons] == [
        EVIDENCE,
        "a person said so",
        "a person said so",
    ]


def test_what_a_person_leaves_is_to_be_judged(revised, carol):
    mapping = TextMapping.objects.get()
    assert decide_mapping(mapping=mapping, by=carol, carry=False) == 0
    assert labels(revised) == {"q1": [], "q2": [], "q3": []}
    with pytest.raises(Refused, match="decided already"):
        decide_mapping(mapping=mapping, by=carol, carry=True)
    find_mappings(evalset=revised, by=carol)
    assert not TextMapping.objects.filter(decided_at__isnull=True).exists()


def test_a_new_text_that_was_judged_keeps_its_own_grade(revised, bob, carol):
    chunk = revised.chunks.get()
    judge(revised.questions.get(external_id="q1"), chunk, 1, by=bob)
    find_mappings(evalset=revised, by=carol)
    for mapping in TextMapping.objects.all():
        decide_mapping(mapping=mapping, by=carol, carry=True)
    assert labels(revised)["q1"] == [("refund#1", 1)]


def test_a_mapping_is_refused_once_a_newer_text_has_come(revised, carol):
    add_revision(revised.chunks.get(), "Quite another text.")
    with pytest.raises(Refused, match="has a newer text by now"):
        decide_mapping(mapping=TextMapping.objects.get(), by=carol, carry=True)


@pytest.fixture
def rechunked(evalset, alice):
    """Two old chunks of one document are cut anew into three; the third of the new ones lies elsewhere."""
    question, _ = make_questions(evalset, "q1", "q2")
    old = make_chunks(evalset, "old-1", "old-2", text=False)
    text = "Refunds are paid within 14 days. Vouchers never expire. Our shops open at nine."
    add_revision(old[0], text[:56], number=1, doc_id="d", start=0, end=56)
    add_revision(old[1], text[56:], number=1, doc_id="d", start=56, end=len(text))
    judge(question, old[0], 3, by=alice, spans=[span("within 14 days", text)])
    judge(question, old[1], 0, by=alice)
    new = make_chunks(evalset, "new-1", "new-2", "new-3", text=False)
    add_revision(new[0], text[:33], number=1, doc_id="d", start=0, end=33)
    add_revision(new[1], text[33:], number=1, doc_id="d", start=33, end=len(text))
    add_revision(new[2], "Elsewhere.", number=1, doc_id="e", start=0, end=10)
    type(new[0]).objects.filter(pk__in=[chunk.pk for chunk in new]).update(created_at="2030-01-01T00:00Z")
    return evalset


def test_chunks_cut_anew_are_found_by_their_place(rechunked, carol):
    assert find_mappings(evalset=rechunked, by=carol) == (0, 3, 0)
    pairs = TextMapping.objects.values_list("old_chunk__external_id", "new_chunk__external_id", "share")
    found = {(old, new): round(share, 2) for old, new, share in pairs}
    assert found == {("old-1", "new-1"): 1.0, ("old-1", "new-2"): 0.5, ("old-2", "new-2"): 1.0}

    assert carry_by_rule(evalset=rechunked, by=carol) == (1, 2)
    assert labels(rechunked)["q1"] == [("new-1", 3), ("old-1", 3), ("old-2", 0)]


def test_where_two_old_texts_come_together_the_higher_label_stands(rechunked, carol):
    find_mappings(evalset=rechunked, by=carol)
    for mapping in TextMapping.objects.filter(new_chunk__external_id="new-2").order_by(
        "-old_chunk__external_id"
    ):
        decide_mapping(mapping=mapping, by=carol, carry=True)
    assert ("new-2", 3) in labels(rechunked)["q1"]
    assert Judgment.objects.filter(source="carried", chunk__external_id="new-2").count() == 2


def test_chunks_without_a_place_are_found_by_their_likeness(evalset, alice, carol):
    [question] = make_questions(evalset, "q1")
    [old] = make_chunks(evalset, "old", text=False)
    add_revision(old, OLD, number=1)
    judge(question, old, 2, by=alice)
    like, other, unreturned = make_chunks(evalset, "like", "other", "unreturned", text=False)
    for chunk, text in (
        (like, "Note: " + OLD),
        (other, "Our shops open at nine on every day."),
        (unreturned, OLD + "!"),
    ):
        add_revision(chunk, text, number=1)
    type(old).objects.exclude(pk=old.pk).update(created_at="2030-01-01T00:00Z")
    make_run(evalset, "new", {"q1": ["like", "other"]})

    assert find_mappings(evalset=evalset, by=carol) == (0, 0, 1)
    assert TextMapping.objects.get().new_chunk == like


BROKEN = {
    "mapping_twice": {},
    "mapping_share_outside_0_1": {"share": 1.5, "new_revision": 3},
    "mapping_of_a_text_to_itself": {"new_revision": 1},
    "mapping_decided_by_nobody": {"decided_at": "2026-01-01T00:00Z", "new_revision": 3},
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_constraint_of_a_mapping(revised, name):
    chunk = revised.chunks.get()
    values = {"old_revision": 1, "new_revision": 2, "method": "revision", "share": 1.0, **BROKEN[name]}
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        TextMapping.objects.create(evalset=revised, old_chunk=chunk, new_chunk=chunk, **values)


REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "policy-versions"


@pytest.mark.skipif(
    not REAL.exists(), reason="the collection lies beside the checkout only where it was put there"
)
def test_changed_policies_are_rarely_carried_without_evidence():
    pairs = [json.loads(line) for line in (REAL / "pairs_2019_2021.jsonl").read_bytes().splitlines()]
    changed = [pair for pair in pairs if pair["kind"] == "changed"]
    assert len(changed) > 50
    carried = [pair for pair in changed if survival(pair["old_text"], pair["new_text"], []).rule]
    assert len(carried) / len(changed) < 0.1


# The pages.


def text(response) -> str:
    assert response.status_code == 200
    return response.content.decode()


def test_the_list_says_what_a_rule_would_carry(revised, carol, client_for):
    page = text(client_for(carol).get("/e/handbook/mappings/"))
    assert "Carry 1 label by rule" in page
    assert "Go through them" in page


def test_deciding_page_by_page(revised, carol, client_for):
    client = client_for(carol)
    address = TextMapping.objects.get().get_absolute_url()
    page = text(client.get(address))
    assert "1 of 1 marked piece whole" in page
    assert "comes along by rule: the marked evidence is there whole" in page
    assert "comes along if you say so" in page
    assert "<del>14</del>" in page
    assert "<ins>30</ins>" in page

    assert "Choose one of the buttons" in text(client.post(f"{address}decide/", follow=True))
    page = text(client.post(f"{address}decide/", {"act": "carry"}, follow=True))
    assert "Carried 3 labels." in page
    assert "This was decided already." in text(
        client.post(f"{address}decide/", {"act": "leave"}, follow=True)
    )
    assert "by Carol" in text(client.get("/e/handbook/mappings/?show=decided"))


@pytest.mark.django_db(transaction=True)
def test_looking_and_carrying_are_jobs(revised, carol, client_for):
    client = client_for(carol)
    for address, job in (("find/", find_mappings_job), ("carry/", carry_by_rule_job)):
        client.post(f"/e/handbook/mappings/{address}")
        row = Job.objects.order_by("-pk").first()
        job(row.pk)
        row.refresh_from_db()
        assert row.state == Job.State.DONE
    assert labels(revised)["q1"] == [("refund#1", 2)]


@pytest.mark.parametrize("who", ["alice", "victor"])
def test_only_a_lead_carries(revised, who, request, client_for):
    client = client_for(request.getfixturevalue(who))
    address = TextMapping.objects.get().get_absolute_url()
    for get in ("/e/handbook/mappings/", address):
        assert client.get(get).status_code == 403
    for post in ("/e/handbook/mappings/find/", "/e/handbook/mappings/carry/", f"{address}decide/"):
        assert client.post(post).status_code == 403


def test_another_eval_sets_mapping_is_not_found(revised, mallory, client_for):
    key = TextMapping.objects.get().pk
    assert client_for(mallory).get(f"/e/elsewhere/mappings/{key}/").status_code == 404


def test_mappings_are_searched_filtered_and_sorted(evalset, carol, client_for):
    client, chunks = client_for(carol), make_chunks(evalset, "a", "b", "c")
    for old, method, share in ((chunks[0], "text", 0.5), (chunks[1], "span", 0.9)):
        evalset.text_mappings.create(
            old_chunk=old, old_revision=1, new_chunk=chunks[2], new_revision=1, method=method, share=share
        )

    def listed(**address) -> list[str]:
        page = client.get("/e/handbook/mappings/", address).context["page"]
        return [mapping.old_chunk.external_id for mapping in page]

    assert listed() == listed(q="C") == ["b", "a"]
    assert listed(sort="common") == listed(sort="old") == ["a", "b"]
    assert listed(q="a") == listed(method="text") == ["a"]
    evalset.text_mappings.filter(method="text").update(decided_at=timezone.now(), decided_by=carol)
    assert listed(show="decided", sort="-decided") == ["a"]
    page = text(client.get("/e/handbook/mappings/", {"show": "decided", "q": "b"}))
    assert 'Nothing here is like that. <a href="?show=decided">Show all</a>' in page
    assert 'href="?q=b">To decide</a>' in page

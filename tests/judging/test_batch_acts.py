"""What a lead does with a batch at work: hand over, extend, take somebody out; with the numbers shown before."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from judging import batch_room
from judging.models import Batch, Task
from judging.services.batches import cancel_batch, extend_batch, make_batch, remove_assessor
from judging.services.claims import claim_next
from judging.services.judgments import Judgment
from pooling.models import Pool
from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import batch_of, grade, make_pool, pair_of, skip

FOUR = {"q1": ["c1", "c2"], "q2": ["c3", "c4"]}


def address(batch: Batch, name: str, *more: int) -> str:
    return reverse(f"judging:{name}", args=[batch.evalset.slug, batch.pk, *more])


def seat(batch: Batch, user):
    return batch.assessors.get(user=user)


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    """q1 with c1, c2 and q2 with c3, c4. Alice graded q1/c1 and holds q1/c2; Bob holds q2."""
    batch = batch_of(evalset, FOUR, by=carol, assessors=[alice, bob])
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "c1"), alice, 2)
    claim_next(batch=batch, by=bob)
    return batch


def test_taking_somebody_out_gives_back_at_once_and_keeps_their_judgments(batch, carol, alice, bob):
    assert remove_assessor(batch=batch, by=carol, assessor=seat(batch, alice)) == 1
    assert Judgment.objects.filter(pair__batch=batch, assessor__user=alice).count() == 1
    with pytest.raises(Refused, match="not an assessor"):
        claim_next(batch=batch, by=alice)
    for pair in (("q2", "c3"), ("q2", "c4")):
        grade(pair_of(batch, *pair), bob)
    assert [task.pair.chunk.external_id for task in claim_next(batch=batch, by=bob)] == ["c2"]


def test_who_was_taken_out_can_be_added_again(batch, carol, alice):
    remove_assessor(batch=batch, by=carol, assessor=seat(batch, alice))
    extend_batch(batch=batch, by=carol, assessors=[alice])
    assert [task.pair.chunk.external_id for task in claim_next(batch=batch, by=alice)] == ["c2"]


def test_the_last_assessor_stays(batch, carol, alice, bob):
    remove_assessor(batch=batch, by=carol, assessor=seat(batch, alice))
    with pytest.raises(Refused, match="only assessor"):
        remove_assessor(batch=batch, by=carol, assessor=seat(batch, bob))


def test_assigned_questions_of_who_goes_are_dealt_to_the_others(evalset, carol, alice, bob, victor):
    evalset.members.filter(user=victor).update(role="assessor")
    pairs = {f"q{n}": ["c1"] for n in range(6)}
    batch = batch_of(evalset, pairs, by=carol, assessors=[alice, bob, victor], sharing=Batch.Sharing.ASSIGNED)
    remove_assessor(batch=batch, by=carol, assessor=seat(batch, alice))
    owners = Counter(
        row.assigned_to.user for row in batch.batch_questions.select_related("assigned_to__user")
    )
    assert owners == {bob: 3, victor: 3}


@pytest.fixture
def pool(evalset, carol) -> Pool:
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1", "c2", "c3")
    make_chunks(evalset, "late", text=False)
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2", "late"], "q2": ["c3"]})
    return build_pool(evalset=evalset, name="first", runs=[RunToDepth(run, 10)], by=carol, seed=5)[0]


def test_a_batch_takes_in_what_is_new_in_the_remainder(pool, evalset, carol, alice):
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice])
    assert batch.pairs.count() == 3
    with pytest.raises(BadInput, match="Nothing is left in the pool"):
        extend_batch(batch=batch, by=carol, more_pairs=True)
    late = evalset.chunks.get(external_id="late")
    late.revisions.create(number=1, text="it came", text_hash="x")
    evalset.chunks.filter(pk=late.pk).update(has_text=True, revision=1)

    assert extend_batch(batch=batch, by=carol, more_pairs=True) == 1
    question = batch.batch_questions.get(question__external_id="q1")
    order = [pair.chunk.external_id for pair in question.pairs.order_by("position")]
    assert order[-1] == "late", "what comes later is read later"
    assert batch.batch_questions.count() == 2


def test_second_judgments_of_pairs_that_have_one(pool, evalset, carol, alice, bob):
    first = make_batch(pool=pool, name="Once", by=carol, assessors=[alice])
    while tasks := claim_next(batch=first, by=alice):
        grade(tasks[0].pair, alice, 1)
    with pytest.raises(BadInput, match="Nothing is left"):
        make_batch(pool=pool, name="Twice", by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)
    with pytest.raises(BadInput, match="without overlap"):
        make_batch(pool=pool, name="Twice", by=carol, assessors=[alice, bob], again=True)
    settings = {"overlap": 2, "overlap_share": 1.0, "again": True}

    second = make_batch(pool=pool, name="Twice", by=carol, assessors=[alice, bob], **settings)
    assert [pair.wanted for pair in second.pairs.all()] == [1, 1, 1]
    assert claim_next(batch=second, by=alice) == [], "nobody judges a pair twice"
    while tasks := claim_next(batch=second, by=bob):
        grade(tasks[0].pair, bob, 1)
    assert Batch.objects.in_state("done").count() == 2
    with pytest.raises(BadInput, match="Nothing is left"):
        make_batch(pool=pool, name="Thrice", by=carol, assessors=[alice, bob], **settings)


def test_second_judgments_are_a_drawn_share_and_as_many_as_people_can_give(
    evalset, carol, alice, bob, victor
):
    evalset.members.filter(user=victor).update(role="assessor")
    make_questions(evalset, "q1")
    names = [f"c{n}" for n in range(20)]
    make_chunks(evalset, *names)
    run = make_run(evalset, "bm25", {"q1": names})
    pool = build_pool(evalset=evalset, name="p", runs=[RunToDepth(run, 20)], by=carol, seed=5)[0]
    once = make_batch(pool=pool, name="Once", by=carol, assessors=[alice])
    while tasks := claim_next(batch=once, by=alice):
        grade(tasks[0].pair, alice, 1)

    def drawn(name: str, people) -> Batch:
        settings = {"overlap": 3, "overlap_share": 0.25, "again": True, "seed": 4}
        return make_batch(pool=pool, name=name, by=carol, assessors=people, **settings)

    batch = drawn("Thrice", [alice, bob, victor])
    assert [pair.wanted for pair in batch.pairs.all()] == [2] * 5
    first = set(batch.pairs.values_list("chunk", flat=True))
    cancel_batch(batch=batch, by=carol)
    assert set(drawn("Again", [alice, bob, victor]).pairs.values_list("chunk", flat=True)) == first


def test_what_waits_for_whom(batch, evalset, carol, alice, bob):
    batch.batch_questions.filter(question__external_id="q1").update(assigned_to=seat(batch, alice))
    assert batch_room.waiting(batch) == []
    Task.objects.filter(assessor__user=alice).update(leased_until="2020-01-01T00:00Z")
    [row] = batch_room.waiting(batch)
    assert (row.assessor.user, row.questions, row.pairs) == (alice, 1, 1)


def test_stuck_is_what_nobody_is_offered_any_more(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "c1"), alice, 1)
    assert batch_room.stuck_pairs(batch) == 0
    remove_assessor(batch=batch, by=carol, assessor=seat(batch, bob))
    assert batch_room.stuck_pairs(batch) == 1
    extend_batch(batch=batch, by=carol, assessors=[bob])
    claim_next(batch=batch, by=bob)
    skip(pair_of(batch, "q1", "c1"), bob)
    assert batch_room.stuck_pairs(batch) == 1


# Pages.


def test_a_reassignment_says_first_what_it_moves(batch, carol, alice, client_for):
    client = client_for(carol)
    question = batch.batch_questions.get(question__external_id="q2")
    fields = {"questions": [question.pk], "to": seat(batch, alice).pk}
    html = client.get(address(batch, "batch-reassign"), fields).content.decode()
    assert "Give 1 question to Alice?" in html
    assert "2 pairs of it are open" in html
    assert "Bob holds 2" in html
    question.refresh_from_db()
    assert question.assigned_to is None, "GET changes nothing"
    assert client.post(address(batch, "batch-reassign"), fields).status_code == 302
    question.refresh_from_db()
    assert question.assigned_to.user == alice
    response = client.get(address(batch, "batch-reassign"), follow=True)
    assert "Tick the questions" in response.content.decode()


def test_taking_out_says_first_what_it_moves(batch, carol, alice, client_for):
    client = client_for(carol)
    url = address(batch, "batch-remove", seat(batch, alice).pk)
    html = client.get(url).content.decode()
    assert "1 pair that Alice holds now goes back at once" in html
    assert "The 1 judgment they made stays and counts" in html
    assert batch.assessors.count() == 2
    html = client.post(url, follow=True).content.decode()
    assert "Alice is out of Week 1; 1 pairs went back" in html
    assert "taken out" in html
    assert client.post(url).status_code == 404


@pytest.mark.parametrize("name", ["batch-reassign", "batch-remove"])
def test_handing_over_is_for_leads(batch, alice, victor, mallory, client_for, name):
    more = [seat(batch, alice).pk] if name == "batch-remove" else []
    url = address(batch, name, *more)
    for method in ("get", "post"):
        codes = [getattr(client_for(user), method)(url).status_code for user in (alice, victor, mallory)]
        assert codes == [403, 403, 404]


def test_extending_from_the_page(pool, evalset, carol, alice, bob, client_for):
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice])
    fields = {"assessors": [bob.pk], "due_on": "2127-01-31"}
    html = client_for(carol).post(address(batch, "batch-extend"), fields, follow=True).content.decode()
    assert "is extended" in html
    batch.refresh_from_db()
    assert (batch.due_on, batch.assessors.count()) == (datetime.date(2127, 1, 31), 2)
    html = client_for(carol).post(address(batch, "batch-extend"), {"more_pairs": "on"}, follow=True)
    assert "Nothing is left in the pool" in html.content.decode()


def test_a_due_date_that_is_over_is_refused_and_one_that_stays_is_not(batch, carol, bob, client_for):
    yesterday = timezone.localdate() - datetime.timedelta(days=1)
    lead, extend = client_for(carol), address(batch, "batch-extend")
    html = lead.post(extend, {"due_on": yesterday}, follow=True).content.decode()
    assert f"The due date {yesterday} is over." in html
    Batch.objects.update(due_on=yesterday)
    lead.post(extend, {"assessors": [bob.pk], "due_on": yesterday})
    assert batch.assessors.filter(user=bob).exists()
    lead.post(extend, {"due_on": timezone.localdate()})
    batch.refresh_from_db()
    assert batch.due_on == timezone.localdate()


def test_overdue_is_said(batch, carol, alice, client_for):
    Batch.objects.update(due_on=datetime.date(2020, 1, 1))
    batch_list = reverse("judging:batch-list", args=[batch.evalset.slug])
    assert "Overdue since 1 Jan 2020: 3 judgments are missing" in (
        client_for(carol).get(address(batch, "batch")).content.decode()
    )
    assert "overdue" in client_for(carol).get(batch_list).content.decode()
    assert "<strong>Overdue</strong>" in client_for(alice).get(batch_list).content.decode()


def test_a_pool_without_runs_or_with_nothing_left_is_no_fault_of_ours(evalset, carol, alice, client_for):
    client, url = client_for(carol), reverse("judging:batch-new", args=[evalset.slug])
    pool = make_pool(evalset)
    assert "Nothing is left to hand out" in client.get(url, {"pool": pool.pk}).content.decode()
    fields = {
        "pool": pool.pk,
        "name": "None",
        "assessors": [alice.pk],
        "sharing": "shared",
        "overlap": 2,
        "overlap_percent": 50,
        "again": "on",
        "lease_minutes": 20,
    }
    for more in ({}, {"gold": "decided", "gold_percent": 5}):
        assert client.get(url, fields | more, headers={"HX-Request": "true"}).status_code == 200
        response = client.post(url, fields | more)
        assert response.status_code == 422
    assert not Batch.objects.exists()


# The command.


def command(batch: Batch, *arguments: str) -> dict:
    out = StringIO()
    call_command("batch", batch.evalset.slug, batch.name, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_the_command_says_how_far_a_batch_is_and_acts_on_it(batch, carol, alice, bob):
    said = command(batch)
    assert (said["state"], said["pairs"], said["filled"], said["done"], said["wanted"]) == (
        "open",
        4,
        1,
        1,
        4,
    )
    assert [(row["name"], row["judged"], row["held"]) for row in said["assessors"]] == [
        ("alice", 1, 1),
        ("bob", 0, 2),
    ]
    assert command(batch, "--pause")["state"] == "paused"
    assert command(batch, "--resume", "--due", "2127-01-31")["due_on"] == "2127-01-31"
    command(batch, "--give", "alice", "q2")
    assert batch.batch_questions.get(question__external_id="q2").assigned_to.user == alice
    command(batch, "--free", "q2", "--by", "carol")
    assert batch.batch_questions.get(question__external_id="q2").assigned_to is None
    assert batch.evalset.events.filter(verb="batch-reassigned").values_list("by", flat=True)[0] == carol.pk
    said = command(batch, "--take-out", "bob", "--add", "carol")
    assert [row["name"] for row in said["assessors"]] == ["alice", "carol"]
    assert command(batch, "--cancel")["state"] == "cancelled"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--take-out", "carol"], "not an assessor of batch"),
        (["--give", "alice", "q9"], "does not have: q9"),
        (["--give", "alice"], "none was named"),
        (["--give", "carol", "q1"], "Add them first"),
        (["--free", "q9"], "does not have: q9"),
        (["--pause", "--by", "alice"], "alice does not lead handbook"),
        (["--add", "victor"], "cannot judge in"),
        (["--more-pairs"], "Nothing is left"),
    ],
)
def test_the_command_says_what_is_wrong(batch, victor, arguments, reason):
    with pytest.raises(CommandError, match=reason) as error:
        command(batch, *arguments)
    assert error.value.returncode == 3


def test_the_command_names_the_batches_there_are(batch):
    with pytest.raises(CommandError, match="Known: Week 1"):
        call_command("batch", batch.evalset.slug, "Week 9")

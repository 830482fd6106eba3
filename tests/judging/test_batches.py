"""Making, pausing, reassigning, extending and cancelling batches; their pages and the command."""

from __future__ import annotations

import datetime
import json
import re
import statistics
from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, IntegrityError, transaction
from django.urls import reverse

from evalsets.errors import BadInput, Refused
from evalsets.models import Event, Member
from judging import batch_counts, batch_reads, batch_room
from judging.desk import my_open_batches
from judging.models import Batch, BatchPair, Judgment, Rubric
from judging.services.assessors import assessor_for
from judging.services.batches import (
    cancel_batch,
    extend_batch,
    make_batch,
    pause_batch,
    reassign_questions,
    resume_batch,
)
from judging.services.claims import claim_next
from pooling.models import Pool
from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import (
    batch_of,
    cannot_judge,
    current_judgments,
    grade,
    let_leases_end,
    make_pool,
    pair_of,
    places_by_pair,
    skip,
)


@pytest.fixture
def real_pool(evalset, carol) -> Pool:
    """Two runs over two questions: q1 has c1, c2, c3 and q2 has c4 and c5, whose text is not there."""
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1", "c2", "c3", "c4")
    make_chunks(evalset, "c5", text=False)
    runs = [
        make_run(evalset, "bm25", {"q1": ["c1", "c2"], "q2": ["c4"]}),
        make_run(evalset, "dense", {"q1": ["c3", "c1"], "q2": ["c5"]}),
    ]
    to_depth = [RunToDepth(run, 10) for run in runs]
    return build_pool(evalset=evalset, name="first", runs=to_depth, by=carol, seed=5)[0]


def address(batch: Batch, name: str = "batch") -> str:
    return reverse(f"judging:{name}", args=[batch.evalset.slug, batch.pk])


# Making.


def test_a_batch_of_a_pool_takes_its_remainder_without_pairs_that_wait_for_text(real_pool, carol, alice):
    batch = make_batch(pool=real_pool, name="Week 1", by=carol, assessors=[alice])

    pairs = {(p.question.external_id, p.chunk.external_id) for p in batch.pairs.all()}
    assert pairs == {("q1", "c1"), ("q1", "c2"), ("q1", "c3"), ("q2", "c4")}
    assert [q.question.external_id for q in batch.batch_questions.all()] == ["q1", "q2"]


def test_the_order_of_a_question_is_the_pools(real_pool, carol, alice):
    batch = make_batch(pool=real_pool, name="Week 1", by=carol, assessors=[alice])
    question = batch.batch_questions.first()

    order = list(question.pairs.order_by("position").values_list("chunk", flat=True))
    assert order == real_pool.pool_questions.get(question=question.question).chunk_ids


def test_pairs_in_an_open_batch_are_not_handed_out_twice(real_pool, carol, alice, bob):
    first = make_batch(pool=real_pool, name="Week 1", by=carol, assessors=[alice])
    with pytest.raises(BadInput, match="Nothing is left to judge"):
        make_batch(pool=real_pool, name="Week 2", by=carol, assessors=[bob])

    cancel_batch(batch=first, by=carol)
    assert make_batch(pool=real_pool, name="Week 2", by=carol, assessors=[bob]).pairs.count() == 4


def test_judged_pairs_are_not_handed_out_again(real_pool, carol, alice):
    first = make_batch(pool=real_pool, name="Week 1", by=carol, assessors=[alice])
    claim_next(batch=first, by=alice)
    grade(pair_of(first, "q1", "c1"), alice, 0)
    cancel_batch(batch=first, by=carol)

    second = make_batch(pool=real_pool, name="Week 2", by=carol, assessors=[alice])
    assert second.pairs.count() == 3


def test_overlap_is_drawn_by_the_stored_seed(evalset, carol, alice, bob):
    def drawn(name: str, seed: int) -> list[int]:
        chunks = {"q1": [f"c{n}" for n in range(40)]}
        settings = {"overlap": 2, "overlap_share": 0.25, "seed": seed, "name": name}
        batch = batch_of(evalset, chunks, by=carol, assessors=[alice, bob], **settings)
        assert batch.seed == seed
        return list(batch.pairs.order_by("position").values_list("wanted", flat=True))

    first = drawn("A", 1)
    assert Counter(first) == {1: 30, 2: 10}
    assert drawn("B", 1) == first
    assert drawn("C", 2) != first


def test_assigned_questions_are_dealt_in_turn(evalset, carol, alice, bob):
    pairs = {f"q{n}": ["c1"] for n in range(5)}
    batch = batch_of(evalset, pairs, by=carol, assessors=[alice, bob], sharing=Batch.Sharing.ASSIGNED)

    owners = [q.assigned_to.user.username for q in batch.batch_questions.order_by("position")]
    assert owners == ["alice", "bob", "alice", "bob", "alice"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": " "}, "no name"),
        ({"assessors": []}, "Nobody is named"),
        ({"overlap": 3, "overlap_share": 1}, "Nobody judges a pair twice"),
        ({"overlap": 0}, "at most"),
        ({"overlap": 2, "overlap_share": 1.5}, "from 0 to 1"),
        ({"lease_minutes": 0}, "at least one"),
    ],
)
def test_what_cannot_be_met_is_bad_input(evalset, carol, alice, bob, change, reason):
    with pytest.raises(BadInput, match=reason):
        batch_of(evalset, {"q1": ["c1"]}, by=carol, **{"assessors": [alice, bob], **change})
    assert not Batch.objects.exists()


def test_a_name_that_tells_of_a_system_is_refused(real_pool, carol, alice):
    with pytest.raises(BadInput, match="tells them of 'bm25'"):
        make_batch(pool=real_pool, name="BM25 week", by=carol, assessors=[alice])


def test_a_name_twice_is_refused(evalset, carol, alice):
    batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    with pytest.raises(BadInput, match="already"):
        batch_of(evalset, {"q1": ["c2"]}, by=carol, assessors=[alice], pool=make_pool(evalset, "other"))


@pytest.mark.parametrize("who", ["victor", "mallory"])
def test_only_members_who_may_judge_are_named(evalset, carol, who, request):
    with pytest.raises(BadInput, match=f"{who} cannot judge"):
        batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[request.getfixturevalue(who)])


def test_the_rubric_is_versioned(evalset, carol, alice):
    def rubric(name: str, instructions: str) -> int:
        batch = batch_of(
            evalset, {f"q {name}": ["c1"]}, by=carol, assessors=[alice], name=name, instructions=instructions
        )
        return batch.rubric.version

    assert [rubric("A", "x"), rubric("B", "x"), rubric("C", "y"), rubric("D", "y")] == [1, 1, 2, 2]
    evalset.scale = [*evalset.scale, {"grade": 4, "name": "Perfect", "definition": "All of it."}]
    evalset.save()
    assert rubric("E", "y") == 3


def test_making_is_told(evalset, carol, alice):
    batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    event = Event.objects.get(verb="batch-made")
    assert (event.by, event.evalset, event.details["pairs"]) == (carol, evalset, 1)


# Acts.


def test_each_act_is_told_once(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    pause_batch(batch=batch, by=carol)
    pause_batch(batch=batch, by=carol)
    resume_batch(batch=batch, by=carol)
    extend_batch(batch=batch, by=carol, assessors=[bob], due_on=datetime.date(2126, 12, 1))
    cancel_batch(batch=batch, by=carol)

    verbs = list(Event.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["batch-made", "batch-paused", "batch-resumed", "batch-extended", "batch-cancelled"]
    batch.refresh_from_db()
    assert batch.due_on == datetime.date(2126, 12, 1)
    assert {a.user for a in batch.assessors.all()} == {alice, bob}


def test_nothing_can_be_done_with_a_cancelled_batch(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    cancel_batch(batch=batch, by=carol)
    for act in (pause_batch, resume_batch, cancel_batch, extend_batch):
        with pytest.raises(Refused, match="was cancelled"):
            act(batch=batch, by=carol)


def test_reassigning_to_a_stranger_of_the_batch_is_refused(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    with pytest.raises(Refused, match="not an assessor"):
        reassign_questions(
            batch=batch,
            by=carol,
            to=assessor_for(evalset=evalset, user=bob),
            questions=list(batch.batch_questions.all()),
        )


def test_an_assigned_question_always_has_somebody(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice], sharing=Batch.Sharing.ASSIGNED)
    with pytest.raises(Refused, match="Name one"):
        reassign_questions(batch=batch, by=carol, to=None, questions=list(batch.batch_questions.all()))


# What the database itself refuses.


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"name": ""}, "batch_without_name"),
        ({"overlap": 0}, "batch_overlap_below_one"),
        ({"overlap_share": 1.5}, "batch_overlap_share_outside_0_1"),
    ],
)
def test_the_database_refuses_bad_batches(evalset, carol, alice, change, constraint):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Batch.objects.filter(pk=batch.pk).update(**change)


def test_the_database_refuses_two_batches_of_one_name(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    batch.pk = None
    with pytest.raises(IntegrityError, match="batch_name_twice_in_evalset"), transaction.atomic():
        batch.save(force_insert=True)


def test_the_database_refuses_a_question_or_a_pair_twice_in_a_batch(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    question, pair = batch.batch_questions.get(), batch.pairs.get()
    for row, constraint in ((question, "batch_question_twice"), (pair, "batch_pair_twice")):
        row.pk = None
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            row.save(force_insert=True)
    with pytest.raises(IntegrityError, match="batch_pair_wanted_below_one"), transaction.atomic():
        BatchPair.objects.update(wanted=0)


def test_the_database_keeps_rubrics_as_they_were(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Rubric.objects.filter(pk=batch.rubric_id).update(instructions="other")
    copy = Rubric(evalset=evalset, version=batch.rubric.version, scale=[])
    with pytest.raises(IntegrityError, match="rubric_version_twice"), transaction.atomic():
        copy.save()


# What the pages read, against slow twins.


@pytest.fixture
def busy_batch(evalset, carol, alice, bob) -> Batch:
    batch = batch_of(
        evalset,
        {"q1": ["c1", "c2", "c3"], "q2": ["c1", "c4"]},
        by=carol,
        assessors=[alice, bob],
        overlap=2,
        overlap_share=0.4,
        seed=3,
    )
    claim_next(batch=batch, by=alice, count=3)
    grade(pair_of(batch, "q1", "c1"), alice, 0, seconds=4)
    grade(pair_of(batch, "q1", "c1"), alice, 2, seconds=9)
    skip(pair_of(batch, "q1", "c2"), alice)
    cannot_judge(pair_of(batch, "q1", "c3"), alice)
    claim_next(batch=batch, by=bob, count=10)
    grade(pair_of(batch, "q2", "c1"), bob, 3, seconds=20)
    return batch


def test_figures_agree_with_a_slow_count(busy_batch):
    figures = batch_reads.batch_figures(busy_batch)
    places = places_by_pair(busy_batch)
    pairs = list(busy_batch.pairs.all())
    seconds = [j.seconds for j in current_judgments(busy_batch) if j.seconds is not None]

    assert figures.pairs == 5
    assert figures.wanted == sum(pair.wanted for pair in pairs) == 7
    assert figures.done == sum(places.values()) == 3
    assert figures.filled == sum(places[pair.pk] >= pair.wanted for pair in pairs)
    assert figures.skipped == 1
    assert figures.cannot_judge == 1
    assert figures.judged_lately == 3
    assert figures.work_left == 4 * 25
    totals = batch_counts.batch_totals(busy_batch)
    assert totals.extra == 0
    assert totals.median_seconds == statistics.median(seconds) == 14.5


def test_rows_of_assessors_agree_with_a_slow_count(busy_batch, alice, bob):
    counts = batch_counts.assessor_counts(busy_batch)
    lately = batch_reads.said_lately(busy_batch.evalset_id, [busy_batch])
    rows = {row.assessor.user: row for row in batch_reads.assessor_rows(busy_batch, lately, counts)}
    said = current_judgments(busy_batch)
    for user in (alice, bob):
        mine = [j for j in said if j.assessor.user == user]
        judged = sum(j.kind != "skip" for j in mine)
        assert rows[user].counts.judged == rows[user].lately.judged == judged
        assert rows[user].counts.skipped == sum(j.kind == "skip" for j in mine)
        assert rows[user].last_at == max(j.judged_at for j in mine)
        assert rows[user].held == sum(
            t.assessor.user == user for p in busy_batch.pairs.all() for t in p.tasks.all()
        )
    assert rows[bob].held > 0


def test_rows_of_questions_agree_with_a_slow_count(busy_batch):
    for row in batch_reads.question_rows(busy_batch):
        pairs = list(row.pairs.all())
        assert row.pair_count == len(pairs)
        assert row.filled_count == sum(pair.filled_at is not None for pair in pairs)
        assert (row.held_count or 0) == sum(pair.tasks.count() for pair in pairs)


def test_grades_are_counted_with_their_zeros(busy_batch):
    assert [(row.grade, row.count) for row in batch_counts.grade_counts(busy_batch)] == [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 1),
    ]


def test_a_pair_that_everybody_skipped_is_told(busy_batch, alice, bob):
    assert batch_room.stuck_pairs(busy_batch) == 0
    skip(pair_of(busy_batch, "q1", "c2"), bob)
    assert batch_room.stuck_pairs(busy_batch) == 1


def test_list_counts_do_not_multiply(busy_batch):
    batch = Batch.objects.with_progress().get(pk=busy_batch.pk)
    assert (batch.question_count, batch.pair_count, batch.wanted_count) == (2, 5, 7)
    assert batch.filled_count == batch.pairs.filter(filled_at__isnull=False).count()


def test_my_open_batches_say_what_waits(evalset, carol, alice, bob, mallory):
    later = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], name="Later")
    soon = batch_of(
        evalset,
        {"q2": ["c1", "c2"]},
        by=carol,
        assessors=[alice],
        name="Soon",
        due_on=datetime.date(2126, 12, 1),
    )
    claim_next(batch=soon, by=alice)
    claim_next(batch=later, by=bob)

    work = my_open_batches(alice)
    assert [(item.batch.name, item.held, item.waits_for_me, item.open_pairs) for item in work] == [
        ("Soon", 2, True, 2),
        ("Later", 0, False, 1),
    ]
    assert my_open_batches(mallory) == []
    for pair in soon.pairs.all():
        grade(pair, alice)
    assert [item.batch.name for item in my_open_batches(alice)] == ["Later"]
    Member.objects.filter(user=alice).delete()
    assert my_open_batches(alice) == []


# Pages.


def test_the_list_is_found_by_name_and_state(busy_batch, carol, client_for):
    client = client_for(carol)
    url = reverse("judging:batch-list", args=[busy_batch.evalset.slug])
    assert "Week 1" in client.get(url).content.decode()
    assert "Week 1" in client.get(url, {"state": "open", "q": "week"}).content.decode()
    assert "Week 1" not in client.get(url, {"state": "cancelled"}).content.decode()


def test_an_assessor_sees_their_own_batches_and_no_pools(busy_batch, alice, client_for):
    html = (
        client_for(alice).get(reverse("judging:batch-list", args=[busy_batch.evalset.slug])).content.decode()
    )
    assert "Week 1" in html
    assert not re.search(r"\bpools?\b", html.lower())


def test_a_new_batch_from_the_page(real_pool, evalset, carol, alice, bob, client_for):
    client = client_for(carol)
    url = reverse("judging:batch-new", args=[evalset.slug])
    html = client.get(url, {"pool": real_pool.pk}).content.decode()
    assert "1 pair of this pool waits for text" in html
    fields = {
        "pool": real_pool.pk,
        "name": "Week 1",
        "assessors": [alice.pk, bob.pk],
        "sharing": "by-question",
        "overlap": 2,
        "overlap_percent": 50,
        "lease_minutes": 20,
        "due_on": "2126-12-24",
        "instructions": "Read **all** of it.",
    }
    cost = client.get(url, fields, headers={"HX-Request": "true"}).content.decode()
    assert cost.strip().startswith('<div id="cost"')
    assert ">6<small>with overlap" in cost

    response = client.post(url, fields)
    batch = Batch.objects.get()
    assert response["Location"] == batch.get_absolute_url()
    assert (batch.overlap, batch.overlap_share, batch.lease_minutes) == (2, 0.5, 20)
    assert batch.rubric.instructions == "Read **all** of it."
    assert Counter(batch.pairs.values_list("wanted", flat=True)) == {1: 2, 2: 2}


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (
            {"overlap_percent": "200"},
            "Share of pairs that overlap, in per cent: Ensure this value is less than",
        ),
        ({"overlap_percent": "50", "overlap": "5"}, "ask for at most 2, or name more assessors"),
        ({"overlap": "0"}, "Independent judgments of an overlapping pair: Ensure this value is greater than"),
        ({"gold": "decided", "gold_percent": "80"}, "Say a share above 0 and at most 50 per cent"),
    ],
)
def test_the_cost_of_wrong_numbers_is_what_is_wrong(
    real_pool, evalset, carol, alice, bob, client_for, numbers, said
):
    url = reverse("judging:batch-new", args=[evalset.slug])
    fields = {"pool": real_pool.pk, "assessors": [alice.pk, bob.pk], **numbers}
    cost = client_for(carol).get(url, fields, headers={"HX-Request": "true"}).content.decode()
    assert said in cost
    assert "with overlap" not in cost


def test_a_new_batch_that_cannot_be_keeps_what_was_typed(real_pool, evalset, carol, alice, client_for):
    fields = {
        "pool": real_pool.pk,
        "name": "dense",
        "assessors": [alice.pk],
        "sharing": "shared",
        "overlap": 2,
        "overlap_percent": 0,
        "lease_minutes": 20,
        "instructions": "Typed with care",
    }
    for wrong, said in (
        ({}, "tells them of"),
        ({"due_on": "2020-01-31"}, "2020-01-31 is over. Choose today"),
    ):
        response = client_for(carol).post(
            reverse("judging:batch-new", args=[evalset.slug]), {**fields, **wrong}
        )
        assert response.status_code == 422
        html = response.content.decode()
        assert said in html
        assert "Typed with care" in html
    assert not Batch.objects.exists()


def test_the_pages_of_a_batch_answer_whole_and_live(busy_batch, carol, victor, client_for):
    for user in (carol, victor):
        html = client_for(user).get(address(busy_batch)).content.decode()
        assert "Assessors" in html
        assert "It needs an expert" in html
        assert ("Cancel the batch" in html) == (user == carol)
    live = client_for(carol).get(address(busy_batch), headers={"HX-Request": "true"}).content.decode()
    assert live.strip().startswith('<div id="live"')
    assert "every 10s" in live


def test_acts_from_the_page(busy_batch, evalset, carol, alice, bob, client_for):
    client = client_for(carol)
    client.post(address(busy_batch, "batch-pause"))
    busy_batch.refresh_from_db()
    assert busy_batch.paused_at
    client.post(address(busy_batch, "batch-resume"))
    question = busy_batch.batch_questions.get(question__external_id="q2")
    to = assessor_for(evalset=evalset, user=alice)
    html = client.post(
        address(busy_batch, "batch-reassign"), {"questions": [question.pk], "to": to.pk}, follow=True
    ).content.decode()
    assert "1 questions went to Alice; 1 pairs that others held went back." in html
    question.refresh_from_db()
    assert question.assigned_to == to
    html = client.post(address(busy_batch, "batch-cancel"), follow=True).content.decode()
    assert "is cancelled" in html
    html = client.post(address(busy_batch, "batch-resume"), follow=True).content.decode()
    assert "was cancelled on" in html


@pytest.mark.parametrize("name", ["batch-pause", "batch-resume", "batch-cancel", "batch-extend"])
def test_acts_are_for_leads_and_posts(busy_batch, carol, alice, victor, mallory, client_for, name):
    url = address(busy_batch, name)
    assert client_for(carol).get(url).status_code == 405
    assert [client_for(user).post(url).status_code for user in (alice, victor, mallory)] == [403, 403, 404]


# The command.


def run(*arguments: str) -> dict:
    out = StringIO()
    call_command("make_batch", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_the_command_makes_a_batch(real_pool, evalset, alice, bob):
    said = run(
        *(evalset.slug, "first", "--name", "Week 1", "--assessor", "alice", "bob"),
        *("--overlap", "2:0.5", "--sharing", "shared", "--seed", "9", "--due", "2126-12-24"),
    )
    batch = Batch.objects.get()
    assert said == {
        "batch": batch.pk,
        "name": "Week 1",
        "questions": 2,
        "pairs": 4,
        "judgments": 6,
        "gold_pairs": 0,
        "assessors": ["alice", "bob"],
        "sharing": "shared",
        "seed": 9,
    }
    assert batch.due_on == datetime.date(2126, 12, 24)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--overlap", "two"], "N:SHARE"),
        (["--due", "tomorrow"], "YYYY-MM-DD"),
        (["--due", "2020-01-31"], "The due date 2020-01-31 is over"),
        (["--instructions", "/nowhere/at-all.md"], "cannot be read"),
        (["--assessor", "nobody"], "nobody"),
    ],
)
def test_the_command_says_what_is_wrong(real_pool, evalset, alice, arguments, reason):
    with pytest.raises(CommandError, match=reason) as error:
        run(evalset.slug, "first", "--name", "Week 1", "--assessor", "alice", *arguments)
    assert error.value.returncode == 3
    assert not Batch.objects.exists()


def test_without_other_instructions_those_of_the_latest_rubric_stay(real_pool, evalset, alice, tmp_path):
    path = tmp_path / "instructions.md"
    path.write_text("Read all.")
    arguments = (evalset.slug, "first", "--assessor", "alice", "--name")
    run(*arguments, "Week 1", "--instructions", str(path))
    cancel_batch(batch=Batch.objects.get(), by=None)
    run(*arguments, "Week 2")
    assert evalset.rubrics.get().instructions == "Read all."


def test_instructions_with_a_nul_are_bad_input(real_pool, evalset, alice, tmp_path):
    path = tmp_path / "instructions.md"
    path.write_text("Read \0 all.")
    with pytest.raises(CommandError, match="NUL"):
        run(evalset.slug, "first", "--name", "Week 1", "--assessor", "alice", "--instructions", str(path))


def test_a_lease_that_ended_shows_as_nothing_held(busy_batch):
    let_leases_end(busy_batch)
    assert batch_reads.batch_figures(busy_batch).held == 0
    assert Judgment.objects.filter(pair__batch=busy_batch).count() == 5

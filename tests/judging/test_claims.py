"""Who gets which pair, alone and in turn. What happens at once is in test_claims_at_once.py."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from evalsets.errors import Refused
from judging.models import Batch, Task
from judging.services.assessors import assessor_for
from judging.services.batches import cancel_batch, pause_batch, reassign_questions, resume_batch
from judging.services.claims import claim_next, give_back, put_off
from tests.conftest import add_revision
from tests.judging.batches import (
    batch_of,
    cannot_judge,
    grade,
    ids,
    let_leases_end,
    pair_of,
    places_by_pair,
    skip,
)

TWO_QUESTIONS = {"q1": ["c1", "c2"], "q2": ["c1", "c3"]}


def claim(batch: Batch, user, count: int = 10) -> list[str]:
    return ids(claim_next(batch=batch, by=user, count=count))


def test_by_question_one_assessor_gets_all_pairs_of_a_question(evalset, carol, alice, bob):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice, bob])

    assert claim(batch, alice, count=1) == ["q1/c1"]
    assert claim(batch, bob, count=1) == ["q2/c1"]
    assert claim(batch, alice) == ["q1/c1", "q1/c2"]
    assert claim(batch, bob) == ["q2/c1", "q2/c3"]


def test_shared_pairs_go_singly_to_whoever_comes(evalset, carol, alice, bob):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice, bob], sharing=Batch.Sharing.SHARED)

    assert claim(batch, alice, count=1) == ["q1/c1"]
    assert claim(batch, bob, count=2) == ["q1/c2", "q2/c1"]
    assert claim(batch, alice, count=5) == ["q1/c1", "q2/c3"]


def test_assigned_questions_go_to_their_assessor_alone(evalset, carol, alice, bob):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice, bob], sharing=Batch.Sharing.ASSIGNED)

    assert claim(batch, bob) == ["q2/c1", "q2/c3"]
    assert claim(batch, alice) == ["q1/c1", "q1/c2"]
    for pair in batch.pairs.filter(question__external_id="q2"):
        grade(pair, bob)
    assert claim(batch, bob) == []


def test_overlap_on_an_assigned_question_keeps_a_place_for_its_owner(evalset, carol, alice, bob):
    batch = batch_of(
        evalset,
        {"q1": ["c1"]},
        by=carol,
        assessors=[alice, bob],
        sharing=Batch.Sharing.ASSIGNED,
        overlap=2,
        overlap_share=1,
    )
    # Dealt to Alice; Bob may give the second judgment, and comes first.
    assert claim(batch, bob) == ["q1/c1"]
    grade(pair_of(batch, "q1", "c1"), bob)
    assert claim(batch, alice) == ["q1/c1"]


def test_the_place_of_an_owner_is_not_given_to_others(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob])
    question = batch.batch_questions.get()
    reassign_questions(
        batch=batch, by=carol, to=assessor_for(evalset=evalset, user=alice), questions=[question]
    )

    assert claim(batch, bob) == []
    assert claim(batch, alice) == ["q1/c1"]


def test_a_pair_that_wants_two_judgments_goes_to_two_assessors(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)

    assert claim(batch, alice) == ["q1/c1"]
    assert claim(batch, bob) == ["q1/c1"]
    pair = pair_of(batch, "q1", "c1")
    grade(pair, alice)
    assert claim(batch, alice) == [], "nobody gets a pair twice"
    grade(pair, bob)
    assert places_by_pair(batch) == {pair.pk: 2}


def test_a_claim_goes_away_after_idle_time_and_another_gets_the_pair(evalset, carol, alice, bob):
    """Case 95: Alice closes the browser; forty minutes later Bob asks for the next pair."""
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob])
    assert claim(batch, alice) == ["q1/c1"]
    assert claim(batch, bob) == []

    let_leases_end(batch, alice)

    assert claim(batch, bob) == ["q1/c1"]
    assert claim(batch, alice) == []


def test_judgments_stay_when_the_rest_of_a_question_goes_back(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice, bob])
    claim(batch, alice)
    grade(pair_of(batch, "q1", "c1"), alice)
    let_leases_end(batch, alice)

    assert claim(batch, bob) == ["q1/c2"]


def test_someone_who_comes_back_goes_on_with_the_question_they_began(evalset, carol, alice):
    batch = batch_of(evalset, {"q0": ["c1"], "q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    assert claim(batch, alice) == ["q0/c1", "q1/c1", "q1/c2"]
    grade(pair_of(batch, "q1", "c1"), alice)
    let_leases_end(batch)

    assert claim(batch, alice, count=1) == ["q1/c2"]


def test_each_act_renews_the_lease(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice], lease_minutes=10)
    claim(batch, alice)
    before = Task.objects.get(pair=pair_of(batch, "q1", "c2"))
    nearly_over = before.leased_until.replace(microsecond=0) - (before.leased_until - before.claimed_at) * 0.9
    Task.objects.update(leased_until=nearly_over)

    grade(pair_of(batch, "q1", "c1"), alice)

    assert Task.objects.get(pk=before.pk).leased_until > nearly_over


def test_giving_back_frees_the_pairs_at_once(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice, bob])
    claim(batch, alice)

    assert give_back(batch=batch, by=alice) == 2
    assert claim(batch, bob) == ["q1/c1", "q1/c2"]


def test_later_comes_again_at_the_end_of_the_question(evalset, carol, alice):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice])
    claim(batch, alice, count=1)

    put_off(batch=batch, pair_id=pair_of(batch, "q1", "c1").pk, by=alice)

    assert claim(batch, alice, count=3) == ["q1/c2", "q1/c1", "q2/c1"]


def test_later_comes_again_after_everything_else_of_a_shared_batch(evalset, carol, alice):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice], sharing=Batch.Sharing.SHARED)
    claim(batch, alice, count=1)

    put_off(batch=batch, pair_id=pair_of(batch, "q1", "c1").pk, by=alice)

    assert claim(batch, alice, count=10) == ["q1/c2", "q2/c1", "q2/c3", "q1/c1"]


def test_later_is_refused_for_a_pair_that_went_back(evalset, carol, alice):
    batch = batch_of(evalset, TWO_QUESTIONS, by=carol, assessors=[alice])
    claim(batch, alice)
    let_leases_end(batch)

    with pytest.raises(Refused, match="went back"):
        put_off(batch=batch, pair_id=pair_of(batch, "q1", "c1").pk, by=alice)


def test_a_skipped_pair_goes_to_the_other_and_does_not_come_back(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice, bob])
    claim(batch, alice)

    skip(pair_of(batch, "q1", "c1"), alice)

    assert claim(batch, alice) == ["q1/c2"]
    assert claim(batch, bob) == ["q1/c1"]
    skip(pair_of(batch, "q1", "c1"), bob)
    assert claim(batch, bob) == [], "no ping-pong"
    assert claim(batch, alice) == ["q1/c2"]
    assert pair_of(batch, "q1", "c1").filled_at is None, "a skip is not a judgment that the pair asked for"


def test_cannot_judge_is_final(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob])
    claim(batch, alice)

    cannot_judge(pair_of(batch, "q1", "c1"), alice)

    assert claim(batch, bob) == []
    assert pair_of(batch, "q1", "c1").filled_at is not None


def test_a_paused_batch_hands_out_nothing_and_goes_on_after(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    claim(batch, alice, count=1)
    pause_batch(batch=batch, by=carol)

    assert claim(batch, alice) == []
    grade(pair_of(batch, "q1", "c1"), alice)  # was on the screen already

    resume_batch(batch=batch, by=carol)
    assert claim(batch, alice) == ["q1/c2"]


def test_a_cancelled_batch_keeps_its_judgments(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    claim(batch, alice)
    grade(pair_of(batch, "q1", "c1"), alice)

    cancel_batch(batch=batch, by=carol)

    assert claim(batch, alice) == []
    grade(pair_of(batch, "q1", "c2"), alice)
    assert sum(places_by_pair(batch).values()) == 2
    with pytest.raises(Refused, match="was cancelled"):
        resume_batch(batch=batch, by=carol)


def test_reassigning_takes_the_question_from_who_holds_it(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice, bob])
    claim(batch, alice)

    went_back = reassign_questions(
        batch=batch,
        by=carol,
        to=assessor_for(evalset=evalset, user=bob),
        questions=list(batch.batch_questions.all()),
    )

    assert went_back == 2
    assert claim(batch, alice) == []
    assert claim(batch, bob) == ["q1/c1", "q1/c2"]


def test_a_pair_judged_in_an_earlier_batch_is_not_given_to_the_same_person_again(evalset, carol, alice, bob):
    first = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob])
    claim(first, alice)
    grade(pair_of(first, "q1", "c1"), alice)
    again = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], name="Again")

    assert claim(again, alice) == []
    assert claim(again, bob) == ["q1/c1"]


def test_a_new_text_of_a_judged_chunk_is_another_pair(evalset, carol, alice):
    first = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    claim(first, alice)
    grade(pair_of(first, "q1", "c1"), alice)
    add_revision(evalset.chunks.get(), "The answer moved.")
    again = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice], name="Again")

    assert claim(again, alice) == ["q1/c1"]


def test_somebody_outside_the_batch_gets_nothing(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])

    with pytest.raises(Refused, match="not an assessor"):
        claim(batch, bob)


def test_the_database_refuses_a_second_task_of_one_pair_for_one_assessor(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    task = claim_next(batch=batch, by=alice)[0]

    with pytest.raises(IntegrityError, match="task_twice_for_assessor"), transaction.atomic():
        Task.objects.create(pair=task.pair, assessor=task.assessor, leased_until=task.leased_until)


def test_a_chunk_revised_since_is_judged_by_its_current_text(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    add_revision(evalset.chunks.get(), "The answer moved.")

    claim_next(batch=batch, by=alice)

    pair = pair_of(batch, "q1", "c1")
    assert pair.revision == 2
    assert grade(pair, alice).judgment.revision == 2


def test_the_text_does_not_change_under_the_eyes_of_another(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)
    claim_next(batch=batch, by=alice)
    add_revision(evalset.chunks.get(), "The answer moved.")
    claim_next(batch=batch, by=bob)

    assert pair_of(batch, "q1", "c1").revision == 1


def test_both_judgments_of_a_pair_are_of_one_text(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "c1"), alice)
    add_revision(evalset.chunks.get(), "The answer moved.")
    claim_next(batch=batch, by=bob)

    assert grade(pair_of(batch, "q1", "c1"), bob).judgment.revision == 1

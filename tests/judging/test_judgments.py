"""What becomes of a save: once per act, replaced and never changed, kept though it comes late."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from evalsets.errors import BadInput, Refused
from judging.models import Judgment, Task
from judging.services.assessors import assessor_for
from judging.services.batches import reassign_questions
from judging.services.claims import claim_next
from judging.services.judgments import Verdict, save_judgment
from tests.judging.batches import (
    batch_of,
    cannot_judge,
    current_judgments,
    grade,
    let_leases_end,
    pair_of,
    places_by_pair,
    skip,
)


@pytest.fixture
def batch(evalset, carol, alice, bob):
    return batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice, bob])


@pytest.fixture
def pair(batch, alice):
    claim_next(batch=batch, by=alice)
    return pair_of(batch, "q1", "c1")


def chain(pair, user) -> list[tuple[str, int | None]]:
    """The user's judgments of the pair, oldest first."""
    return list(
        Judgment.objects.filter(pair=pair, assessor__user=user).order_by("pk").values_list("kind", "grade")
    )


def test_a_judgment_says_what_was_read_by_whom_under_which_rubric(pair, batch, alice):
    saved = grade(pair, alice, 0, note="Off topic", seconds=7.5)

    judgment = saved.judgment
    assert saved.created
    assert (judgment.grade, judgment.kind, judgment.source) == (0, "grade", "desk")
    assert (judgment.question, judgment.chunk, judgment.revision) == (pair.question, pair.chunk, 1)
    assert (judgment.assessor.user, judgment.rubric, judgment.evalset) == (alice, batch.rubric, batch.evalset)
    assert (judgment.note, judgment.seconds) == ("Off topic", 7.5)


def test_a_judged_pair_is_no_task_any_more(pair, alice):
    grade(pair, alice, 0)

    assert not Task.objects.filter(pair=pair).exists()
    pair.refresh_from_db()
    assert pair.filled_at is not None


def test_the_same_act_sent_twice_is_one_judgment(pair, alice):
    key = uuid.uuid4()
    first = grade(pair, alice, 2, key=key)
    second = grade(pair, alice, 2, key=key)

    assert (first.created, second.created) == (True, False)
    assert second.judgment == first.judgment
    assert chain(pair, alice) == [("grade", 2)]


def test_a_double_click_is_one_judgment_for_each_assessor(evalset, carol, alice, bob):
    """Case 97: A grades 2, again 2 some 50 ms later, and B grades 2."""
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], overlap=2, overlap_share=1)
    pair = pair_of(batch, "q1", "c1")
    claim_next(batch=batch, by=alice)
    claim_next(batch=batch, by=bob)

    grade(pair, alice, 2)
    grade(pair, alice, 2)
    grade(pair, bob, 2)

    assert chain(pair, alice) == chain(pair, bob) == [("grade", 2)]


def test_an_old_act_sent_again_after_a_regrade_changes_nothing(pair, alice):
    key = uuid.uuid4()
    grade(pair, alice, 2, key=key)
    grade(pair, alice, 3)

    resent = grade(pair, alice, 2, key=key)

    assert not resent.created
    assert [j.grade for j in current_judgments(pair.batch)] == [3]


def test_another_grade_under_the_key_of_a_page_gone_back_to_is_a_regrade(pair, alice):
    key = uuid.uuid4()
    grade(pair, alice, 2, key=key)
    grade(pair, alice, 0, key=key)

    assert chain(pair, alice) == [("grade", 2), ("grade", 0)]
    assert [j.grade for j in current_judgments(pair.batch)] == [0]


def test_a_regrade_replaces_and_both_stay_readable(pair, alice):
    first = grade(pair, alice, 3).judgment
    second = grade(pair, alice, 1).judgment

    assert second.replaces == first
    assert first.replaced_by == second
    assert places_by_pair(pair.batch)[pair.pk] == 1


def test_another_note_on_the_same_grade_is_kept(pair, alice):
    grade(pair, alice, 1)
    grade(pair, alice, 1, note="Second thoughts")

    assert [j.note for j in current_judgments(pair.batch)] == ["Second thoughts"]


def test_a_key_of_another_pair_is_refused(pair, batch, alice):
    key = uuid.uuid4()
    grade(pair, alice, 1, key=key)

    with pytest.raises(Refused, match="another pair"):
        grade(pair_of(batch, "q1", "c2"), alice, 1, key=key)


def test_a_grade_that_waited_in_the_browser_does_not_undo_a_newer_one(pair, alice):
    grade(pair, alice, 3)

    late = grade(pair, alice, 0, chosen_ago=timedelta(minutes=10))

    assert late.overtaken
    assert late.judgment.grade == 3
    assert chain(pair, alice) == [("grade", 3)]


def test_a_late_grade_counts_while_a_place_is_free(pair, alice, batch):
    let_leases_end(batch)

    saved = grade(pair, alice, 2)

    assert saved.created
    assert not saved.extra
    pair.refresh_from_db()
    assert pair.filled_at is not None


def test_a_late_grade_is_kept_as_extra_when_others_hold_the_pair(pair, batch, alice, bob):
    """Case 95: Alice comes back and saves after Bob was given the pair."""
    let_leases_end(batch, alice)
    claim_next(batch=batch, by=bob)

    late = grade(pair, alice, 2)
    asked_for = grade(pair, bob, 1)

    assert (late.extra, asked_for.extra) == (True, False)
    assert late.judgment.details == {"extra": True}
    assert len(current_judgments(batch)) == 2
    assert places_by_pair(batch)[pair.pk] == 1


def test_a_late_grade_is_kept_as_extra_when_the_pair_is_judged(pair, batch, alice, bob):
    let_leases_end(batch, alice)
    claim_next(batch=batch, by=bob)
    grade(pair, bob, 1)

    assert grade(pair, alice, 2).extra
    assert grade(pair, alice, 3).extra, "a regrade of an extra judgment stays one"


def test_what_is_sent_after_a_question_was_reassigned_is_kept(pair, batch, evalset, carol, alice, bob):
    reassign_questions(
        batch=batch,
        by=carol,
        to=assessor_for(evalset=evalset, user=bob),
        questions=list(batch.batch_questions.all()),
    )

    late = grade(pair, alice, 2)

    assert late.created
    assert late.extra
    assert claim_next(batch=batch, by=bob)[0].pair == pair, "the extra one does not stand in for Bob's"
    assert not grade(pair, bob, 2).extra


def test_a_skip_can_be_graded_later_by_its_assessor(pair, batch, alice):
    skip(pair, alice)
    pair.refresh_from_db()
    assert pair.filled_at is None

    saved = grade(pair, alice, 1)

    assert not saved.extra
    assert chain(pair, alice) == [("skip", None), ("grade", 1)]


def test_a_skip_that_others_have_judged_meanwhile_is_graded_as_extra(pair, batch, alice, bob):
    skip(pair, alice)
    claim_next(batch=batch, by=bob)
    grade(pair, bob, 3)

    assert grade(pair, alice, 1).extra


def test_a_regrade_to_a_skip_opens_the_pair_again(pair, batch, alice, bob):
    grade(pair, alice, 2)
    skip(pair, alice, "unclear-question")

    pair.refresh_from_db()
    assert pair.filled_at is None
    assert claim_next(batch=batch, by=bob)[0].pair == pair


def test_cannot_judge_can_be_taken_back_by_a_grade(pair, alice):
    cannot_judge(pair, alice)
    grade(pair, alice, 2)

    assert chain(pair, alice) == [("cannot-judge", None), ("grade", 2)]


def test_a_pair_that_was_never_given_is_refused(pair, bob):
    with pytest.raises(Refused, match="never given"):
        grade(pair, bob, 1)


def test_somebody_outside_the_batch_is_refused(pair, victor):
    with pytest.raises(Refused, match="not an assessor"):
        grade(pair, victor, 1)


@pytest.mark.parametrize("bad", [4, -1, None])
def test_a_grade_outside_the_scale_is_bad_input(pair, alice, bad):
    verdict = Verdict(kind=Judgment.Kind.GRADE, grade=bad)
    with pytest.raises(BadInput, match="the scale has 0 to 3"):
        save_judgment(batch=pair.batch, pair_id=pair.pk, by=alice, verdict=verdict, key=uuid.uuid4())


def test_a_skip_without_a_reason_is_bad_input(pair, alice):
    with pytest.raises(BadInput, match="reason"):
        skip(pair, alice, reason="")


@pytest.mark.parametrize(("sent", "kept"), [(12.5, 12.5), (0, 0), (-1, None), (90_000, None), (None, None)])
def test_times_that_say_nothing_are_not_kept(pair, alice, sent, kept):
    assert grade(pair, alice, 1, seconds=sent).judgment.seconds == kept


# What the database itself refuses, whatever the services do.


def _copy_of(judgment: Judgment, **changes) -> Judgment:
    fields = [
        "evalset",
        "question",
        "chunk",
        "revision",
        "assessor",
        "kind",
        "grade",
        "reason",
        "pair",
        "rubric",
    ]
    return Judgment(**{**{name: getattr(judgment, name) for name in fields}, **changes})


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({}, "judgment_first_twice_for_assessor"),
        ({"pair": None, "grade": None}, "judgment_grade_without_grade"),
        ({"pair": None, "kind": "skip"}, "judgment_grade_without_grade"),
        ({"pair": None, "kind": "skip", "grade": None, "reason": ""}, "judgment_skip_without_reason"),
    ],
)
def test_the_database_refuses(pair, alice, changes, constraint):
    judgment = grade(pair, alice, 2).judgment
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        _copy_of(judgment, **changes).save()


def test_the_database_refuses_two_rows_that_replace_one(pair, alice):
    first = grade(pair, alice, 2).judgment
    grade(pair, alice, 3)
    with pytest.raises(IntegrityError, match="replaces_id"), transaction.atomic():
        _copy_of(first, replaces=first).save()


def test_the_database_refuses_one_key_twice(pair, alice):
    first = grade(pair, alice, 2).judgment
    with pytest.raises(IntegrityError, match="idempotency_key"), transaction.atomic():
        _copy_of(first, pair=None, idempotency_key=first.idempotency_key).save()


@pytest.mark.parametrize("act", ["change", "delete"])
def test_the_database_refuses_to_change_or_delete_a_judgment(pair, alice, act):
    judgments = Judgment.objects.filter(pk=grade(pair, alice, 2).judgment.pk)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        judgments.update(grade=0) if act == "change" else judgments.delete()

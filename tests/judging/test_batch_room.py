"""The figures of the lead's room against slow, obvious counts, and its cost on a large batch."""

from __future__ import annotations

import datetime
import itertools
import statistics
import uuid
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsets.models import ChunkRevision, Member
from judging import batch_reads, batch_room
from judging.models import Batch, Judgment
from judging.services.claims import claim_next
from tests.conftest import make_user
from tests.judging.batches import batch_of, cannot_judge, current_judgments, grade, skip


def timed(evalset, carol, people, *, characters: int = 1000, judged: int = 20) -> Batch:
    """Each of these people (with their seconds a pair) grades so many pairs of a question of their own."""
    chunks = [f"c{n}" for n in range(judged)]
    batch = batch_of(
        evalset,
        {f"q-{user.username}": chunks for user in people},
        by=carol,
        assessors=list(people),
        name=f"Timed {uuid.uuid4().hex[:6]}",
    )
    ChunkRevision.objects.filter(chunk__evalset=evalset).update(text="x" * characters)
    for user, seconds in people.items():
        for task in claim_next(batch=batch, by=user, count=judged):
            grade(task.pair, user, 1, seconds=seconds)
    return batch


@pytest.mark.parametrize(
    ("alice_seconds", "bob_seconds", "characters", "judged", "hinted"),
    [
        (2, 30, 1000, 20, True),
        (2, 30, 1000, 19, False),  # too few to say
        (2, 30, 100, 20, False),  # short texts are read as quickly
        (11, 30, 1000, 20, False),  # more than a third of what Bob takes
        (9, 30, 1000, 20, True),
        (13, 300, 1000, 20, False),  # slow enough to have read, however slow Bob is
    ],
)
def test_fast_grading_is_hinted_at_by_the_others_and_by_reading_speed(
    evalset, carol, alice, bob, alice_seconds, bob_seconds, characters, judged, hinted
):
    people = {alice: alice_seconds, bob: bob_seconds}
    batch = timed(evalset, carol, people, characters=characters, judged=judged)
    hints = batch_room.fast_hints(batch_room.speeds(batch))
    assert [hint.assessor.user for hint in hints] == ([alice] if hinted else [])
    if hinted:
        assert hints[0].speed.seconds == alice_seconds
        assert hints[0].others_seconds == bob_seconds
        assert hints[0].speed.characters_a_second == characters / alice_seconds


def test_where_nobody_else_is_timed_the_speed_of_reading_decides(evalset, carol, alice):
    [hint] = batch_room.fast_hints(batch_room.speeds(timed(evalset, carol, {alice: 2})))
    assert hint.others_seconds is None
    assert batch_room.fast_hints(batch_room.speeds(timed(evalset, carol, {alice: 20}))) == []


def judge_at(pair, user, at, value) -> None:
    """A judgment of a chosen time: the database keeps what was written, so it is written so."""
    kind = Judgment.Kind.CANNOT_JUDGE if value is None else Judgment.Kind.GRADE
    Judgment.objects.create(
        evalset_id=pair.batch.evalset_id,
        question_id=pair.question_id,
        chunk_id=pair.chunk_id,
        revision=pair.revision,
        pair=pair,
        assessor=pair.batch.assessors.get(user=user),
        kind=kind,
        grade=value,
        reason="other" if value is None else "",
        judged_at=at,
    )


@pytest.mark.parametrize(
    ("minutes", "width"),
    [(0, 5), (190, 5), (201, 30), (60 * 21, 120), (60 * 24 * 30, 60 * 24), (60 * 24 * 400, 60 * 24 * 28)],
)
def test_the_grades_over_time_are_a_count_by_steps(evalset, carol, alice, minutes, width):
    batch = batch_of(evalset, {"q1": [f"c{n}" for n in range(12)]}, by=carol, assessors=[alice])
    start = datetime.datetime(2026, 3, 2, 9, 3, tzinfo=timezone.get_current_timezone())
    said = [0, 0, 1, None, 3, 2, 2, None, 0, 1, 1, 3]
    times = [start + datetime.timedelta(minutes=minutes) * n / 11 for n in range(12)]
    for pair, at, value in zip(batch.pairs.all(), times, said, strict=True):
        judge_at(pair, alice, at, value)

    found = batch_room.timeline(batch)
    assert found.width == datetime.timedelta(minutes=width)
    assert len(found.steps) <= batch_room.STEPS + 1
    starts = [step.start for step in found.steps]
    assert {later - earlier for earlier, later in itertools.pairwise(starts)} <= {found.width}, (
        "no gap is hidden"
    )
    midnight = start.replace(hour=0, minute=0)
    counts = Counter(
        (midnight + (at - midnight) // found.width * found.width, value)
        for at, value in zip(times, said, strict=True)
    )
    for step in found.steps:
        assert step.counts == [counts.pop((step.start, value), 0) for value in range(4)]
        assert step.others == counts.pop((step.start, None), 0)
    assert not counts


def test_no_judgment_no_picture(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    assert batch_room.timeline(batch).steps == []


def test_the_summary_adds_up_the_open_batches(evalset, carol, alice, bob):
    settings = {"by": carol, "assessors": [alice, bob]}
    late = batch_of(evalset, {"q1": ["c1", "c2"]}, name="A", **settings)
    Batch.objects.filter(pk=late.pk).update(due_on=datetime.date(2020, 1, 1))
    batch_of(evalset, {"q2": ["c1"]}, name="B", overlap=2, overlap_share=1, **settings)
    paused = batch_of(evalset, {"q3": ["c1"]}, name="C", **settings)
    Batch.objects.filter(pk=paused.pk).update(paused_at=timezone.now())
    done = batch_of(evalset, {"q4": ["c1"]}, name="D", **settings)
    grade(claim_next(batch=done, by=alice)[0].pair, alice)
    grade(claim_next(batch=late, by=alice)[0].pair, alice)

    summary = batch_room.room_summary(evalset)
    assert (summary.open, summary.paused, summary.overdue) == (2, 1, 1)
    assert (summary.wanted, summary.left, summary.lately, summary.at_work) == (5, 4, 1, 1)


def test_reasons_and_times_agree_with_a_slow_count(evalset, carol, alice, bob):
    batch = batch_of(evalset, {"q1": [f"c{n}" for n in range(6)]}, by=carol, assessors=[alice, bob])
    tasks = claim_next(batch=batch, by=alice, count=6)
    skip(tasks[0].pair, alice, "unclear-question")
    skip(tasks[1].pair, alice, "needs-expert")
    cannot_judge(tasks[2].pair, alice, "needs-expert")
    cannot_judge(tasks[3].pair, alice, "other")
    grade(tasks[4].pair, alice, 2, seconds=7)
    grade(tasks[5].pair, alice, 2, seconds=9)

    assert batch_reads.reason_counts(batch) == [
        ("It needs an expert", 1, 1),
        ("Other", 0, 1),
        ("The question is unclear", 1, 0),
    ]
    [row] = batch_reads.question_rows(batch)
    seconds = [j.seconds for j in current_judgments(batch) if j.seconds is not None]
    assert (row.cannot_count, row.skip_count, row.median_seconds) == (2, 2, statistics.median(seconds))
    [claimed] = {task.pair.question_id for task in claim_next(batch=batch, by=bob)}
    assert claimed == row.question_id
    assert batch_reads.question_rows(batch).get().held_by == "bob"


def test_the_page_asks_as_much_of_a_large_batch_as_of_a_small_one(evalset, carol, client_for):
    client = client_for(carol)

    def statements(questions: int, people: int) -> int:
        crowd = [make_user(f"p{questions}-{number}") for number in range(people)]
        Member.objects.bulk_create(Member(evalset=evalset, user=user, role="assessor") for user in crowd)
        pairs = {f"q{n}": [f"c{c}" for c in range(10)] for n in range(questions)}
        batch = batch_of(
            evalset, pairs, by=carol, assessors=crowd, name=f"{questions}", overlap=2, overlap_share=0.1
        )
        for user in crowd[:10]:
            for task in claim_next(batch=batch, by=user, count=5):
                grade(task.pair, user, 1, seconds=5)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert client.get(batch.get_absolute_url(), headers={"HX-Request": "true"}).status_code == 200
        return len(captured)

    assert statements(2, 2) == statements(40, 30) <= 40


def test_questions_of_a_batch_are_searched_filtered_and_sorted(evalset, carol, alice, client_for):
    batch = batch_of(evalset, {"q2": ["a", "b"], "q1": ["a"]}, by=carol, assessors=[alice])
    batch.pairs.filter(question__external_id="q1").update(filled_at=timezone.now())
    batch.batch_questions.filter(question__external_id="q1").update(
        assigned_to=batch.assessors.get(user=alice)
    )
    client = client_for(carol)

    def listed(**address) -> list[str]:
        rows = client.get(batch.get_absolute_url(), address).context["page"]
        return [row.question.external_id for row in rows]

    order = [row.question.external_id for row in batch.batch_questions.order_by("position")]
    assert listed() == order
    assert (listed(sort="question"), listed(sort="-question")) == (["q1", "q2"], ["q2", "q1"])
    assert (listed(which="left"), listed(which="done")) == (["q2"], ["q1"])
    assert listed(q="ALICE") == ["q1"]
    seen = client.get(batch.get_absolute_url(), {"which": "done", "q": "q2"}).content.decode()
    assert 'No question is like that. <a href="?#questions">Show all</a>' in seen

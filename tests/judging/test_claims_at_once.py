"""Many assessors at once on real Postgres, each in a thread with connections of its own."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from evalsets.models import Member, User
from judging.models import Batch, BatchPair, Judgment
from judging.services.claims import claim_next
from tests.conftest import make_user
from tests.judging.batches import (
    batch_of,
    current_judgments,
    grade,
    let_leases_end,
    pair_of,
    places_by_pair,
    skip,
)

pytestmark = pytest.mark.django_db(transaction=True)

ASSESSORS = 50


def at_once(work: Callable[[User], None], people: Iterable[User]) -> None:
    """Run `work` for each of the people at the same time; the first error of any of them is raised."""
    people = list(people)
    together = threading.Barrier(len(people))

    def run(user: User) -> None:
        together.wait()
        try:
            work(user)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as threads:
        for done in [threads.submit(run, user) for user in people]:
            done.result()


@pytest.fixture
def crowd(evalset) -> list[User]:
    people = [make_user(f"assessor{number:02}") for number in range(ASSESSORS)]
    Member.objects.bulk_create(
        Member(evalset=evalset, user=user, role=Member.Role.ASSESSOR) for user in people
    )
    return people


def judge_to_the_end(batch: Batch) -> Callable[[User], None]:
    """An assessor who judges what comes until nothing comes. Now and then they double-click, skip or regrade."""

    def work(user: User) -> None:
        mood = random.Random(user.username)
        given: set[int] = set()
        while tasks := claim_next(batch=Batch.objects.get(pk=batch.pk), by=user, count=3):
            connection.close()  # as between two requests
            pair = tasks[0].pair
            assert pair.pk not in given, "an assessor never gets one pair twice"
            given.add(pair.pk)
            if mood.random() < 0.03:
                skip(pair, user)
                continue
            key = uuid.uuid4()
            grade(pair, user, mood.randrange(4), key=key)
            if mood.random() < 0.1:
                grade(pair, user, mood.randrange(4))
            connection.close()

    return work


@pytest.mark.parametrize("sharing", [Batch.Sharing.BY_QUESTION, Batch.Sharing.SHARED])
def test_fifty_assessors_judge_each_pair_exactly_as_often_as_asked(evalset, carol, crowd, sharing):
    questions = {f"q{q:02}": [f"c{c:02}" for c in range(6)] for q in range(20)}
    batch = batch_of(
        evalset,
        questions,
        by=carol,
        assessors=crowd,
        sharing=sharing,
        overlap=3,
        overlap_share=0.25,
        seed=7,
    )
    assert Counter(batch.pairs.values_list("wanted", flat=True)) == {1: 90, 3: 30}

    at_once(judge_to_the_end(batch), crowd)

    wanted = dict(batch.pairs.values_list("pk", "wanted"))
    assert places_by_pair(batch) == wanted
    assert not batch.pairs.filter(filled_at__isnull=True).exists()
    assert not any(judgment.details for judgment in current_judgments(batch)), "nothing was extra"
    assert not batch.pairs.filter(tasks__isnull=False).exists(), "nobody holds a judged pair"


def test_filled_at_agrees_with_the_judgments_after_all_that(evalset, carol, crowd):
    batch = batch_of(
        evalset, {"q1": [f"c{c}" for c in range(40)]}, by=carol, assessors=crowd, sharing=Batch.Sharing.SHARED
    )

    def work(user: User) -> None:
        for task in claim_next(batch=Batch.objects.get(pk=batch.pk), by=user, count=2):
            grade(task.pair, user, 1)
            skip(task.pair, user)
            if int(user.username[-2:]) % 2:
                grade(task.pair, user, 2)

    at_once(work, crowd)

    places = places_by_pair(batch)
    for pair in BatchPair.objects.filter(batch=batch):
        assert (pair.filled_at is not None) == (places[pair.pk] >= pair.wanted)


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) > 0 FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


def test_a_claim_that_postgres_ends_in_a_deadlock_begins_anew(evalset, carol, alice):
    """Somebody locks the later pair and then wants the earlier one, which the claim has locked meanwhile."""
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    first, second = batch.pairs.order_by("pk")
    holds_second, claimed = threading.Event(), []

    def claim() -> None:
        holds_second.wait()
        claimed.extend(claim_next(batch=batch, by=alice, count=2))
        connection.close()

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        done = threads.submit(claim)
        BatchPair.objects.select_for_update(no_key=True).get(pk=second.pk)
        holds_second.set()
        while not waits_for_a_lock():
            time.sleep(0.01)
        BatchPair.objects.select_for_update(no_key=True).get(pk=first.pk)
    done.result()

    assert [task.pair_id for task in claimed] == [first.pk, second.pk]


def test_nobody_is_told_that_nothing_is_left_while_another_claims(evalset, carol, crowd):
    """Locked questions are passed over at first, yet each assessor gets one of the fifty."""
    batch = batch_of(evalset, {f"q{n:02}": ["c1"] for n in range(ASSESSORS)}, by=carol, assessors=crowd)
    got: dict[str, int] = {}

    def work(user: User) -> None:
        got[user.username] = claim_next(batch=Batch.objects.get(pk=batch.pk), by=user)[0].pair_id

    at_once(work, crowd)

    assert len(set(got.values())) == ASSESSORS


def test_a_save_sent_by_fifty_clicks_at_once_is_one_judgment(evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    claim_next(batch=batch, by=alice)
    pair, key = pair_of(batch, "q1", "c1"), uuid.uuid4()

    at_once(lambda user: grade(pair, user, 2, key=key), [alice] * 20)

    assert Judgment.objects.filter(pair=pair).count() == 1


def test_two_tabs_that_grade_different_pairs_at_once_do_not_block_each_other_for_good(evalset, carol, alice):
    batch = batch_of(
        evalset, {"q1": [f"c{n}" for n in range(20)]}, by=carol, assessors=[alice], lease_minutes=1
    )
    claim_next(batch=batch, by=alice)
    pairs = list(batch.pairs.all())
    lock = threading.Lock()

    def tab(user: User) -> None:
        while True:
            with lock:
                if not pairs:
                    return
                pair = pairs.pop()
            grade(pair, user, 1)
            claim_next(batch=Batch.objects.get(pk=batch.pk), by=user, count=4)

    at_once(tab, [alice] * 4)

    assert set(places_by_pair(batch).values()) == {1}


def test_a_late_save_and_a_claim_at_once_leave_one_judgment_that_counts(evalset, carol, alice, bob):
    """Whoever comes first has the place; the other judgment is marked extra, or the claim gets nothing."""
    batch = batch_of(
        evalset,
        {"q1": [f"c{n}" for n in range(15)]},
        by=carol,
        assessors=[alice, bob],
        sharing=Batch.Sharing.SHARED,
    )
    claim_next(batch=batch, by=alice, count=15)
    let_leases_end(batch)
    pairs = list(batch.pairs.all())

    def work(user: User) -> None:
        if user == alice:
            for pair in pairs:
                grade(pair, user, 1)
        else:
            while tasks := claim_next(batch=Batch.objects.get(pk=batch.pk), by=user):
                grade(tasks[0].pair, user, 2)

    at_once(work, [alice, bob])

    counted = Counter(j.pair_id for j in current_judgments(batch) if not j.details.get("extra"))
    assert counted == {pair.pk: 1 for pair in pairs}

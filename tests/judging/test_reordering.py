"""What is left of a pool that goes by the grades is put in a new order as grades come in, and nothing else changes."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery import current_app
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from evalsets.models import Member
from judging.models import Batch, BatchPair
from judging.services.batches import make_batch
from judging.services.claims import claim_next
from judging.services.reordering import EVERY, grades_so_far, reorder_question, replay
from judging.tasks import reorder_question as task
from pooling.adaptive import ADAPTIVE, Graded
from pooling.models import Pool, Reordering
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run, make_user
from tests.judging.batches import grade, places_by_pair, skip
from tests.judging.test_batch_over_http import Browser
from tests.labels.builders import judge
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db

GOOD = [f"g{number}" for number in range(8)]
BAD = [f"b{number}" for number in range(8)]


@pytest.fixture
def pool(evalset) -> Pool:
    """One question, two runs that share nothing: all that "good" returned is relevant, nothing of "bad" is."""
    make_questions(evalset, "q1")
    make_chunks(evalset, *GOOD, *BAD)
    runs = [make_run(evalset, "bad", {"q1": BAD}), make_run(evalset, "good", {"q1": GOOD})]
    return build_pool(
        evalset=evalset, name="P", runs=[(run, 8) for run in runs], by=None, strategy="max-mean", seed=5
    )[0]


@pytest.fixture
def batch(pool, alice, bob, carol) -> Batch:
    return make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice, bob])


def order_of(batch: Batch) -> list[str]:
    """What is open, in reading order."""
    open_pairs = batch.pairs.filter(filled_at__isnull=True).order_by("batch_question", "position")
    return list(open_pairs.values_list("chunk__external_id", flat=True))


def renew(batch: Batch, qid: str = "q1") -> Reordering | None:
    return reorder_question(pool=batch.pool, question=batch.evalset.questions.get(external_id=qid))


def judge_next(batch: Batch, user, count: int = 1) -> list[str]:
    """Grade what comes next by who returned it; returns the chunks."""
    seen = []
    for _ in range(count):
        (one,) = claim_next(batch=batch, by=user)
        name = one.pair.chunk.external_id
        grade(one.pair, user, 2 if name in GOOD else 0)
        seen.append(name)
    return seen


def test_a_pool_that_goes_by_the_grades_begins_with_the_best_ranks(batch) -> None:
    order = order_of(batch)
    assert [{name[1] for name in order[i : i + 2]} for i in (0, 2, 4)] == [{"0"}, {"1"}, {"2"}]


def test_the_first_grade_changes_the_order_and_then_every_few(batch, alice) -> None:
    claim_next(batch=batch, by=alice)
    assert renew(batch) is None  # no grade yet
    bad = batch.pairs.get(chunk__external_id="b0")
    grade(bad, alice, 0)
    first = renew(batch)
    # bad stands at 1/3, good at 1/2; then as if good missed, too: equal at 1/3, and from there on in turn.
    assert order_of(batch)[0] == "g0"
    assert first.chunk_ids == [batch.evalset.chunks.get(external_id=name).pk for name in order_of(batch)]
    assert (len(first.graded_ids), first.relevant_ids) == (1, [])

    judge_next(batch, alice, EVERY - 1)
    assert renew(batch) is None
    judge_next(batch, alice)
    second = renew(batch)
    assert len(second.graded_ids) == EVERY + 1
    assert replay(first) == first.chunk_ids
    assert replay(second) == second.chunk_ids


def test_what_an_assessor_holds_follows_too(batch, alice) -> None:
    """By question, one assessor holds all pairs of the question: their queue is what is put in order."""
    held = [task.pair_id for task in claim_next(batch=batch, by=alice, count=50)]
    assert len(held) == 16
    judge_next(batch, alice, 4)
    renew(batch)
    after = [task.pair.chunk.external_id for task in claim_next(batch=batch, by=alice, count=50)]
    assert after == order_of(batch)
    assert after[0] in GOOD
    assert {task.pair_id for task in claim_next(batch=batch, by=alice, count=50)} < set(held)


@pytest.mark.parametrize(
    ("strategy", "sharing"), [*((name, "by-question") for name in ADAPTIVE), ("max-mean", "shared")]
)
def test_to_the_end_each_pair_comes_once_and_the_relevant_ones_early(
    evalset, alice, bob, carol, strategy, sharing
) -> None:
    make_questions(evalset, "q1")
    good, bad = [f"g{number:02}" for number in range(16)], [f"b{number:02}" for number in range(16)]
    make_chunks(evalset, *good, *bad)
    runs = [make_run(evalset, name, {"q1": ids}) for name, ids in (("bad", bad), ("good", good))]
    pool, _ = build_pool(
        evalset=evalset, name="P", runs=[(run, 16) for run in runs], by=None, strategy=strategy, seed=1
    )
    batch = make_batch(pool=pool, name="W", by=carol, assessors=[alice, bob], sharing=sharing)
    seen: list[str] = []
    whose = [alice] if sharing == "by-question" else [alice, bob]
    while tasks := claim_next(batch=batch, by=whose[len(seen) % len(whose)]):
        pair, user = tasks[0].pair, whose[len(seen) % len(whose)]
        seen.append(pair.chunk.external_id)
        grade(pair, user, 1 if pair.chunk.external_id in good else 0)
        reorder_question(pool=pool, question=pair.question)
    assert sorted(seen) == sorted([*good, *bad])
    assert sum(chunk in good for chunk in seen[:16]) >= 11  # shuffled, it would be 8
    assert Reordering.objects.count() == 1 + (31 - 1) // EVERY
    for reordering in Reordering.objects.select_related("pool", "question"):
        assert replay(reordering) == reordering.chunk_ids
    assert len(set(batch.pairs.values_list("position", flat=True))) == 32


def test_a_pair_that_wants_more_judgments_and_a_gold_pair_keep_their_places(batch, alice, carol) -> None:
    claim_next(batch=batch, by=alice)
    first, second = batch.pairs.order_by("position")[:2]
    BatchPair.objects.filter(pk=first.pk).update(wanted=2)
    BatchPair.objects.filter(pk=second.pk).update(gold_grade=1)
    places = {first.pk: first.position, second.pk: second.position}
    grade(batch.pairs.get(pk=first.pk), alice, 0)
    renew(batch)
    assert dict(batch.pairs.filter(pk__in=places).values_list("pk", "position")) == places


def test_grades_so_far_are_the_last_words_on_current_texts(evalset, pool, alice) -> None:
    question = evalset.questions.get()
    chunks = {chunk.external_id: chunk for chunk in evalset.chunks.all()}
    judge(question, chunks["g0"], 2, by="file:old")
    judge(question, chunks["b0"], 1, by=alice)
    judge(question, chunks["g0"], 0, by=alice)  # later: the last word, and the last in time
    judge(question, chunks["g1"], 3, by="model:gpt")
    judge(question, chunks["g2"], None, by=alice)
    judge(question, chunks["g3"], 3, by=alice, revision=1)
    chunks["g3"].revision = 2
    chunks["g3"].save()
    assert grades_so_far(pool=pool, question=question) == [
        Graded(chunks["b0"].pk, True),
        Graded(chunks["g0"].pk, False),
    ]
    judge(question, chunks["g0"], 3, by="file:carol", source="adjudication")
    judge(question, chunks["g0"], 0, by="file:late")
    assert grades_so_far(pool=pool, question=question)[-1] == Graded(chunks["g0"].pk, True)


def test_a_regrade_and_a_skip_are_taken_into_account(batch, alice) -> None:
    claim_next(batch=batch, by=alice)
    pairs = list(batch.pairs.order_by("position")[:6])
    for pair in pairs:
        grade(pair, alice, 0)
    first = renew(batch)
    assert first.relevant_ids == []
    for pair in pairs[:4]:
        grade(pair, alice, 2)
    skip(pairs[4], alice)
    second = renew(batch)
    assert second.relevant_ids == [pair.chunk_id for pair in pairs[:4]]
    assert second.graded_ids == [pairs[5].chunk_id, *second.relevant_ids]
    assert pairs[4].chunk_id in second.chunk_ids  # open again
    assert replay(second) == second.chunk_ids


def test_nothing_is_renewed_for_other_pools_or_when_the_batch_was_cancelled(batch, alice, evalset) -> None:
    judge_next(batch, alice)
    Pool.objects.update(strategy="depth")
    batch.pool.refresh_from_db()
    assert renew(batch) is None
    Pool.objects.update(strategy="max-mean")
    batch.pool.refresh_from_db()
    Batch.objects.update(cancelled_at="2026-01-01T00:00Z")
    assert renew(batch) is None
    Batch.objects.update(cancelled_at=None)
    assert renew(batch) is not None


def test_the_task_is_one_service_call(batch, alice) -> None:
    judge_next(batch, alice)
    task(batch.pool_id, batch.evalset.questions.get().pk)
    assert Reordering.objects.count() == 1


def test_the_pool_page_shows_what_judging_found_and_each_order(batch, alice, carol, client_for) -> None:
    lead = client_for(carol)
    page = lead.get(batch.pool.get_absolute_url())
    assert "No order yet but the first" in page.content.decode()
    assert page.context["course"] is None
    seen = judge_next(batch, alice, 6)
    renew(batch)
    gold = batch.pairs.get(chunk__external_id="g7")
    BatchPair.objects.filter(pk=gold.pk).update(gold_grade=2)
    grade(gold, alice, 2)
    table = lead.get(batch.pool.get_absolute_url()).context["course"]
    found = [sum(name in GOOD for name in seen[:n]) for n in range(7)]
    assert table.columns == [0, 1, 2, 3, 4, 5, 6]
    assert [count for count, _ in table.rows[0].cells] == found
    assert [share for _, share in table.rows[1].cells] == pytest.approx([n / 6 for n in range(7)])

    order = lead.get(reverse("judging:pool-order", args=["handbook", batch.pool_id]), {"q": "q1"})
    ((row, first),) = order.context["rows"]
    assert [pk for pk, _ in first] == row.chunk_ids[:4]
    assert [name for _, name in first] == order_of(batch)[:4]
    assert lead.get(order.request["PATH_INFO"], {"q": "q2"}).context["rows"] == []


def test_the_command_prints_and_replays_the_log(batch, alice, capsys) -> None:
    seen = judge_next(batch, alice, 2)
    renew(batch)
    call_command("pool_orders", "handbook", "P", "--check", "--json")
    document = json.loads(capsys.readouterr().out)
    (one,) = document["orders"]
    assert one["grades"] == [[name, name in GOOD] for name in seen]
    assert (one["order"], one["replayed"]) == (order_of(batch), True)
    Reordering.objects.update(chunk_ids=Reordering.objects.get().chunk_ids[::-1])
    with pytest.raises(SystemExit) as caught:
        call_command("pool_orders", "handbook", "P", "--check")
    assert caught.value.code == 1
    assert "COMES OUT OTHERWISE" in capsys.readouterr().out
    Pool.objects.update(strategy="depth")
    with pytest.raises(CommandError, match="does not follow the grades"):
        call_command("pool_orders", "handbook", "P")


def save_at_desk(client, batch: Batch, pair: BatchPair, user) -> int:
    """Grade the pair 0 by the desk's own requests; returns the status."""
    client.post(reverse("judging:desk-next", args=["handbook", batch.pk]))
    answer = client.post(
        reverse("judging:desk-save", args=["handbook", batch.pk]),
        {"pair": pair.pk, "key": uuid.uuid4(), "as_user": user.pk, "act": "grade:0"},
        headers={"Accept": "application/json"},
    )
    return answer.status_code


@pytest.mark.django_db(transaction=True)
def test_a_grade_at_the_desk_has_its_question_put_in_order_by_a_worker(
    worker, batch, alice, client_for
) -> None:
    bad = batch.pairs.get(chunk__external_id="b0")
    assert save_at_desk(client_for(alice), batch, bad, alice) == 200
    wait_until(Reordering.objects.exists)
    assert order_of(batch)[0] == "g0"


@pytest.fixture
def no_broker(monkeypatch) -> None:
    """Celery sends to a port where nobody listens."""
    monkeypatch.setattr(current_app.amqp, "_producer_pool", None)
    monkeypatch.setitem(current_app.conf, "broker_write_url", "redis://127.0.0.1:1/0")


@pytest.mark.django_db(transaction=True)
def test_without_a_broker_the_grade_is_saved_and_the_order_stays(
    no_broker, batch, alice, client_for, caplog
) -> None:
    before = order_of(batch)
    bad = batch.pairs.get(chunk__external_id="b0")
    assert save_at_desk(client_for(alice), batch, bad, alice) == 200
    assert "keeps its order" in caplog.text
    assert bad.judgments.count() == 1
    assert order_of(batch) == [name for name in before if name != "b0"]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_while_a_worker_puts_things_in_order(web, worker, evalset, carol) -> None:
    """Eight assessors, single pairs of two questions, each pair twice: as often as asked, and every order replays."""
    crowd = [make_user(f"assessor{number}") for number in range(8)]
    Member.objects.bulk_create(Member(evalset=evalset, user=user, role="assessor") for user in crowd)
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, *GOOD, *BAD)
    runs = [make_run(evalset, name, {"q1": ids, "q2": ids}) for name, ids in (("bad", BAD), ("good", GOOD))]
    pool, _ = build_pool(
        evalset=evalset, name="P", runs=[(run, 8) for run in runs], by=None, strategy="bayesian-bandit"
    )
    batch = make_batch(
        pool=pool,
        name="W",
        by=carol,
        assessors=crowd,
        sharing=Batch.Sharing.SHARED,
        overlap=2,
        overlap_share=1,
    )
    next_url = reverse("judging:desk-next", args=[evalset.slug, batch.pk])
    save_url = reverse("judging:desk-save", args=[evalset.slug, batch.pk])
    good = set(batch.pairs.filter(chunk__external_id__in=GOOD).values_list("pk", flat=True))
    browsers = [Browser(web.url, user) for user in crowd]
    connection.close()

    def judge(browser: Browser, at_most: int) -> list[int]:
        seen = []
        answer = browser.post(next_url)
        while answer["next"] and len(seen) < at_most:
            pair = answer["next"][0]["pair"]
            seen.append(pair)
            act = "grade:2" if pair in good else "grade:0"
            answer = browser.post(save_url, pair=pair, key=uuid.uuid4(), as_user=browser.user.pk, act=act)
        return seen

    with ThreadPoolExecutor(len(browsers)) as threads:
        first = list(threads.map(lambda browser: judge(browser, at_most=1), browsers))
        # However quick the assessors are: most of the pairs are judged with the worker awake.
        wait_until(Reordering.objects.exists)
        rest = list(threads.map(lambda browser: judge(browser, at_most=32), browsers))
    seen = [one + more for one, more in zip(first, rest, strict=True)]
    for browser in browsers:
        browser.connection.close()
    assert all(len(one) == len(set(one)) for one in seen)
    assert set(places_by_pair(batch).values()) == {2}
    for reordering in Reordering.objects.select_related("pool", "question"):
        assert replay(reordering) == reordering.chunk_ids

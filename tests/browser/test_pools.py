"""Pools that draw lots or go by the grades: their pages, and the desk while the order changes under it."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from evalsets.models import Job
from judging.models import Judgment
from judging.services.batches import make_batch
from judging.services.claims import claim_next
from judging.services.reordering import reorder_question, replay
from judging.services.simulating import start_simulating
from judging.tasks import simulate_strategies
from pooling.models import Pool, Reordering
from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.browser.conftest import SCHEMES
from tests.browser.test_desk import GUARD, all_saved, start
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import grade

GOOD, BAD = [f"g{number}" for number in range(8)], [f"b{number}" for number in range(8)]


@pytest.fixture
def runs(evalset):
    make_questions(evalset, "q1")
    make_chunks(evalset, *GOOD, *BAD)
    return [
        RunToDepth(make_run(evalset, name, {"q1": ids}), 8) for name, ids in (("bad", BAD), ("good", GOOD))
    ]


@pytest.fixture
def pool(evalset, runs) -> Pool:
    return build_pool(evalset=evalset, name="P", runs=runs, by=None, strategy="max-mean", seed=1)[0]


def test_a_batch_is_judged_to_its_end_by_keys_while_a_worker_puts_it_in_order(
    new_page, worker, pool, alice, carol
) -> None:
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice])
    page = new_page(alice)
    start(page, batch)
    for _ in range(16):
        shown = page.locator("form.desk-pair").get_attribute("data-pair")
        good = "Text of g" in page.locator(".desk-pair .desk-text").inner_text()
        page.keyboard.press("2" if good else "0")
        expect(page.locator(f'form.desk-pair[data-pair="{shown}"]')).to_have_count(0)
        page.wait_for_timeout(GUARD)
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    all_saved(page)
    judgments = list(Judgment.objects.select_related("chunk").order_by("pk"))
    assert sorted(one.chunk.external_id for one in judgments) == sorted([*GOOD, *BAD])
    assert all((one.grade == 2) == (one.chunk.external_id in GOOD) for one in judgments)
    reorderings = list(Reordering.objects.select_related("pool", "question"))
    assert len(reorderings) >= 2
    assert all(replay(one) == one.chunk_ids for one in reorderings)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1280])
def test_the_pages_are_accessible_and_fit(
    new_page, axe, evalset, runs, pool, alice, carol, scheme, width
) -> None:
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice])
    for _ in range(6):
        pair = claim_next(batch=batch, by=alice)[0].pair
        grade(pair, alice, 2 if pair.chunk.external_id in GOOD else 0)
        reorder_question(pool=pool, question=pair.question)
    sample, _ = build_pool(
        evalset=evalset,
        name="S",
        runs=runs,
        by=None,
        strategy="stratified",
        parameters={"strata": "1-2:1,3-8:0.4"},
    )
    simulate_strategies(start_simulating(evalset=evalset, runs=runs, by=carol).pk)
    assert Job.objects.get().error == ""
    question = evalset.questions.get()
    page = new_page(carol, scheme=scheme, width=width)
    for address in (
        pool.get_absolute_url(),
        reverse("judging:pool-order", args=["handbook", pool.pk]),
        sample.get_absolute_url(),
        reverse("judging:pool-question", args=["handbook", sample.pk, question.pk]),
        reverse("judging:pool-simulation", args=["handbook"]),
        reverse("judging:pool-list", args=["handbook"]),
    ):
        page.goto(address)
        for fold in page.locator("details").all():
            fold.evaluate("fold => { fold.open = true }")
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_a_depth_that_is_none_is_said_where_it_was_written(new_page, evalset, runs, carol) -> None:
    page = new_page(carol)
    page.goto("/e/handbook/pools/new/")
    depth = page.get_by_label("Depth", exact=True)
    depth.fill("0")
    depth.press("Tab")
    expect(depth).to_be_focused()


@pytest.mark.parametrize(
    ("strategy", "setting"), [("budget", "Pairs a question, at most"), ("stratified", "Ranks and rates")]
)
def test_a_strategy_shows_its_settings_when_it_is_chosen(
    new_page, evalset, runs, carol, strategy, setting
) -> None:
    page = new_page(carol)
    page.goto("/e/handbook/pools/new/")
    expect(page.get_by_label(setting)).to_be_hidden()
    page.locator(f"input[name=strategy][value={strategy}]").check()
    expect(page.get_by_label(setting)).to_be_visible()

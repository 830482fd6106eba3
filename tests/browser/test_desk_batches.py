"""The lead's pages of batches, in a real browser."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from judging.models import Batch
from judging.services.claims import claim_next
from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.browser.conftest import SCHEMES
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import batch_of, grade, pair_of, skip


@pytest.fixture
def pool(evalset, carol):
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1", "c2", "c3")
    make_chunks(evalset, "c4", text=False)
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2", "c3"], "q2": ["c1", "c4"]})
    return build_pool(evalset=evalset, name="first", runs=[RunToDepth(run, 5)], by=carol, seed=1)[0]


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    chunks = {"q3": ["c5", "c6", "c7"], "q4": ["c5", "c8"]}
    return batch_of(evalset, chunks, by=carol, assessors=[alice, bob], instructions="Judge the *text*.")


def test_a_batch_is_handed_out_judged_and_watched(new_page, evalset, pool, carol, alice):
    lead = new_page(carol)
    lead.goto(reverse("judging:batch-new", args=[evalset.slug]) + f"?pool={pool.pk}")
    cost = lead.locator("#cost")
    expect(cost).to_contain_text("1 pair of this pool waits for text")
    lead.get_by_role("textbox", name="Name").fill("Week 1")
    lead.get_by_label("Alice (alice)").check()
    expect(cost).to_contain_text("for each of 1")
    lead.get_by_role("button", name="Hand out the batch").click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("Week 1")
    expect(lead.locator("#live")).to_contain_text("of 4 wanted")

    batch = Batch.objects.get()
    claim_next(batch=batch, by=alice)
    grade(batch.pairs.first(), alice, 0)
    expect(lead.locator("#live dl")).to_contain_text(
        re.compile(r"Judgments\s*1\s*of 4 wanted"), timeout=15_000
    )


def test_cancelling_says_what_it_does_before(new_page, batch, carol, alice):
    claim_next(batch=batch, by=alice)
    page = new_page(carol)
    page.goto(batch.get_absolute_url())
    page.get_by_text("Cancel the batch…").click()
    expect(page.get_by_text("cannot be taken up again")).to_be_visible()
    page.get_by_role("button", name="Cancel Week 1").click()
    expect(page.get_by_text("Its judgments count")).to_be_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1280])
def test_the_pages_are_accessible_and_fit(new_page, axe, batch, pool, evalset, carol, alice, scheme, width):
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q3", "c5"), alice, 3)
    skip(pair_of(batch, "q3", "c6"), alice)
    lead, assessor = new_page(carol, scheme=scheme, width=width), new_page(alice, scheme=scheme, width=width)
    addresses = [
        (lead, reverse("judging:batch-list", args=[evalset.slug])),
        (lead, reverse("judging:batch-new", args=[evalset.slug])),
        (lead, batch.get_absolute_url()),
        (assessor, reverse("judging:batch-list", args=[evalset.slug])),
    ]
    for page, address in addresses:
        page.goto(address)
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address

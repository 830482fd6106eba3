"""The lead's room in a real browser: it follows the work without moving under the reader's hands."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from evalsets.models import ChunkRevision
from judging.models import Batch
from judging.services.claims import claim_next
from judging.services.gold import Gold
from tests.browser.conftest import SCHEMES
from tests.judging.batches import batch_of, cannot_judge, grade, pair_of, skip


@pytest.fixture
def batch(evalset, carol, alice, bob, tmp_path) -> Batch:
    """q1 and q2 have 25 pairs each and a gold pair; Alice grades q1 in a second a pair, Bob q2 in twenty."""
    answers = tmp_path / "known.txt"
    answers.write_text("q1 c30 3\nq2 c30 0\n")
    names = [f"c{n}" for n in range(25)]
    batch_of(evalset, {"q0": ["c30"]}, by=carol, assessors=[carol], name="Before")
    batch = batch_of(
        evalset,
        {"q1": names, "q2": names},
        by=carol,
        assessors=[alice, bob],
        gold=Gold(share=0.1, file=answers),
        seed=2,
    )
    ChunkRevision.objects.filter(chunk__evalset=evalset).update(text="A sentence of some length. " * 20)
    for user, seconds in ((alice, 0.2), (bob, 20)):
        for number, task in enumerate(claim_next(batch=batch, by=user, count=26)[:23]):
            grade(task.pair, user, number % 4, seconds=seconds)
        skip(claim_next(batch=batch, by=user)[0].pair, user)
        cannot_judge(claim_next(batch=batch, by=user)[0].pair, user)
    return batch


def test_the_room_follows_the_work_and_stays_where_the_reader_is(new_page, batch, carol, alice):
    page = new_page(carol, width=700)
    page.goto(batch.get_absolute_url())
    live = page.locator("#live")
    expect(live).to_contain_text("Worth a word: fast grading")
    page.get_by_text("The same as a table").click()
    region = page.locator("#assessors")
    link = page.locator("#assessors a").last
    link.focus()
    region.evaluate("box => { box.scrollLeft = 60 }")
    page.evaluate("window.scrollTo(0, 200)")
    before = page.evaluate("[window.scrollY, document.querySelector('#live').dataset.seen = 'old'][0]")

    for task in claim_next(batch=batch, by=alice):
        grade(task.pair, alice, 1)
    page.evaluate("htmx.trigger('#live', 'look')")
    expect(page.locator("#live[data-seen]")).to_have_count(0)

    assert page.evaluate("document.activeElement.id") == link.get_attribute("id")
    assert region.evaluate("box => box.scrollLeft") == 60
    assert page.evaluate("window.scrollY") == before
    assert page.locator("#timeline-fold").get_attribute("open") is not None
    expect(page.locator("figure.chart.drawn canvas")).to_be_visible()
    inked = (
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    )
    assert page.locator("figure.chart canvas").evaluate(inked)


def test_it_asks_nothing_while_nobody_looks_or_somebody_marks_text(new_page, batch, carol):
    page = new_page(carol)
    page.goto(batch.get_absolute_url())
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if request.headers.get("hx-request") else None
    )
    page.evaluate("document.getSelection().selectAllChildren(document.querySelector('#assessors th'))")
    page.evaluate("htmx.trigger('#live', 'look')")
    page.evaluate("document.getSelection().removeAllRanges()")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.evaluate("htmx.trigger('#live', 'look')")
    assert [url for url in asked if "agreement" not in url] == []
    page.evaluate("delete document.hidden")
    with page.expect_request(lambda request: request.url.endswith(batch.get_absolute_url())):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_it_stops_when_the_batch_is_done(new_page, evalset, carol, alice):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    page = new_page(carol)
    page.goto(batch.get_absolute_url())
    expect(page.locator("#live")).to_have_attribute("hx-get", batch.get_absolute_url())
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "c1"), alice, 1)
    page.evaluate("htmx.trigger('#live', 'look')")
    expect(page.locator("#live")).to_contain_text("Done: every pair")
    assert page.locator("#live").get_attribute("hx-get") is None


def test_handing_over_without_javascript(new_page, batch, carol, alice):
    page = new_page(carol, javascript=False)
    page.goto(batch.get_absolute_url())
    expect(page.get_by_role("heading", name="Gold pairs missed")).to_be_visible()
    page.get_by_label("Choose q2").check()
    page.get_by_label("Give the chosen questions to").select_option(label="Alice")
    page.get_by_role("button", name="Reassign…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Give 1 question to Alice?")
    page.get_by_role("button", name="Reassign").click()
    expect(page.get_by_text(re.compile("1 questions went to Alice"))).to_be_visible()
    page.locator("#assessors").get_by_role("link", name="Take out… Bob").click()
    page.get_by_role("button", name="Take out Bob").click()
    expect(page.get_by_text("Bob is out of Week 1")).to_be_visible()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_pages_are_accessible(new_page, axe, batch, carol, alice, scheme):
    page = new_page(carol, scheme=scheme, width=320)
    page.goto(batch.get_absolute_url())
    page.get_by_text("The same as a table").click()
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    question = batch.batch_questions.first()
    place = [batch.evalset.slug, batch.pk]
    page.goto(reverse("judging:batch-reassign", args=place) + f"?questions={question.pk}&to=")
    axe(page)
    page.goto(reverse("judging:batch-remove", args=[*place, batch.assessors.get(user=alice).pk]))
    axe(page)

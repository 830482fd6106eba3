"""Near copies at the desk in a real browser: told at once though they were fetched before the other one was graded."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from judging.models import Batch, Judgment, PairVerdict
from tests.browser.conftest import SCHEMES
from tests.browser.test_desk import _nothing_under_way_at_the_end, all_saved, press, start
from tests.conftest import add_revision, make_chunks
from tests.judging.batches import batch_of

__all__ = ["_nothing_under_way_at_the_end"]

OLD = (
    "Refunds for parcels are paid to the account they came from within 14 days of the claim, without any fee."
)


@pytest.fixture
def batch(evalset, carol, alice) -> Batch:
    texts = {"a": OLD, "b": OLD.replace("14", "30"), "c": "Our shops open at nine.", "d": OLD.upper()}
    for name, text in texts.items():
        add_revision(make_chunks(evalset, name, text=False)[0], text, number=1)
    return batch_of(evalset, {"q1": [*texts]}, by=carol, assessors=[alice])


def near(page: Page):
    return page.locator("[data-near]:visible")


def test_one_key_copies_the_grade_that_was_given_a_moment_ago(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    expect(near(page)).to_have_count(0)
    press(page, "2")
    expect(near(page)).to_contain_text("Nearly a text that you graded 2 Substantial for this question.")
    expect(near(page).locator("del")).to_have_text("14")
    press(page, "y")
    press(page, "0")
    expect(near(page)).to_contain_text("The same words as a text that you graded 2 Substantial")
    press(page, "y")
    all_saved(page)

    assert list(Judgment.objects.order_by("pk").values_list("chunk__external_id", "grade", "source")) == [
        *[("a", 2, "desk"), ("b", 2, "copy"), ("c", 0, "desk"), ("d", 2, "copy")],
    ]


def test_a_regrade_changes_what_is_offered_and_a_skip_takes_it_away(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "2")
    press(page, "u")
    press(page, "3")
    expect(near(page)).to_contain_text("graded 3 Direct")
    press(page, "u")
    press(page, "s")
    press(page, "1")
    expect(near(page)).to_have_count(0)
    press(page, "y")
    all_saved(page)
    assert [judgment.grade for judgment in Judgment.objects.order_by("pk")] == [2, 3, None], (
        "y rests without a hint"
    )


def test_what_two_are_is_said_by_key_while_the_pair_stays(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "2")
    page.keyboard.press("v")
    button = near(page).get_by_role("button", name="This is the newer version")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#live")).to_have_text("Saved: the one on the desk is the newer version.")
    given = PairVerdict.objects.get()
    assert (given.second.external_id, given.verdict, given.assessor.user) == ("b", "second-newer", alice)

    page.keyboard.press("x")
    expect(page.locator("#live")).to_have_text("Saved: different content.")
    press(page, "1")
    all_saved(page)
    assert Judgment.objects.get(chunk__external_id="b").grade == 1


def test_a_verdict_said_offline_waits_in_the_tray(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    press(page, "2")
    all_saved(page)
    page.context.set_offline(True)
    page.keyboard.press("a")
    expect(page.locator("#tray")).to_contain_text("Same content")
    page.context.set_offline(False)
    all_saved(page)
    assert PairVerdict.objects.get().verdict == "same"


def test_without_javascript(new_page, batch, alice):
    page = new_page(alice, javascript=False)
    page.goto(batch.desk_url)
    page.get_by_role("button", name="Start judging").click()
    page.get_by_role("button", name="2 Substantial").click()
    expect(near(page)).to_contain_text("Nearly a text that you graded 2 Substantial")
    near(page).get_by_role("button", name="Same content").click()
    expect(page.get_by_text("Saved: the same content.")).to_be_visible()
    near(page).get_by_role("button", name="Give it the same grade").click()
    expect(page.get_by_text("Saved: 2 Substantial.")).to_be_visible()
    assert Judgment.objects.get(chunk__external_id="b").source == "copy"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1280])
def test_it_is_accessible_and_fits(new_page, axe, batch, alice, scheme, width):
    page = new_page(alice, scheme=scheme, width=width)
    start(page, batch)
    press(page, "2")
    expect(near(page)).to_have_count(1)
    page.keyboard.press("a")
    all_saved(page)
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width

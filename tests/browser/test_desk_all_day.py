"""What eight hours at the desk rest on: the next pair at once, nothing begun is lost, honest time, told once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from evalsets.models import Question
from judging.models import Batch, Judgment
from tests.browser.test_desk import (
    _nothing_under_way_at_the_end,
    all_saved,
    desk,
    grades,
    press,
    start,
    text,
    until,
)
from tests.conftest import add_revision, make_chunks
from tests.judging.batches import batch_of

__all__ = ["_nothing_under_way_at_the_end"]


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    for name in ("c1", "c2", "c3"):
        add_revision(make_chunks(evalset, name, text=False)[0], f"Words of {name}:\nthe 😀 answer.", number=1)
    batch = batch_of(evalset, {"q1": ["c1", "c2", "c3"]}, by=carol, assessors=[alice, bob])
    Question.objects.update(facts=[{"id": "f1", "text": "It is so."}])
    return batch


def evidence(page: Page, words: str) -> None:
    page.evaluate("getSelection().removeAllRanges()")
    page.keyboard.press("e")
    page.keyboard.insert_text(words)
    page.keyboard.press("Enter")


def test_the_next_pair_is_painted_in_the_first_frame_after_the_key_before_the_server_answers(
    new_page, batch, alice
):
    page = new_page(alice)
    start(page, batch)
    held: list = []
    page.route("**/desk/save/", lambda route: held.append(route))
    page.evaluate(
        """() => document.addEventListener("keydown", () => requestAnimationFrame(() => {
          window.firstFrame = [document.querySelector(".desk-text").textContent.slice(0, 12), outbox.list().length];
        }), { capture: true, once: true })"""
    )
    page.keyboard.press("2")
    until(page, "window.firstFrame !== undefined")
    assert page.evaluate("firstFrame") == ["Words of c2:", 1]
    expect(page.locator("#saving")).to_have_text("saving 1…")
    assert grades(alice) == []
    until(page, "outbox.state === 'sending'")
    page.wait_for_timeout(100)
    page.unroute("**/desk/save/")  # what was held goes on
    all_saved(page)
    expect(page.locator("#saving")).to_have_text("")
    assert grades(alice) == [("c1", 2)]


def test_a_save_is_told_once_with_the_progress(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "2")
    all_saved(page)
    expect(page.locator("#saved")).to_have_text("Saved: 2 Substantial. 1 of 3 in this question.")
    expect(page.locator("#live")).to_have_text("Next: What is q1?")


def test_what_was_begun_outlives_a_look_at_another_page(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.keyboard.press("f")
    page.get_by_label("It is so.").check()
    evidence(page, "the 😀 answer")
    page.keyboard.press("n")
    page.keyboard.type("Not sure")
    page.keyboard.press("Escape")
    press(page, "d")
    expect(page.get_by_role("heading", level=1)).to_have_text("Is this the same as one you read?")
    page.keyboard.press("Escape")
    expect(page.get_by_label("It is so.")).to_be_checked()
    expect(page.locator("[data-spans]")).to_contain_text("the 😀 answer")
    expect(page.get_by_label("Note")).to_have_value("Not sure")
    page.wait_for_timeout(400)
    press(page, "3")
    all_saved(page)

    judgment = Judgment.objects.get()
    assert (judgment.facts, judgment.note) == (["f1"], "Not sure")
    assert judgment.spans == [{"start": 13, "end": 25, "text": "the 😀 answer"}]


def test_evidence_by_keyboard_alone(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    evidence(page, "c1: the")
    expect(page.locator("[data-spans]")).to_contain_text("c1:")
    evidence(page, "nowhere")
    expect(page.get_by_role("alert")).to_contain_text("not in the text: “nowhere”")
    page.keyboard.press("Escape")
    press(page, "2")
    assert text(page).startswith("Words of c1"), "a grade waits until the evidence is right"
    page.get_by_label("Evidence", exact=True).fill("")
    page.keyboard.press("Escape")
    press(page, "2")
    all_saved(page)
    assert Judgment.objects.get().spans == [{"start": 9, "end": 16, "text": "c1:\nthe"}]


def test_evidence_without_javascript(new_page, batch, alice):
    page = new_page(alice, javascript=False)
    page.goto(desk(batch))
    page.get_by_role("button", name="Start judging").click()
    page.get_by_label("Evidence", exact=True).fill("answer\nc1: the")
    page.get_by_role("button", name="2 Substantial").click()
    expect(page.get_by_text("Saved: 2 Substantial.")).to_be_visible()
    assert [span["text"] for span in Judgment.objects.get().spans] == ["answer", "c1:\nthe"]

    page.get_by_role("link", name="Back").click()
    page.get_by_label("Unmark").first.check()
    page.get_by_role("button", name="2 Substantial").click()
    expect(page.get_by_text("Words of c2:")).to_be_visible()
    assert [span["text"] for span in Judgment.objects.latest("pk").spans] == ["c1:\nthe"]


def test_shift_with_a_letter_rests_and_a_digit_that_needs_shift_grades(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.keyboard.press("Shift+S")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Shift+L")
    assert text(page).startswith("Words of c1")
    page.evaluate(
        """() => document.body.dispatchEvent(
          new KeyboardEvent("keydown", { key: "2", shiftKey: true, bubbles: true, cancelable: true }))"""
    )
    all_saved(page)
    assert grades(alice) == [("c1", 2)]


def test_time_counts_only_while_the_page_is_seen_and_no_gap_counts(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.evaluate(
        """() => {
          Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
          clock.restart();
        }"""
    )
    page.wait_for_timeout(1500)
    assert page.evaluate("clock.seconds") == 0
    seconds = page.evaluate(
        """() => {
          delete document.visibilityState;
          clock.lastTick -= 50000; // timers were held back, or the machine slept
          clock.sign();
          clock.tick();
          return clock.seconds;
        }"""
    )
    assert seconds <= 2
    page.evaluate("clock.sign()")
    until(page, f"clock.seconds > {seconds}")


def test_a_line_that_hangs_is_no_line(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    page.evaluate(
        """() => { AbortSignal.timeout = () => {
          const control = new AbortController();
          setTimeout(() => control.abort(), 300);
          return control.signal;
        }; }"""
    )
    held: list = []
    page.route("**/desk/save/", lambda route: held.append(route))
    press(page, "1")
    expect(page.locator("#tray")).to_contain_text("The server cannot be reached")
    page.unroute("**/desk/save/")
    page.evaluate("() => { AbortSignal.timeout = () => new AbortController().signal; }")
    all_saved(page)
    assert grades(alice) == [("c1", 1)]


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_on_the_desk_moves_by_itself(new_page, batch, alice, motion):
    page = new_page(alice)
    page.emulate_media(reduced_motion=motion)
    start(page, batch)
    press(page, "2")
    moving = page.evaluate(
        """() => document.getAnimations().filter((animation) => animation.playState === "running").length"""
    )
    assert moving == 0


def test_the_text_does_not_jump_when_the_tray_comes(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    press(page, "1")
    all_saved(page)
    where = "JSON.stringify(document.querySelector('.desk-text').getBoundingClientRect())"
    before = page.evaluate(where)
    page.context.set_offline(True)
    press(page, "2")
    expect(page.locator("#tray")).to_be_visible()
    assert page.evaluate(where) == before
    page.context.set_offline(False)
    all_saved(page)


def test_each_key_of_the_list_has_a_visible_button(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    listed = set(
        page.evaluate("[...document.querySelectorAll('#keys dt kbd')].map((key) => key.textContent)")
    )
    page.evaluate("document.querySelectorAll('.desk-pair').forEach((form) => { form.dataset.judged = ''; })")
    visible = set(
        page.evaluate(
            """() => [...document.querySelectorAll("kbd, .desk-grade .grade")]
              .filter((key) => key.checkVisibility() && !key.closest("#keys")).map((key) => key.textContent)"""
        )
    )
    only_now_and_then = {"y", "a", "v", "b", "x", "i", "m"}  # near copy, narrative, Markdown
    assert listed - only_now_and_then <= visible | {str(number) for number in range(4)}
    assert re.findall(r"[0-3]", "".join(visible))

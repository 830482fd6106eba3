"""The desk in a real browser: by keyboard, by mouse, without JavaScript, offline, signed out, in two tabs."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import Page, expect

from evalsets.models import Question
from judging.models import Batch, Judgment
from judging.services.batches import pause_batch
from judging.services.claims import claim_next
from tests.browser.conftest import PATIENCE, SCHEMES
from tests.conftest import PASSWORD, add_revision, make_chunks
from tests.judging.batches import batch_of, grade, let_leases_end

GUARD = 320  # milliseconds in which a second press counts as the other half of a double one

LONG = (
    "\n\n".join(f"Paragraph {n} says little." for n in range(800))
    + "\n\nThe answer to What is q1 stands here.\n\n" * 2
)


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    chunks = {"q1": ["c1", "c2", "c3"], "q2": ["c1", "c4"]}
    batch = batch_of(evalset, chunks, by=carol, assessors=[alice, bob], instructions="Judge the *text*.")
    Question.objects.filter(external_id="q1").update(
        narrative="Only rules that hold today.", facts=[{"id": "f1", "text": "It is c1."}]
    )
    return batch


@pytest.fixture(autouse=True)
def _nothing_under_way_at_the_end(new_page, request):
    """What a page still asks of the server must not meet the emptying of the database after the test."""
    yield
    for page in request.node.open_pages:
        if not page.is_closed() and page.evaluate("typeof outbox !== 'undefined'"):
            until(page, "!desk.asking && outbox.state !== 'sending'")


def desk(batch: Batch) -> str:
    return reverse("judging:desk", args=[batch.evalset.slug, batch.pk])


def start(page: Page, batch: Batch) -> None:
    page.goto(desk(batch))
    page.get_by_role("button", name=re.compile("judging$")).click()
    expect(page.locator("form.desk-pair")).to_be_visible()
    ready(page)


def until(page: Page, condition: str) -> None:
    """Wait for a condition on the script's own state. (Playwright's own waiting needs eval, which CSP forbids.)"""
    for _ in range(PATIENCE // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def ready(page: Page) -> None:
    """Pairs lie ready, and the guard against double presses is over."""
    until(page, "desk.ready.length > 0 || desk.end !== null || (desk.batch !== null && !desk.asking)")
    page.wait_for_timeout(GUARD)


def press(page: Page, key: str) -> None:
    page.keyboard.press(key)
    page.wait_for_timeout(GUARD)


def all_saved(page: Page) -> None:
    until(page, "outbox.list().length === 0")


def text(page: Page) -> str:
    return page.locator(".desk-text").inner_text()


def grades(user) -> list[tuple[str, int | None]]:
    """What the user has said, in order, as (chunk, grade)."""
    return list(
        Judgment.objects.filter(assessor__user=user).order_by("pk").values_list("chunk__external_id", "grade")
    )


def test_a_whole_batch_by_keyboard(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    for key in "01230":
        press(page, key)
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    all_saved(page)

    assert grades(alice) == [("c1", 0), ("c2", 1), ("c3", 2), ("c1", 3), ("c4", 0)]
    assert all(seconds is not None for seconds in Judgment.objects.values_list("seconds", flat=True))


def test_the_next_pair_is_on_screen_in_the_same_frame_as_the_key(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    changed = page.evaluate(
        """() => {
          const before = document.querySelector(".desk-text").textContent;
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true, cancelable: true }));
          return [before, document.querySelector(".desk-text").textContent];
        }"""
    )
    assert changed == ["Text of c1.", "Text of c2."]


def test_a_whole_batch_by_mouse(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    for name in ["0 Irrelevant", "1 Background", "2 Substantial", "3 Direct"]:
        page.get_by_role("button", name=name).click()
        page.wait_for_timeout(GUARD)
    page.get_by_role("button", name="Cannot judge").click()
    page.get_by_role("button", name="The text is broken").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    all_saved(page)

    assert [grade for _, grade in grades(alice)] == [0, 1, 2, 3, None]


def test_a_whole_batch_without_javascript(new_page, batch, alice):
    page = new_page(alice, javascript=False)
    page.goto(desk(batch))
    page.get_by_role("button", name="Start judging").click()
    page.get_by_label("Note").fill("As it stands")
    page.get_by_role("button", name="2 Substantial").click()
    expect(page.get_by_text("Saved: 2 Substantial.")).to_be_visible()

    page.get_by_role("link", name="Back").click()
    expect(page.get_by_role("button", name="2 Substantial")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Note")).to_have_value("As it stands")
    page.get_by_role("button", name="1 Background").click()

    page.get_by_role("button", name="Later").click()
    expect(page.get_by_text("Text of c3.")).to_be_visible()
    page.get_by_role("button", name="Skip").click()
    page.get_by_role("button", name="It needs an expert").click()
    for _ in range(3):
        page.get_by_role("button", name="0 Irrelevant").click()
    expect(page.get_by_text("You skipped these")).to_be_visible()
    page.get_by_role("link", name=re.compile("Text of c3")).click()
    page.get_by_role("button", name="3 Direct").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    assert grades(alice) == [
        *[("c1", 2), ("c1", 1), ("c3", None), ("c2", 0), ("c1", 0), ("c4", 0), ("c3", 3)],
    ]


def test_a_double_press_and_a_double_click_judge_one_pair(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.keyboard.press("2")
    page.keyboard.press("2")
    page.wait_for_timeout(GUARD)
    page.get_by_role("button", name="3 Direct").dblclick()
    page.wait_for_timeout(GUARD)
    all_saved(page)

    assert grades(alice) == [("c1", 2), ("c2", 3)]


def test_keys_rest_in_fields_with_modifiers_and_in_open_panels(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.keyboard.press("n")
    page.keyboard.type("012 s u")
    page.keyboard.press("Escape")
    for combination in ("Control+1", "Alt+1", "Meta+1"):
        page.keyboard.press(combination)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("1")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    assert grades(alice) == []

    press(page, "3")
    all_saved(page)
    assert Judgment.objects.get().note == "012 s u"


def test_skip_takes_its_reason_by_key_and_the_digits_do_not_grade(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "s")
    press(page, "3")
    all_saved(page)

    judgment = Judgment.objects.get()
    assert (judgment.kind, judgment.reason) == ("skip", "needs-expert")


def test_later_comes_again_at_the_end_of_its_question(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    question = page.locator("h1").inner_text()
    press(page, "l")
    assert text(page) == "Text of c2."
    all_saved(page)
    for key in "11":
        press(page, key)
        all_saved(page)
    # Pairs of the next question lay ready already.
    assert (page.locator("h1").inner_text(), text(page)) == (question, "Text of c1.")
    for _ in range(3):
        press(page, "1")
        all_saved(page)
    assert sorted(chunk for chunk, _ in grades(alice)) == ["c1", "c1", "c2", "c3", "c4"]


def test_back_shows_the_grade_and_it_can_be_changed(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "2")
    press(page, "u")
    assert text(page) == "Text of c1."
    expect(page.get_by_role("button", name="2 Substantial")).to_have_attribute("aria-pressed", "true")
    press(page, "0")
    assert text(page) == "Text of c2."
    press(page, "u")
    expect(page.get_by_role("button", name="0 Irrelevant")).to_have_attribute("aria-pressed", "true")
    press(page, "o")
    assert text(page) == "Text of c2."
    all_saved(page)

    assert grades(alice) == [("c1", 2), ("c1", 0)]


def test_the_browsers_back_shows_the_saved_grade(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    press(page, "2")
    all_saved(page)
    page.keyboard.press("g")
    page.get_by_role("link", name=re.compile("Text of c1")).click()
    expect(page.get_by_role("button", name="2 Substantial")).to_have_attribute("aria-pressed", "true")
    ready(page)
    press(page, "3")
    all_saved(page)
    page.go_back()
    page.go_forward()
    expect(page.get_by_role("button", name="3 Direct")).to_have_attribute("aria-pressed", "true")


def test_grades_chosen_offline_are_kept_shown_and_sent_when_the_line_is_back(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    page.context.set_offline(True)
    press(page, "1")
    press(page, "2")
    tray = page.locator("#tray")
    expect(tray).to_contain_text("The server cannot be reached")
    expect(tray.get_by_role("listitem")).to_have_count(2)
    assert text(page) == "Text of c3.", "work goes on with what lies ready"
    assert grades(alice) == []

    page.context.set_offline(False)
    all_saved(page)
    expect(tray).to_be_hidden()
    assert grades(alice) == [("c1", 1), ("c2", 2)]


def test_leaving_with_unsent_grades_warns(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.context.set_offline(True)
    press(page, "1")
    with page.expect_event("dialog") as warning:
        page.evaluate("window.location.assign('/')")
    assert warning.value.type == "beforeunload"


def test_unsent_grades_outlive_a_reload(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    page.on("dialog", lambda dialog: dialog.accept())
    start(page, batch)
    page.route("**/desk/save/", lambda route: route.abort())
    press(page, "3")
    page.reload()
    expect(page.locator(".desk-text")).to_have_text("Text of c2.")
    assert grades(alice) == []

    page.unroute("**/desk/save/")
    all_saved(page)
    assert grades(alice) == [("c1", 3)]


def test_an_expired_session_keeps_the_grade_and_goes_on_after_signing_in(new_page, batch, alice):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    Session.objects.all().delete()
    press(page, "2")
    expect(page.locator("#tray")).to_contain_text("You have been signed out")
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".desk-text")).to_have_text("Text of c2.")
    all_saved(page)

    assert grades(alice) == [("c1", 2)]


def test_unsent_grades_are_not_sent_in_the_name_of_the_next_person(new_page, batch, alice, bob):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    Session.objects.all().delete()
    press(page, "2")
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_label("Username").fill("bob")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing is left for you here now")
    page.wait_for_timeout(500)

    assert not Judgment.objects.exists()


def test_two_tabs_judge_one_pair_once_each_its_own_grade_last_wins(new_page, batch, alice):
    first = new_page(alice)
    start(first, batch)
    second = first.context.new_page()
    second.goto(desk(batch))
    ready(second)
    assert text(first) == text(second) == "Text of c1."
    press(first, "1")
    all_saved(first)
    press(second, "3")
    all_saved(second)
    press(first, "2")
    all_saved(first)

    assert grades(alice) == [("c1", 1), ("c1", 3), ("c2", 2)]


def test_a_grade_the_server_refuses_is_told_and_kept_until_dropped(new_page, batch, alice, bob, client_for):
    page = new_page(alice, errors_expected=True)
    start(page, batch)
    page.evaluate("document.querySelector('[name=as_user]').value = '999999'")
    press(page, "2")
    tray = page.locator("#tray")
    expect(tray).to_contain_text("Nothing was saved")
    tray.get_by_role("button", name="Drop it").click()
    expect(tray).to_be_hidden()
    press(page, "1")
    all_saved(page)
    assert grades(alice) == [("c2", 1)]


def test_a_half_written_note_outlives_a_reload(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.keyboard.press("n")
    page.keyboard.type("See also")
    page.reload()
    expect(page.get_by_label("Note")).to_have_value("See also")


def test_evidence_and_facts_go_with_the_grade(new_page, batch, evalset, alice):
    add_revision(evalset.chunks.get(external_id="c3"), "unused")
    page = new_page(alice)
    start(page, batch)
    page.evaluate(
        """() => {
          const node = document.querySelector(".desk-text [data-start]");
          const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
          let last; while (walker.nextNode()) last = walker.currentNode;
          const range = document.createRange();
          range.setStart(node, 0); range.setEnd(last, last.length);
          getSelection().removeAllRanges(); getSelection().addRange(range);
        }"""
    )
    page.keyboard.press("e")
    expect(page.locator("[data-spans]")).to_contain_text("Text of c1.")
    page.keyboard.press("f")
    page.get_by_label("It is c1.").check()
    press(page, "3")
    all_saved(page)

    judgment = Judgment.objects.get()
    assert judgment.spans == [{"start": 0, "end": 11, "text": "Text of c1."}]
    assert judgment.facts == ["f1"]


def test_a_pause_reaches_the_desk(new_page, batch, carol, alice):
    page = new_page(alice)
    start(page, batch)
    pause_batch(batch=batch, by=carol)
    press(page, "1")
    all_saved(page)
    press(page, "2")  # the pair on the screen is still taken, and no other follows
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is paused")
    all_saved(page)
    assert grades(alice) == [("c1", 1), ("c2", 2)]


def test_a_late_grade_says_what_became_of_it(new_page, batch, alice, bob):
    page = new_page(alice)
    start(page, batch)
    let_leases_end(batch)
    for task in claim_next(batch=batch, by=bob, count=10):
        grade(task.pair, bob)
    press(page, "2")
    expect(page.get_by_role("alert")).to_contain_text("kept as an extra judgment")
    assert grades(alice) == [("c1", 2)]


def test_progress_is_true(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    expect(page.locator("#question-count")).to_have_text("0 of 3")
    press(page, "2")
    all_saved(page)
    expect(page.locator("#question-count")).to_have_text("1 of 3")
    expect(page.locator("#batch-count")).to_have_text("1 of 5")
    press(page, "u")
    press(page, "3")
    all_saved(page)
    expect(page.locator("#batch-count")).to_have_text("1 of 5")


def test_large_numbers_are_written_as_everywhere(new_page, evalset, carol, alice):
    chunks = [f"c{number}" for number in range(30)]
    batch = batch_of(evalset, {f"q{number}": chunks for number in range(34)}, by=carol, assessors=[alice])
    page = new_page(alice)
    page.goto("/")
    expect(page.get_by_role("main")).to_contain_text("1,020 open pairs")
    start(page, batch)
    expect(page.locator("#batch-count")).to_have_text("0 of 1,020")
    press(page, "2")
    all_saved(page)
    expect(page.locator("#batch-count")).to_have_text("1 of 1,020")


def test_a_long_text_opens_where_it_matters(new_page, evalset, carol, alice):
    chunk = make_chunks(evalset, "c1", text=False)[0]
    add_revision(chunk, LONG, number=1)
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    page = new_page(alice)
    page.goto(desk(batch))
    page.get_by_role("button", name="Start judging").click()
    expect(page.get_by_text("The answer to What is q1 stands here.").first).to_be_visible()
    expect(page.get_by_text("Paragraph 0 says little.")).to_be_hidden()
    page.get_by_text("more characters").first.click()
    expect(page.get_by_text("Paragraph 0 says little.")).to_be_visible()


def test_focus_stays_on_the_button_that_was_pressed(new_page, batch, alice):
    page = new_page(alice)
    start(page, batch)
    page.get_by_role("button", name="1 Background").focus()
    press(page, "Enter")
    assert text(page) == "Text of c2."
    expect(page.get_by_role("button", name="1 Background")).to_be_focused()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1280])
def test_each_state_is_accessible_and_fits(new_page, axe, batch, alice, scheme, width):
    def check() -> None:
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    page = new_page(alice, scheme=scheme, width=width, errors_expected=True)
    page.goto(desk(batch))
    check()
    start(page, batch)
    check()
    for key in "ifgh":
        page.keyboard.press(key)
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    check()
    for key in ("?", "r"):
        page.keyboard.press(key)
        check()
        page.keyboard.press(key)
    for key in "sc":
        page.keyboard.press(key)
        check()
        page.keyboard.press("Escape")
    press(page, "2")
    press(page, "u")
    check()
    press(page, "o")
    page.context.set_offline(True)
    press(page, "1")
    expect(page.locator("#tray")).to_be_visible()
    check()
    page.context.set_offline(False)
    all_saved(page)
    for _ in range(3):
        ready(page)
        press(page, "1")
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    check()

"""Agreement and adjudication in a real browser: by keys alone, by buttons without JavaScript, readable by all."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from judging.models import Judgment
from labels.settling import labels_of_question
from labels.waiting import waiting_pairs
from tests.conftest import make_chunks, make_questions
from tests.labels.builders import judge


@pytest.fixture
def judged(transactional_db, evalset, alice, bob):
    """Fifty pairs of one question that Alice and Bob graded; they differ on the first three by two grades and more."""
    [question] = make_questions(evalset, "q1", facts=[{"id": "f1", "text": "It names the period."}])
    chunks = make_chunks(evalset, *(f"c{number:02}" for number in range(50)))
    for number, chunk in enumerate(chunks):
        grade = number % 4
        text = chunk.revisions.get().text
        marked = [{"start": 0, "end": 7, "text": text[:7]}]
        judge(question, chunk, grade, by=alice, at=number, note="As it says.", spans=marked, facts=["f1"])
        judge(question, chunk, (grade + 2) % 4 if number < 3 else grade, by=bob, at=number, spans=marked)
    return question


def test_pairs_are_decided_by_keys_alone(judged, evalset, carol, new_page, axe):
    page = new_page(carol)
    page.goto("/e/handbook/contested/")
    axe(page)
    page.get_by_role("link", name="Decide them one by one").click()
    page.get_by_text("Why it waits: no label (no grade has a majority); grades differ by 2.").wait_for()
    axe(page)
    page.keyboard.press("l")
    page.get_by_role("link", name="c01", exact=True).wait_for()
    page.keyboard.press("Control+2")
    page.keyboard.press("n")
    page.keyboard.type("Rule 3.")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    page.get_by_text("Decided: q1, c01.").wait_for()
    assert Judgment.objects.get(source="adjudication").note == "Rule 3."
    page.get_by_role("link", name="c02", exact=True).wait_for()
    page.keyboard.press("c")
    page.get_by_text("Decided: q1, c02.").wait_for()
    page.get_by_role("link", name="c00", exact=True).wait_for()

    page.keyboard.press("u")
    page.get_by_text("cannot be judged, by Carol").wait_for()
    page.get_by_text("by Alice").wait_for()
    axe(page)
    page.keyboard.press("t")
    page.get_by_text("Taken back.", exact=True).wait_for()
    expect(page.get_by_text("by Alice")).to_have_count(0)

    decisions = Judgment.objects.filter(source="adjudication").order_by("pk")
    assert [(row.chunk.external_id, row.kind, row.grade) for row in decisions] == [
        ("c01", "grade", 2),
        ("c02", "cannot-judge", None),
        ("c02", "skip", None),
    ]
    assert len(waiting_pairs(evalset)) == 2


def test_a_larger_field_for_the_note_breaks_no_policy(judged, carol, new_page):
    page = new_page(carol)
    page.goto("/e/handbook/contested/next/")
    page.locator("#note").evaluate("note => { note.style.height = '12rem' }")  # as dragging its corner does
    page.keyboard.press("l")
    page.get_by_role("link", name="c01", exact=True).wait_for()


def test_buttons_do_without_javascript(judged, evalset, carol, new_page):
    page = new_page(carol, javascript=False)
    page.goto("/e/handbook/contested/next/")
    page.get_by_label("Why").fill("The rule holds.")
    page.get_by_role("button", name="Substantial").click()
    expect(page.get_by_text("Decided: q1, c00.")).to_be_visible()
    page.get_by_role("link", name="Back to the last").click()
    expect(page.get_by_text("“The rule holds.”")).to_be_visible()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("Taken back.", exact=True)).to_be_visible()
    assert labels_of_question(judged)[Judgment.objects.latest("pk").chunk_id].contested


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_agreement_is_readable_by_all(judged, carol, new_page, axe, scheme):
    wide, phone = new_page(carol, scheme=scheme), new_page(carol, scheme=scheme, width=320)
    wide.goto("/e/handbook/agreement/")
    wide.get_by_text("The judgments can be trusted.").wait_for()
    wide.locator("figure.chart.drawn").wait_for()
    axe(wide)
    for address in ("agreement/", "agreement/pairs/?low=0&high=2", "contested/", "contested/next/"):
        phone.goto(f"/e/handbook/{address}")
        axe(phone)
        assert not phone.evaluate("document.documentElement.scrollWidth > innerWidth"), address


def test_a_cell_of_the_confusion_leads_to_its_pairs(judged, carol, new_page):
    page = new_page(carol)
    page.goto("/e/handbook/agreement/")
    page.get_by_role("link", name="1 of grades 0 and 2").click()
    page.get_by_role("heading", name="Pairs graded 0 by one and 2 by another").wait_for()
    # Alice gave 0 and Bob 2 for c00, the other way round for c02: the list does not say who gave which.
    expect(page.get_by_role("rowheader")).to_have_count(2)
    page.get_by_role("link", name="Read q1, c02").click()
    page.get_by_text("Why it waits").wait_for()

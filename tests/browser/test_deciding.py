"""Copies and mappings decided in a real browser: by keys alone, by buttons without JavaScript, readable by all."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from judging.models import ChunkClass, Judgment, PairVerdict
from labels.models import DuplicateCandidate, TextMapping
from labels.services.duplicates import find_equal
from labels.services.mapping import find_mappings
from labels.services.publishing import publish_release
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import judge


@pytest.fixture
def copies(transactional_db, evalset, alice):
    """Four chunks of one text, all judged, so three candidates; and a fifth that got a new text."""
    [question] = make_questions(evalset, "q1")
    for name in ("a", "b", "c", "d"):
        [chunk] = make_chunks(evalset, name, text=False)
        add_revision(chunk, "Refunds are paid within 14 days.", number=1)
        judge(question, chunk, 2, by=alice)
    [revised] = make_chunks(evalset, "revised")
    judge(question, revised, 1, by=alice)
    publish_release(evalset=evalset, by=None)
    add_revision(revised, "Another text of it.")
    find_equal(evalset=evalset)
    find_mappings(evalset=evalset, by=None)
    return evalset


def test_copies_by_keys_alone(copies, carol, new_page, axe):
    page = new_page(carol)
    page.goto(DuplicateCandidate.objects.first().get_absolute_url())
    axe(page)

    page.keyboard.press("s")
    page.get_by_text("a and b: the same content.").wait_for()
    page.get_by_role("link", name="c", exact=True).wait_for()
    page.keyboard.press("l")
    page.get_by_role("link", name="d", exact=True).wait_for()
    page.keyboard.press("2")
    page.get_by_text("a and d: the second replaces the first.").wait_for()
    page.keyboard.press("d")
    page.get_by_text("a and c: different content.").wait_for()
    page.get_by_role("heading", name="Copies of chunks").wait_for()

    assert list(PairVerdict.objects.values_list("second__external_id", "verdict")) == [
        ("b", "same"),
        ("d", "second-newer"),
        ("c", "different"),
    ]
    assert ChunkClass.objects.get().members.count() == 2


def test_the_last_one_is_gone_back_to_and_taken_back(copies, carol, new_page):
    page = new_page(carol)
    page.goto(DuplicateCandidate.objects.first().get_absolute_url())
    page.keyboard.press("s")
    page.get_by_text("a and b: the same content.").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Decided: the same content").wait_for()
    page.keyboard.press("t")
    page.get_by_text("Taken back.").wait_for()
    assert not ChunkClass.objects.exists()


def test_back_in_the_browser_shows_what_stands(copies, carol, new_page):
    page = new_page(carol)
    page.goto(DuplicateCandidate.objects.first().get_absolute_url())
    page.get_by_role("button", name="carol").click()  # Bootstrap places the menu by a style attribute
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Same content").click()
    page.get_by_text("a and b: the same content.").wait_for()
    page.go_back()
    page.get_by_text("Decided: the same content").wait_for()


def test_a_key_with_a_modifier_decides_nothing(copies, carol, new_page):
    page = new_page(carol)
    page.goto(DuplicateCandidate.objects.first().get_absolute_url())
    page.keyboard.press("Control+s")
    page.keyboard.press("Alt+d")
    page.get_by_text("3 to decide").wait_for()
    assert not PairVerdict.objects.exists()


def test_buttons_do_without_javascript(copies, carol, new_page):
    page = new_page(carol, javascript=False)
    page.goto(DuplicateCandidate.objects.first().get_absolute_url())
    page.get_by_role("button", name="Same content").click()
    expect(page.get_by_text("a and b: the same content.")).to_be_visible()
    page.goto(TextMapping.objects.get().get_absolute_url())
    page.get_by_role("button", name="Carry them over").click()
    expect(page.get_by_text("Carried 1 labels.")).to_be_visible()
    assert Judgment.objects.get(source="carried").grade == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_readable_by_all(copies, carol, new_page, axe, scheme):
    wide, phone = new_page(carol, scheme=scheme), new_page(carol, scheme=scheme, width=320)
    mapping = TextMapping.objects.get().get_absolute_url()
    for address in ("mappings/", "duplicates/", "releases/", "releases/1/", "releases/new/", "contested/"):
        wide.goto(f"/e/handbook/{address}")
        axe(wide)
    for address in (mapping, DuplicateCandidate.objects.first().get_absolute_url(), "/e/handbook/mappings/"):
        wide.goto(address)
        axe(wide)
        phone.goto(address)
        assert not phone.evaluate("document.documentElement.scrollWidth > innerWidth"), address

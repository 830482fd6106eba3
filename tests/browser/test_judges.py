"""Outside judges in a real browser: from the file to the page that judges the judge, and into a release by a box."""

from __future__ import annotations

import pytest

from labels.services.publishing import publish_release
from tests.browser.conftest import SCHEMES
from tests.conftest import make_chunks, make_questions
from tests.labels.builders import judge


@pytest.fixture
def judged(transactional_db, evalset, alice):
    """Forty pairs by people; gpt grades them twice and two more, a name of 200 letters once."""
    [question] = make_questions(evalset, "q1", slices=["refunds"])
    chunks = make_chunks(evalset, *(f"c{n}" for n in range(42)))
    for n, chunk in enumerate(chunks):
        if n < 40:
            judge(question, chunk, n % 4, by=alice)
            judge(question, chunk, 3 - n % 4, by="model:" + "long" * 50)
        for repetition in (1, 2):
            grade = min(3, (n + (n % 5 == 0) * repetition) % 4 + 1)
            judge(question, chunk, grade, by="model:gpt", details={"repetition": repetition})
    publish_release(evalset=evalset, by=None)
    return evalset


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1280])
def test_the_pages_are_readable_by_all(judged, carol, new_page, axe, scheme, width):
    page = new_page(carol, scheme=scheme, width=width)
    for address in ("judges/", f"judges/{judged.assessors.get(name='gpt').pk}/", "releases/new/"):
        page.goto(f"/e/handbook/{address}")
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_a_judge_without_javascript(judged, carol, new_page):
    page = new_page(carol, javascript=False)
    page.goto("/e/handbook/judges/")
    page.get_by_role("link", name="gpt").click()
    page.get_by_role("heading", name="Which grades it confuses").wait_for()
    page.get_by_role("cell", name="refunds").or_(page.get_by_role("rowheader", name="refunds")).wait_for()
    page.get_by_text("Run again, it changes its mind on").wait_for()


def test_letting_one_into_a_release_is_a_box_with_a_number(judged, carol, new_page, axe):
    page = new_page(carol)
    page.goto("/e/handbook/releases/new/")
    page.get_by_label("gpt would add 2 labels").check()
    page.get_by_role("link", name="how far they agree with people").wait_for()
    publish_release(evalset=judged, by=carol, judges=["gpt"])
    for address in ("releases/2/", "releases/", "releases/difference/?from=1&to=2"):
        page.goto(f"/e/handbook/{address}")
        axe(page)
    page.locator("#effects").wait_for()
    assert page.title() == "Difference of two releases · Fairpool"  # not that of the page fetched into it
    page.get_by_text("2 of the 42 labels of release 2 came from a model").wait_for()

"""The way in, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SCHEMES, WIDTHS
from tests.conftest import PASSWORD


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_sign_in_page_is_accessible_and_fits(new_page, axe, scheme, width):
    page = new_page(scheme=scheme, width=width)
    page.goto("/sign-in/")
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_signs_in_and_comes_to_my_work(page, carol, evalset):
    page.goto("/")
    page.get_by_label("Username").fill("carol")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My work")
    expect(page.get_by_role("link", name=evalset.name)).to_be_visible()


def test_wrong_password_is_told(new_page, carol):
    page = new_page()
    page.goto("/sign-in/")
    page.get_by_label("Username").fill("carol")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()


def test_works_without_javascript(new_page, carol):
    page = new_page(javascript=False)
    page.goto("/sign-in/")
    page.get_by_label("Username").fill("carol")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My work")


def test_behaves_the_same_on_gunicorn(new_page, web, carol):
    page = new_page(carol, url=web.url)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("My work")

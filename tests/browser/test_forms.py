"""What every form does when something is wrong in it, in a real browser."""

from __future__ import annotations

import re

from django.urls import reverse
from playwright.sync_api import expect

from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.conftest import PASSWORD, make_questions, make_run


def test_the_first_wrong_field_has_the_focus_and_says_why(new_page, evalset, carol) -> None:
    page = new_page(carol, errors_expected=True)
    page.goto(reverse("evalsets:member-list", args=[evalset.slug]))
    page.get_by_label("Username").fill("zoe")
    page.get_by_role("button", name="Add").click()
    username = page.get_by_label("Username")
    expect(username).to_be_focused()
    expect(username).to_have_accessible_description(re.compile("Give a first password to make that user"))


def test_a_field_that_is_right_gives_the_focus_away(new_page, carol) -> None:
    page = new_page(carol, errors_expected=True)
    page.goto(reverse("password-change"))
    page.get_by_label("Old password").fill(PASSWORD)
    page.get_by_label("New password", exact=True).fill("correct horse battery")
    page.get_by_label("New password confirmation").fill("correct horse cattery")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_label("New password confirmation")).to_be_focused()


def test_what_is_wrong_with_the_form_as_a_whole_has_it(new_page, evalset, carol, alice, axe) -> None:
    make_questions(evalset, "q1")
    run = make_run(evalset, "bm25", {"q1": ["c1"]})
    pool, _ = build_pool(evalset=evalset, name="first", runs=[RunToDepth(run, 5)], by=carol)
    page = new_page(carol, errors_expected=True)
    page.goto(f"{reverse('judging:batch-new', args=[evalset.slug])}?pool={pool.pk}")
    page.get_by_role("textbox", name="Name").fill("bm25")
    page.get_by_role("group", name="Assessors").get_by_role("checkbox").first.check()
    page.get_by_role("button", name="Hand out the batch").click()
    summary = page.get_by_role("alert").filter(has_text="tells them of 'bm25'")
    expect(summary).to_be_focused()
    axe(page)


def test_a_sign_in_that_fails_says_so_before_the_fields(new_page, alice) -> None:
    page = new_page(None, errors_expected=True)
    page.goto(reverse("sign-in"))
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").filter(has_text="password")).to_be_focused()


def test_of_a_list_of_choices_the_first_has_it(new_page, evalset, carol) -> None:
    make_questions(evalset, "q1")
    run = make_run(evalset, "bm25", {"q1": ["c1"]})
    pool, _ = build_pool(evalset=evalset, name="first", runs=[RunToDepth(run, 5)], by=carol)
    page = new_page(carol, errors_expected=True)
    page.goto(f"{reverse('judging:batch-new', args=[evalset.slug])}?pool={pool.pk}")
    page.get_by_role("textbox", name="Name").fill("Week 1")
    page.get_by_role("button", name="Hand out the batch").click()
    expect(page.get_by_role("group", name="Assessors").get_by_role("checkbox").first).to_be_focused()

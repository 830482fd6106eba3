"""Scores and comparisons in a real browser: the verdict, the pictures, the questions to read."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import SCHEMES
from tests.conftest import make_run
from tests.scoring.test_measures import LABELS, RUN_A, RUN_B
from tests.scoring.test_scoring_services import release_labels


@pytest.fixture
def scored(evalset, carol):
    """The worked example, a run outside the pool, and a system with stages."""
    release = release_labels(evalset, LABELS)
    make_run(evalset, "A", RUN_A)
    make_run(evalset, "B", RUN_B)
    make_run(evalset, "outsider", {question: ["new", *chunks] for question, chunks in RUN_A.items()})
    make_run(evalset, "staged-1", RUN_A, system="staged", stage="candidates")
    make_run(
        evalset, "staged-2", {q: chunks[:1] for q, chunks in RUN_A.items()}, system="staged", stage="context"
    )
    return release


def address(name: str) -> str:
    return reverse(f"scoring:{name}", args=["handbook"])


def test_from_runs_to_a_sentence(scored, new_page, carol) -> None:
    page = new_page(carol)
    page.goto(address("score-list"))
    page.get_by_role("button", name="Score them").click()
    row = page.get_by_role("row", name=re.compile("^B "))
    expect(row).to_contain_text("1.0000")
    page.get_by_role("navigation", name="Scores and comparisons").get_by_role(
        "link", name="Comparisons"
    ).click()
    page.get_by_label("Baseline (A)").select_option("A")
    page.get_by_label("Compared with it (B)").select_option("B")
    page.get_by_label("Measures").fill("nDCG@3")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="The difference may be read.")).to_be_visible()
    expect(page.get_by_label("Ready to paste")).to_have_value(
        re.compile("nDCG@3 improved on 2 of 3 questions")
    )
    page.get_by_role("link", name="limits").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What is limits?")
    expect(page.get_by_text("rank 3 in B")).to_be_visible()


def test_a_run_outside_the_pool_leads_to_the_pool_that_mends_it(scored, new_page, carol) -> None:
    page = new_page(carol)
    page.goto(address("comparison-list"))
    page.get_by_label("Baseline (A)").select_option("A")
    page.get_by_label("Compared with it (B)").select_option("outsider")
    page.get_by_label("Measures").fill("nDCG@3")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="This is not a difference in quality.")).to_be_visible()
    page.get_by_role("link", name="Make the pool that mends it").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("pool")


PICTURES = {"unjudged": "unjudged-table", "reusability": "reusability-table", "stages": "funnel-table"}


@pytest.fixture
def looked_at(scored, new_page, carol):
    """Every page of scoring has something to show."""
    page = new_page(carol)
    page.goto(address("score-list"))
    page.get_by_role("button", name="Score them").click()
    page.goto(address("reusability"))
    page.get_by_label("staged-2").uncheck()
    page.get_by_label("staged-1").uncheck()
    page.get_by_role("button", name="Leave each out").click()
    page.goto(address("stages"))
    page.get_by_label("Candidates").select_option("staged-1")
    page.get_by_label("Context").select_option("staged-2")
    page.get_by_role("button", name="Trace").click()
    page.goto(address("sweep"))
    page.get_by_role("button", name="Compare all with the baseline").click()
    return page


def test_each_picture_is_drawn_from_the_table_below_it(looked_at) -> None:
    for name, table in PICTURES.items():
        looked_at.goto(address(name))
        expect(looked_at.locator("figure.chart.drawn canvas")).to_be_visible()
        expect(looked_at.locator(f"#{table}")).to_be_visible()


def test_without_javascript_the_tables_say_it_all(looked_at, new_page, carol) -> None:
    plain = new_page(carol, javascript=False)
    for name, table in PICTURES.items():
        plain.goto(address(name))
        expect(plain.locator("figure.chart canvas")).to_be_hidden()
        expect(plain.locator(f"#{table}")).to_be_visible()


def test_every_page_is_accessible_and_fits(looked_at, new_page, carol, axe) -> None:
    pages = [address(name) for name in ("score-list", "comparison-list", "unjudged", "reusability", "stages")]
    looked_at.goto(address("comparison-list"))
    comparison = looked_at.locator("tbody th a").first.get_attribute("href")
    looked_at.goto(comparison)
    question = looked_at.locator("th.id a")
    links = [question.first.get_attribute("href")] if question.count() else []
    looked_at.goto(address("score-list"))
    pages += [comparison, *links, looked_at.locator("tbody th a").first.get_attribute("href")]
    # In one test, since what has to be computed first takes longer than looking at it in two ways.
    for scheme, width in zip(SCHEMES, (320, 1280), strict=True):
        page = new_page(carol, scheme=scheme, width=width)
        for one in pages:
            page.goto(one)
            axe(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, one

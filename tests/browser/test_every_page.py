"""Every page of the demo that a lead or an assessor can reach: readable by all, in both schemes, on a phone too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve, reverse
from playwright.sync_api import Page

from config.demo_evalset import make_demo
from evalsets.models import EvalSet, User
from evalsets.services.jobs import start_job
from tests.browser.conftest import COLOURS

# Addresses that answer with a file, not with a page.
FILES = {
    "labels:run-file",
    "labels:release-file",
    "judging:pool-remainder",
    "scoring:score-download",
    "api:openapi-json",
}
# How many addresses of one name are looked at: the second often shows another state.
OF_EACH_NAME = 2
PHONE, DESKTOP = {"width": 320, "height": 800}, {"width": 1280, "height": 800}


@pytest.fixture
def demo(transactional_db) -> EvalSet:
    evalset = make_demo()
    carol = User.objects.get(username="carol")
    start_job(evalset=evalset, task="nobody.does.this", title="A job that waits", by=carol)
    return evalset


def links(page: Page) -> list[str]:
    hrefs = page.locator("a[href]").evaluate_all("all => all.map(a => a.href)")
    return [urlsplit(href)._replace(fragment="").geturl() for href in hrefs]


def name_of(address: str) -> str | None:
    try:
        return resolve(urlsplit(address).path).view_name
    except Resolver404:
        return None


def walk(page: Page, *starts: str) -> Iterator[tuple[str, str]]:
    """Opens each address that links lead to from `starts`, few of a name; gives name and address of the one open."""
    seen: dict[str, set[str]] = defaultdict(set)
    waiting = list(starts)
    while waiting:
        address = waiting.pop(0)
        name = name_of(address)
        if name is None or name in FILES or len(seen[name]) >= OF_EACH_NAME or address in seen[name]:
            continue
        seen[name].add(address)
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, f"{address} answers {response.status}"
        waiting += [link for link in links(page) if link.startswith(page.evaluate("location.origin"))]
        yield name, address


@pytest.mark.parametrize(
    ("username", "expected"),
    [
        (
            "carol",
            {
                "my-work",
                "evalset-home",
                "evalsets:job",
                "evalsets:audit",
                "judging:import",
                "judging:pool",
                "judging:pool-new",
                "judging:batch",
                "judging:batch-new",
                "labels:question",
                "labels:chunk",
                "labels:run",
                "labels:ranking",
                "labels:release",
                "labels:release-new",
                "labels:contested",
                "labels:duplicate-list",
                "scoring:score-list",
                "scoring:comparison-list",
            },
        ),
        ("alice", {"my-work", "evalset-home", "judging:batch-list", "labels:release"}),
    ],
)
def test_every_page(username, expected, demo, new_page, axe) -> None:
    user = User.objects.get(username=username)
    page = new_page(user)
    seen: set[str] = set()
    too_wide = []
    page.set_viewport_size(PHONE)
    for name, address in walk(page, reverse("my-work"), demo.get_absolute_url()):
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(address)
        page.set_viewport_size(DESKTOP)
        axe(page)
        if name not in seen:
            page.emulate_media(color_scheme="dark")
            axe(page, only=COLOURS)
            page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        seen.add(name)
    assert too_wide == [], "these scroll sideways on a phone"
    assert expected <= seen

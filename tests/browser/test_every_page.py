"""Every page of the demo that a lead or an assessor can reach: readable by all, in both schemes, on a phone too."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve, reverse
from playwright.sync_api import Page

from config.demo_evalset import make_demo
from evalsets.models import EvalSet, User
from evalsets.services.jobs import start_job

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


def walk(page: Page, *starts: str) -> dict[str, list[str]]:
    """Addresses by name that can be reached from `starts` by links, each of them opened."""
    seen: dict[str, list[str]] = {}
    waiting = list(starts)
    while waiting:
        address = waiting.pop(0)
        name = name_of(address)
        if name is None or name in FILES or len(seen.get(name, [])) >= OF_EACH_NAME:
            continue
        if address in seen.setdefault(name, []):
            continue
        seen[name].append(address)
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, f"{address} answers {response.status}"
        waiting += [link for link in links(page) if link.startswith(page.evaluate("location.origin"))]
    return seen


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
    light = new_page(user, scheme="light", width=1280)
    pages = walk(light, reverse("my-work"), demo.get_absolute_url())
    assert expected <= pages.keys()
    dark, phone = new_page(user, scheme="dark", width=1280), new_page(user, width=320)
    too_wide = []
    for first, *others in pages.values():
        for address in (first, *others):
            light.goto(address)
            axe(light)
        dark.goto(first)
        axe(dark)
        phone.goto(first)
        if phone.evaluate("document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(first)
    assert too_wide == [], "these scroll sideways on a phone"

"""Real Chromium on real pages.

`page` is a fresh window on the test's own server (`live_server`); `new_page(user, …)` opens more of them, signed in, in
any width and colour scheme. What a page writes to the console as an error, a broken content security policy included,
fails the test. A failing test leaves its screenshots in test-results/.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, Protocol

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings as django_settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from evalsets.models import User
from tests.browser import chromium

# Playwright keeps an event loop in this thread, which makes Django take it for an asynchronous one.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

expect.set_options(timeout=15_000)

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (320, 768, 1280, 1600)
PATIENCE = 30_000  # milliseconds: a busy machine is not a broken page
WCAG_2_2_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules of these that look at colours


class NewPage(Protocol):
    def __call__(
        self,
        user: User | None = None,
        *,
        scheme: Scheme = "light",
        width: int = 1280,
        height: int = 800,
        javascript: bool = True,
        errors_expected: bool = False,
        url: str | None = None,
        **context: Any,
    ) -> Page: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        yield browser
        browser.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for number, page in enumerate(getattr(item, "open_pages", []), start=1):
            if not page.is_closed():
                name = re.sub(r"[^\w.-]+", "-", item.nodeid)[-120:]
                page.screenshot(path=f"test-results/{name}-{number}.png", full_page=True)
    return report


@pytest.fixture
def new_page(browser: Browser, live_server: LiveServer, request: pytest.FixtureRequest) -> Iterator[NewPage]:
    """Opens a window of its own (own cookies), signed in as `user`, on `live_server` or on the server at `url`."""
    contexts = []
    errors: list[str] = []
    request.node.open_pages = []

    def new_page(
        user: User | None = None,
        *,
        scheme: Scheme = "light",
        width: int = 1280,
        height: int = 800,
        javascript: bool = True,
        errors_expected: bool = False,
        url: str | None = None,
        **context: Any,
    ) -> Page:
        address = url or live_server.url
        window = browser.new_context(
            base_url=address,
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            java_script_enabled=javascript,
            reduced_motion="reduce",
            **context,
        )
        window.set_default_timeout(PATIENCE)
        contexts.append(window)
        if user is not None:
            client = Client()
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
            cookie = client.cookies[django_settings.SESSION_COOKIE_NAME]
            window.add_cookies([{"name": cookie.key, "value": cookie.value, "url": address}])
        page = window.new_page()
        request.node.open_pages.append(page)
        if not errors_expected:
            page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
            page.on(
                "console",
                lambda line: errors.append(f"{page.url}: {line.text}") if line.type == "error" else None,
            )
        return page

    yield new_page
    for window in contexts:
        window.close()
    assert not errors, "the browser's console has errors:\n" + "\n".join(errors)


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A stranger's window: light, 1280 × 800."""
    return new_page()


@pytest.fixture
def axe() -> Callable[..., None]:
    """Fails on anything in the page that breaks WCAG 2.2 AA, and says what and where.

    With `only` on what breaks these rules: for a page seen once already, in other colours.
    """

    def check(page: Page, only: list[str] | None = None) -> None:
        if only:
            rules: dict[str, Any] = {"runOnly": {"type": "rule", "values": only}}
        else:
            rules = {
                "runOnly": {"type": "tag", "values": WCAG_2_2_AA},
                "rules": {"target-size": {"enabled": True}},
            }
        violations = Axe().run(page, options={**rules, "resultTypes": ["violations"]}).response["violations"]
        lines = [f"{page.url} breaks WCAG 2.2 AA:"]
        for violation in violations:
            lines.append(f"- {violation['id']} ({violation['impact']}): {violation['help']}")
            for node in violation["nodes"][:5]:
                lines.append(f"    {node['target']}: {node['html'][:200]}")
                lines.append(f"      {node['failureSummary'][:400]}")
        assert not violations, "\n".join(lines)

    return check

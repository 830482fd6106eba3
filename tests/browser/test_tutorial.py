"""The tutorial, followed to the letter on real parts, so that it cannot go stale.

Every word that the tutorial prints in *italics* is something to press. The test presses them all, finds each by the
very words of the tutorial, and fails where a step says a word that it does not press, or presses one that none says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from config.demo_evalset import make_demo
from evalsets.models import EvalSet, User
from judging.models import Judgment
from tests.browser.test_whole_way import sign_in

TUTORIAL = (settings.BASE_DIR / "docs" / "tutorial.md").read_text(encoding="utf-8")
SLOW = 30_000  # milliseconds; a worker is at it


class Step:
    """One numbered step: `press` finds a link or a button by a word that the step prints in italics."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", text)
        self.pressed: list[str] = []

    def press(self, page: Page, word: str) -> None:
        assert word in self.words, f"the tutorial does not say {word!r} here: {self.text}"
        self.pressed.append(word)
        named = re.compile(rf"^\s*{re.escape(word)}")
        control = page.get_by_role("link", name=named).or_(page.get_by_role("button", name=named))
        visible(control).click(timeout=SLOW)


def visible(control: Locator) -> Locator:
    return control.locator("visible=true").first


def unjudged(page: Page, system: str) -> float:
    """What the home page says of the system's latest run, in per cent."""
    said = page.get_by_role("row", name=re.compile(rf"^{system} ")).inner_text()
    share = re.search(r"([\d.]+) %", said)
    assert share, said
    return float(share[1])


@contextmanager
def step(number: int) -> Iterator[Step]:
    found = re.search(rf"^{number}\. (.+?)(?=^\d+\. |^#|\Z)", TUTORIAL, re.MULTILINE | re.DOTALL)
    assert found, f"the tutorial has no step {number}"
    told = Step(" ".join(found[1].split()))
    yield told
    assert sorted(told.pressed) == sorted(told.words), told.text


@pytest.fixture
def demo(transactional_db) -> EvalSet:
    return make_demo()


def test_the_tutorial_can_be_followed(demo, web, worker, new_page) -> None:
    lead, assessor = new_page(url=web.url), new_page(url=web.url)
    people = {user.username: user for user in User.objects.all()}
    heading = lead.get_by_role("heading", level=1)

    with step(1) as told:
        sign_in(lead, people["carol"])
        told.press(lead, "Quillmere support handbook")
    with step(2):
        assert unjudged(lead, "bm25") < 1 < 40 < unjudged(lead, "hybrid")
    with step(3) as told:
        told.press(lead, "Import")
        told.press(lead, "Run")
        assert "demo/runs/lsa.trec" in told.text
        lead.get_by_label("File", exact=True).set_input_files(settings.BASE_DIR / "demo/runs/lsa.trec")
        lead.get_by_label(re.compile("^System")).fill("mine")
        told.press(lead, "Check the file")
        told.press(lead, "Write")
        expect(heading).to_contain_text("Imported", timeout=SLOW)
    with step(4) as told:
        told.press(lead, "Pools")
        told.press(lead, "New pool")
        expect(lead.get_by_text("From the union to the remainder")).to_be_visible(timeout=SLOW)
        told.press(lead, "Build")
        expect(lead.get_by_role("link", name="Hand out a batch")).to_be_visible(timeout=SLOW)
    with step(5) as told:
        told.press(lead, "Hand out a batch")
        lead.get_by_label(re.compile("^Name")).fill("My first batch")
        lead.get_by_label("alice", exact=False).check()
        told.press(lead, "Hand out the batch")
        expect(heading).to_contain_text("My first batch")
    with step(6) as told:
        sign_in(assessor, people["alice"])
        told.press(assessor, "Go on judging")
        before = Judgment.objects.count()
        for key in ("0", "2"):
            shown = assessor.locator("form.desk-pair").get_attribute("data-pair")
            assessor.wait_for_timeout(350)  # the desk takes two presses at once for a double one
            assessor.keyboard.press(key)
            expect(assessor.locator(f'form.desk-pair[data-pair="{shown}"]')).to_have_count(0)
        expect(assessor.get_by_text("Saved: 2 Substantial")).to_be_attached(timeout=SLOW)
        assert Judgment.objects.count() == before + 2
    with step(7) as told:
        told.press(lead, "Releases")
        told.press(lead, "Publish")
        told.press(lead, "Publish release 2")
        expect(heading).to_contain_text("Release 2", timeout=SLOW)
        lines = lead.request.get("/e/demo/releases/2/files/qrels/").text().splitlines()
        assert len(lines) > 800

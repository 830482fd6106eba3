"""The whole way once, on real parts: Chromium, gunicorn, a Celery worker, Valkey, Postgres.

A lead brings everything in, sees what judging costs, builds a pool and hands it out; an assessor grades by keyboard;
the lead publishes, and what is downloaded is what was entered, the zeros too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from playwright.sync_api import Page, expect

from evalsets.models import User
from judging.models import Judgment
from tests.conftest import PASSWORD
from tests.judging.batches import batch_of

QUESTIONS = "".join(
    json.dumps({"id": qid, "text": text}) + "\n"
    for qid, text in [("q1", "How long do refunds take?"), ("q2", "What does error E-17 mean?")]
)
CHUNKS = "".join(
    json.dumps({"id": cid, "text": text}) + "\n"
    for cid, text in [
        ("refunds#1", "Refunds take 14 days."),
        ("refunds#2", "A refund goes to the card that paid."),
        ("errors#17", "E-17: the door is open."),
        ("errors#18", "E-18: the filter is full."),
    ]
)
BM25 = "q1 Q0 refunds#1 1 9.5 x\nq1 Q0 refunds#2 2 9.0 x\nq2 Q0 errors#17 1 7 x\n"
DENSE = "q1 Q0 refunds#2 1 0.9 x\nq1 Q0 refunds#1 2 0.8 x\nq2 Q0 errors#18 1 0.7 x\nq2 Q0 errors#17 2 0.6 x\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "questions.jsonl": QUESTIONS,
        "chunks.jsonl": CHUNKS,
        "bm25.trec": BM25,
        "dense.trec": DENSE,
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {name: tmp_path / name for name in contents}


def sign_in(page: Page, user: User) -> None:
    """Sign in with a password as the product hashes it; the tests' own hasher is quick and unknown to gunicorn."""
    hasher = Argon2PasswordHasher()
    user.password = hasher.encode(PASSWORD, hasher.salt())
    user.save()
    page.goto("/sign-in/")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My work")


def bring_in(page: Page, kind: str, path: Path, system: str = "") -> None:
    page.goto(f"/e/handbook/import/?kind={kind}")
    page.get_by_label("File", exact=True).set_input_files(path)
    if system:
        page.get_by_label(re.compile("^System")).fill(system)
    page.get_by_role("button", name="Check the file").click()
    # The worker checks; whoever watches is brought to the report.
    page.get_by_role("button", name=re.compile("^Write")).click(timeout=30_000)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Imported", timeout=30_000)


def test_from_files_to_qrels(evalset, carol, alice, files, web, worker, new_page, axe) -> None:
    lead = new_page(url=web.url)
    sign_in(lead, carol)
    bring_in(lead, "questions", files["questions.jsonl"])
    bring_in(lead, "chunks", files["chunks.jsonl"])
    bring_in(lead, "run", files["bm25.trec"], "bm25")
    bring_in(lead, "run", files["dense.trec"], "dense")

    lead.goto("/e/handbook/pools/new/")
    expect(lead.get_by_text("of the 4 pairs of the pool")).to_be_visible()
    axe(lead)
    lead.get_by_role("button", name=re.compile("^Build")).click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("bm25", timeout=30_000)
    lead.get_by_role("link", name="Hand out a batch").click()
    lead.get_by_label(re.compile("^Name")).fill("First look")
    lead.get_by_label("alice", exact=False).check()
    lead.get_by_role("button", name="Hand out the batch").click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("First look")

    assessor = new_page(url=web.url)
    sign_in(assessor, alice)
    assessor.get_by_role("button", name="Go on judging").click()
    entered = grade_all(assessor)
    assert sorted(entered.values()) == [0, 1, 2, 3]

    lead.goto("/e/handbook/releases/new/")
    lead.get_by_role("button", name=re.compile("^Publish")).click()
    expect(lead.get_by_role("heading", level=1)).to_contain_text("Release 1", timeout=30_000)
    response = lead.request.get("/e/handbook/releases/1/files/qrels/")
    lines = [line.split(" ") for line in response.text().splitlines()]
    assert {line[2]: int(line[3]) for line in lines} == entered
    assert lines == sorted(lines, key=lambda line: (line[0], line[2]))
    records = json.loads(lead.request.get("/e/handbook/releases/1/files/label-json/").text())
    assert {chunk for record in records for chunk in record["judged_ids"]} == set(entered)
    assert {item["system"] for item in records[0]["pool"]} == {"bm25", "dense"}


def grade_all(page: Page) -> dict[str, int]:
    """Grade what is on the desk until it is empty: 3, 0, 2, 1, 3; returns chunk ID -> grade."""
    by_text = {json.loads(line)["text"]: json.loads(line)["id"] for line in CHUNKS.splitlines()}
    entered = {}
    for key in ("3", "0", "2", "1"):
        text = page.locator(".desk-text").inner_text().strip()
        entered[by_text[text]] = int(key)
        page.wait_for_timeout(350)  # the desk takes two presses at once for a double one
        page.keyboard.press(key)
        expect(page.locator("form.desk-pair .desk-text", has_text=text)).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text("This batch is done")
    return entered


@pytest.mark.kill
def test_a_grade_survives_the_death_of_the_web_server(evalset, carol, alice, files, web, new_page) -> None:
    batch = batch_of(evalset, {"q1": ["c1", "c2", "c3"]}, by=carol, assessors=[alice])
    page = new_page(alice, url=web.url, errors_expected=True)
    page.goto(f"/e/handbook/batches/{batch.pk}/desk/")
    page.get_by_role("button", name=re.compile("judging$")).click()
    expect(page.locator("form.desk-pair")).to_be_visible()
    page.wait_for_timeout(1500)
    web.kill()
    page.keyboard.press("2")
    expect(page.locator("#tray")).to_be_visible()
    assert not Judgment.objects.exists()
    web.start()
    expect(page.locator("#tray")).to_be_hidden(timeout=60_000)
    assert [judgment.grade for judgment in Judgment.objects.all()] == [2]

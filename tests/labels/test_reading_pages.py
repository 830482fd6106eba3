"""Questions, chunks, systems, runs and rankings as leads and viewers read them."""

import datetime
import uuid
from functools import partial

import pytest

from evalsets.listing import page_of
from judging.models import Assessor, Judgment
from labels.coverage import coverage_of_runs
from tests.conftest import add_revision, make_chunks, make_questions, make_run


@pytest.fixture
def world(evalset):
    q1, q2 = make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1", "c2", "c3")
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2", "c3"], "q2": []})
    return q1, q2, run


def judge(evalset, question, chunk_id, grade, **fields):
    assessor, _ = Assessor.objects.get_or_create(evalset=evalset, kind="file", name="qrels")
    chunk = evalset.chunks.get(external_id=chunk_id)
    return Judgment.objects.create(
        evalset=evalset,
        question=question,
        chunk=chunk,
        revision=fields.pop("revision", chunk.revision),
        assessor=assessor,
        grade=grade,
        source="import",
        idempotency_key=uuid.uuid4(),
        **fields,
    )


def test_question_list_counts_judged_and_relevant(evalset, world, victor, client_for):
    q1, _, _ = world
    judge(evalset, q1, "c1", 0)
    judge(evalset, q1, "c2", 2)
    page = client_for(victor).get("/e/handbook/questions/")
    assert [(row[0].external_id, row[1], row[2]) for row in page.context["rows"]] == [
        ("q1", 2, 1),
        ("q2", 0, 0),
    ]


@pytest.mark.parametrize(
    ("text", "found"), [("100%", ["q-percent"]), ("_rule_", []), ("O'Neil", ["q-quote"]), ("'; --", [])]
)
def test_search_takes_its_words_literally(evalset, victor, client_for, text, found):
    make_questions(evalset, "q-percent", text="Is 100% refunded?")
    make_questions(evalset, "q-quote", text="What does O'Neil's rule say?")
    page = client_for(victor).get("/e/handbook/questions/", {"q": text})
    assert [row[0].external_id for row in page.context["rows"]] == found


def test_question_page_shows_strip_with_zero_apart_from_unjudged(evalset, world, victor, client_for):
    q1, _, _ = world
    judge(evalset, q1, "c1", 0)
    page = client_for(victor).get(f"/e/handbook/questions/{q1.pk}/")
    [strip] = page.context["strips"]
    assert [(cell.label, cell.judged) for cell in strip.cells] == [(0, True), (None, False), (None, False)]
    assert strip.unjudged == 2


def test_question_page_tells_missing_from_empty(evalset, world, victor, client_for):
    _, q2, _ = world
    make_run(evalset, "partial", {"q1": ["c1"]})
    strips = client_for(victor).get(f"/e/handbook/questions/{q2.pk}/").context["strips"]
    assert {strip.run.name: strip.cells for strip in strips} == {"bm25": [], "partial": None}


def test_judgment_of_an_older_text_is_said_to_be_one(evalset, world, victor, client_for):
    q1, _, _ = world
    judge(evalset, q1, "c1", 3)
    chunk = evalset.chunks.get(external_id="c1")
    add_revision(chunk, "Another text.")
    page = client_for(victor).get(f"/e/handbook/chunks/{chunk.pk}/")
    [row] = page.context["grades"]
    assert (row.settled, row.on_older_text) == (None, 1)
    assert "made on an earlier text" in page.content.decode()


def test_revisions_show_their_difference(evalset, world, victor, client_for):
    chunk = evalset.chunks.get(external_id="c1")
    add_revision(chunk, "Text of c2.")
    history = client_for(victor).get(f"/e/handbook/chunks/{chunk.pk}/").context["history"]
    assert [(piece.kind, piece.text) for piece in history[0].pieces] == [
        ("same", "Text of "),
        ("old", "c1"),
        ("new", "c2"),
        ("same", "."),
    ]


def test_html_in_a_chunk_is_shown_and_not_run(evalset, victor, client_for):
    [chunk] = make_chunks(evalset, "evil", text=False)
    add_revision(chunk, "<script>alert(1)</script>", number=1)
    html = client_for(victor).get(f"/e/handbook/chunks/{chunk.pk}/").content.decode()
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html


def test_judged_by_rank_equals_a_count_by_hand(evalset, world):
    q1, _, run = world
    judge(evalset, q1, "c2", 0)
    assert coverage_of_runs(evalset)[run.pk].by_rank[:2] == [(1, 1, 0), (2, 1, 1)]


def test_run_page_lists_missing_questions(evalset, world, victor, client_for):
    partial = make_run(evalset, "partial", {"q1": ["c1"]})
    coverage = client_for(victor).get(f"/e/handbook/runs/{partial.pk}/").context["coverage"]
    assert (coverage.ranked, coverage.empty, coverage.missing) == (1, 0, 1)


def test_ranking_page_shows_scores_and_grades(evalset, world, victor, client_for):
    q1, _, run = world
    judge(evalset, q1, "c1", 3)
    rows = client_for(victor).get(f"/e/handbook/runs/{run.pk}/questions/{q1.pk}/").context["rows"]
    assert [(cell.rank, cell.label, score) for cell, _, score in rows] == [
        (1, 3, 3.0),
        (2, None, 2.0),
        (3, None, 1.0),
    ]


def test_lead_marks_a_family_and_a_viewer_cannot(evalset, world, carol, victor, client_for):
    _, _, run = world
    url = f"/e/handbook/systems/{run.system.pk}/family/"
    assert client_for(victor).post(url, {"family": "lexical"}).status_code == 403
    assert client_for(carol).post(url, {"family": "lexical"}).status_code == 302
    run.system.refresh_from_db()
    assert run.system.family == "lexical"
    assert evalset.events.get().verb == "system-family-changed"


@pytest.fixture
def nightly(evalset):
    """A system with three runs, the first the oldest; the last is of another stage."""
    versions = ("2.0", "1.9", "1.9")
    stages = ("reranked", "reranked", "candidates")
    for day, (version, stage) in enumerate(zip(versions, stages, strict=True), start=1):
        date = datetime.date(2026, 3, day)
        make_run(evalset, f"night-{day}", {}, system="nightly", date=date, version=version, stage=stage)
    return evalset.systems.get(name="nightly")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["night-3", "night-2", "night-1"]),
        ({"sort": "date"}, ["night-1", "night-2", "night-3"]),
        ({"sort": "-version"}, ["night-1", "night-3", "night-2"]),
        ({"q": "1.9"}, ["night-3", "night-2"]),
        ({"q": "NIGHT-1"}, ["night-1"]),
        ({"stage": "candidates"}, ["night-3"]),
        ({"stage": "context"}, []),
    ],
)
def test_a_systems_runs_are_searched_filtered_and_sorted(nightly, victor, client_for, asked, found):
    response = client_for(victor).get(nightly.get_absolute_url(), asked)
    assert [run.name for run, _ in response.context["rows"]] == found
    assert ("No run is like that" in response.content.decode()) == (not found)


def test_a_systems_runs_come_in_pages(nightly, victor, client_for, monkeypatch):
    monkeypatch.setattr("labels.views.systems.page_of", partial(page_of, per_page=2))
    response = client_for(victor).get(nightly.get_absolute_url(), {"page": 2})
    assert [run.name for run, _ in response.context["rows"]] == ["night-1"]
    assert "3–3 of 3" in response.content.decode()


def test_rankings_of_a_run_are_searched_filtered_and_sorted(evalset, world, victor, client_for):
    _, q2, run = world
    run.rankings.filter(question=q2).update(abstained=True)
    client = client_for(victor)

    def listed(**address) -> list[str]:
        page = client.get(run.get_absolute_url(), address).context["page"]
        return [ranking.question.external_id for ranking in page]

    assert listed() == listed(sort="-returned") == ["q1", "q2"]
    assert listed(sort="-question") == listed(sort="returned") == ["q2", "q1"]
    assert listed(q="Q1") == ["q1"]
    assert listed(which="empty") == listed(which="abstained") == ["q2"]
    page = client.get(run.get_absolute_url(), {"which": "empty", "q": "q1"}).content.decode()
    assert 'No ranking is like that. <a href="?">Show all</a>' in page


def test_a_ranking_is_searched_and_filtered_and_keeps_its_ranks(evalset, world, victor, client_for):
    q1, _, run = world
    judge(evalset, q1, "c2", 0)
    client, address = client_for(victor), f"/e/handbook/runs/{run.pk}/questions/{q1.pk}/"

    def listed(**asked) -> list[tuple[int, float]]:
        return [(cell.rank, score) for cell, _, score in client.get(address, asked).context["rows"]]

    assert listed(q="C3") == [(3, 1.0)]
    assert listed(which="judged") == [(2, 2.0)]
    assert listed(which="unjudged") == [(1, 3.0), (3, 1.0)]
    page = client.get(address, {"which": "judged", "q": "c3"}).content.decode()
    assert 'No chunk of the ranking is like that. <a href="?">Show all</a>' in page


def test_judged_chunks_of_a_question_are_paged_and_searched(evalset, world, victor, client_for):
    q1, _, _ = world
    judge(evalset, q1, "c1", 3)
    for chunk in make_chunks(evalset, *(f"x{n:03}" for n in range(100)), text=False):
        judge(evalset, q1, chunk.external_id, 0)
    client, address = client_for(victor), f"/e/handbook/questions/{q1.pk}/"
    first, second = (client.get(address, {"page": n}).context["page"] for n in (1, 2))
    assert [item.chunk.external_id for item in (first[0], *second)] == ["c1", "x099"]
    assert [item.chunk.external_id for item in client.get(address, {"q": "X01"}).context["page"]] == [
        f"x01{n}" for n in range(10)
    ]
    assert "No chunk with that in its ID was judged" in client.get(address, {"q": "c2"}).content.decode()

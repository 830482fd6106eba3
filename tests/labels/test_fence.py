"""The fence around outside judges: a model's grade is no judgment, wherever judgments are counted.

Everything that counts is read, a model grades every pair, and everything is read again.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from django.core.management import CommandError, call_command

from config.home import evalset_overview
from evalsets.models import EvalSet, User
from judging.batch_counts import grade_counts
from judging.batch_reads import batch_figures
from judging.desk import my_open_batches
from judging.models import Batch
from judging.services.claims import anything_open, claim_next
from judging.services.pools import measure_pool, pairs_of_question, preview_pool
from judging.services.remainder import judged_too_seldom, pairs_to_judge, remainder_lines
from judging.services.reordering import grades_so_far
from labels.coverage import coverage_of_runs
from labels.differences import changes_since, difference_of
from labels.rated_pairs import rated_pairs
from labels.services.duplicates import chunks_in_play
from labels.services.publishing import publish_release
from labels.settling import (
    contested_pairs,
    judged_chunks,
    labels_of_chunk,
    labels_of_question,
    settled_counts,
    settled_pairs,
)
from labels.waiting import read_queue
from pooling.models import Pool, Run
from pooling.services.importing import import_chunks, import_questions
from pooling.services.pools import build_pool
from pooling.specifying import specify_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import batch_of, pair_of
from tests.labels.builders import an_assessor, judge, make_class


class World(NamedTuple):
    evalset: EvalSet
    run: Run
    pool: Pool
    batch: Batch
    people: list[User]


@pytest.fixture
def world(evalset, alice, bob, carol):
    """Two questions and six chunks in a pool: judged, contested, skipped, impossible to judge, unjudged, in a batch."""
    q1, q2 = make_questions(evalset, "q1", "q2")
    c1, c2, c3, c4, _, c6 = make_chunks(evalset, "c1", "c2", "c3", "c4", "c5", "c6")
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2", "c3", "c4", "c5"], "q2": ["c6", "c1", "c2"]})
    judge(q1, c1, 2, by=alice)
    judge(q1, c1, 2, by=bob)
    judge(q1, c2, 0, by=alice)
    judge(q1, c2, 3, by=bob)
    judge(q1, c3, None, by=bob)
    judge(q1, c4, None, by=bob, kind="cannot-judge", reason="broken-text")
    judge(q2, c2, 1, by=alice)
    make_class(c2, c6)
    pool, _ = build_pool(evalset=evalset, name="pool", runs=[(run, 10)], by=carol)
    batch = batch_of(evalset, {"q2": ["c1"]}, by=carol, assessors=[alice], pool=pool)
    publish_release(evalset=evalset, by=carol)
    return World(evalset, run, pool, batch, [alice, bob])


def a_model_grades_everything(evalset) -> None:
    for question in evalset.questions.all():
        for chunk in evalset.chunks.all():
            for repetition in (1, 2, 3):
                judge(question, chunk, 3, by="model:gpt", details={"repetition": repetition})


def _overview(evalset):
    overview = evalset_overview(evalset)
    return overview._replace(open_batches=[batch.filled_count for batch in overview.open_batches])


LEGS = {
    "pool": lambda w: measure_pool(w.pool).totals,
    "preview": lambda w: preview_pool(specify_pool(evalset=w.evalset, runs=[(w.run, 3)])).totals,
    "pairs of a question": lambda w: [
        (pair.chunk, pair.state)
        for pair in pairs_of_question(w.pool, w.evalset.questions.get(external_id="q1"))
    ],
    "remainder": lambda w: list(pairs_to_judge(pool=w.pool)),
    "remainder file": lambda w: list(remainder_lines(w.pool)),
    "remainder wanting two": lambda w: list(pairs_to_judge(pool=w.pool, wanted=2)),
    "second judgments": lambda w: judged_too_seldom(
        pool=w.pool,
        wanted=2,
        share=1.0,
        assessors=[an_assessor(w.evalset, user).pk for user in w.people],
        people=2,
        seed=1,
    ),
    "adaptive order": lambda w: [
        grades_so_far(pool=w.pool, question=question) for question in w.evalset.questions.all()
    ],
    "labels": lambda w: settled_pairs(w.evalset),
    "labels of a question": lambda w: labels_of_question(w.evalset.questions.get(external_id="q2")),
    "labels of a chunk": lambda w: labels_of_chunk(w.evalset.chunks.get(external_id="c5")),
    "counts": lambda w: settled_counts(w.evalset),
    "judged chunks": lambda w: [judged_chunks(question) for question in w.evalset.questions.all()],
    "unjudged rates": lambda w: coverage_of_runs(w.evalset),
    "contested": lambda w: (contested_pairs(w.evalset), read_queue(w.evalset)),
    "agreement": lambda w: rated_pairs(w.evalset).ratings.tolist(),
    "batch": lambda w: (batch_figures(w.batch), grade_counts(w.batch)),
    "places of a batch": lambda w: pair_of(w.batch, "q2", "c1").filled_at,
    "desk": lambda w: (
        anything_open(batch=w.batch, assessor=an_assessor(w.evalset, w.people[0])),
        [str(item.batch) for item in my_open_batches(w.people[0])],
    ),
    "copies looked for": lambda w: list(chunks_in_play(w.evalset)),
    "home": lambda w: _overview(w.evalset),
    "since the release": lambda w: changes_since(w.evalset.releases.get(), w.evalset),
}


@pytest.mark.parametrize("leg", LEGS)
def test_a_models_grades_change_nothing_that_counts(world, leg):
    make_chunks(world.evalset, "in no pool")
    before = LEGS[leg](world)
    a_model_grades_everything(world.evalset)
    assert LEGS[leg](world) == before


def test_a_pair_that_a_model_graded_is_handed_out(world, alice):
    a_model_grades_everything(world.evalset)
    assert [str(task.pair.chunk) for task in claim_next(batch=world.batch, by=alice, count=5)] == ["c1"]


def test_publishing_after_a_model_graded_makes_no_release(world):
    evalset = world.evalset
    a_model_grades_everything(evalset)
    assert not publish_release(evalset=evalset, by=None).created


def test_pages_of_questions_and_chunks_do_not_call_it_judged(world, victor, carol, client_for):
    evalset = world.evalset
    client = client_for(victor)
    q2, c5 = evalset.questions.get(external_id="q2"), evalset.chunks.get(external_id="c5")
    a_model_grades_everything(evalset)
    judged = client.get(f"/e/handbook/questions/{q2.pk}/").context["page"]
    assert [(str(item.chunk), len(item.judgments), len(item.by_models)) for item in judged] == [("c2", 1, 3)]
    assert client.get(f"/e/handbook/chunks/{c5.pk}/").context["grades"] == []
    c2, q1 = evalset.chunks.get(external_id="c2"), evalset.questions.get(external_id="q1")
    page = client_for(carol).get(f"/e/handbook/contested/{q1.pk}/{c2.pk}/").content.decode()
    assert "gpt" not in page
    assert page.count("A model") == 0


def test_imports_do_not_warn_of_labels_that_are_none(evalset, carol, tmp_path):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 3, by="model:gpt")
    questions, chunks = tmp_path / "q.tsv", tmp_path / "c.jsonl"
    questions.write_text("q1\tWhat else is q1?\n")
    chunks.write_text('{"id": "c1", "text": "Another text."}\n')
    report = import_questions(evalset=evalset, source=questions, by=carol, check=True)
    assert report.findings.warnings.kinds() == ["question-reworded"]
    report = import_chunks(evalset=evalset, source=chunks, by=carol, check=True)
    assert report.details["labels_left_behind"] == 0
    judge(question, chunk, 0, by="file:labels")
    report = import_chunks(evalset=evalset, source=chunks, by=carol, check=True)
    assert report.details["labels_left_behind"] == 1


def test_a_release_lets_in_only_the_judges_that_it_names(world):
    evalset = world.evalset
    a_model_grades_everything(evalset)
    judge(evalset.questions.get(external_id="q1"), evalset.chunks.get(external_id="c5"), 0, by="model:other")
    release = publish_release(evalset=evalset, by=None, judges=["gpt"]).release
    labels = {
        (row.external_id, name): (grade, why)
        for row in release.release_questions.all()
        for name, grade, why in zip(row.external_ids, row.grades, row.why, strict=True)
    }
    # q1: c2 is contested and c6 is a copy of it, c4 cannot be judged; q2: c2 is labelled and c6 is a copy of it.
    assert labels == {
        ("q1", "c1"): (2, "unanimous"),
        ("q1", "c3"): (3, "model"),
        ("q1", "c5"): (3, "model"),
        ("q2", "c1"): (3, "model"),
        ("q2", "c2"): (1, "unanimous"),
        ("q2", "c3"): (3, "model"),
        ("q2", "c4"): (3, "model"),
        ("q2", "c5"): (3, "model"),
    }
    assert (release.counts["from_models"], release.counts["judgments"]) == (6, 7)
    # How well each run is covered is said of people's labels.
    assert release.provenance == evalset.releases.get(number=1).provenance


def test_the_difference_of_two_releases_marks_them(world, alice, victor, client_for, capsys):
    evalset = world.evalset
    q2 = evalset.questions.get(external_id="q2")
    a_model_grades_everything(evalset)
    publish_release(evalset=evalset, by=None, judges=["gpt"])
    judge(q2, evalset.chunks.get(external_id="c3"), 3, by=alice)
    judge(q2, evalset.chunks.get(external_id="c4"), 0, by=alice)
    publish_release(evalset=evalset, by=None, judges=["gpt"])
    first, second, third = evalset.releases.order_by("number")
    added = difference_of(first, second)
    assert (added.counts.added, added.counts.models_added) == (6, 6)
    assert added.settings["judges"] == ([], ["gpt"])
    judged = difference_of(second, third).counts
    assert (judged.added, judged.removed, judged.regraded) == (0, 0, {(3, 0): 1})
    assert (judged.judged, judged.same_grade, judged.total) == (2, 1, 2)
    page = client_for(victor).get("/e/handbook/releases/difference/", {"from": "2", "to": "3"})
    assert [
        (pair.chunk, pair.kind, pair.model_before, pair.model_after) for pair in page.context["page"]
    ] == [
        ("c3", "same grade", True, False),
        ("c4", "regraded", True, False),
    ]
    assert "2 judged by people since" in page.content.decode()
    assert "4 of the 8 labels of release 3 came from a model" in page.content.decode()
    call_command("diff_releases", "handbook", "2", "3", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["to"]["from_models"] == 4
    assert document["of_models"]["judged"] == 2
    assert document["pairs"][0]["from_model"]


def test_the_command_says_what_it_let_in(world, capsys):
    evalset = world.evalset
    a_model_grades_everything(evalset)
    call_command("publish_release", "handbook", "--include-judge", "gpt")
    printed = capsys.readouterr().out
    assert "6 of the labels came from a model (gpt): no person has judged these pairs" in printed


def test_a_judge_that_is_not_there_is_refused(world, capsys):
    a_model_grades_everything(world.evalset)
    with pytest.raises(CommandError, match="no outside judge 'gtp'"):
        call_command("publish_release", "handbook", "--include-judge", "gtp")
    assert world.evalset.releases.count() == 1


def test_the_page_warns_with_numbers(world, carol, client_for):
    evalset = world.evalset
    a_model_grades_everything(evalset)
    page = client_for(carol).get("/e/handbook/releases/new/").content.decode()
    assert "would add 6 labels" in page
    assert 'name="judges" value="gpt"' in page
    refused = client_for(carol).post("/e/handbook/releases/new/", {"judges": "alice"})
    assert "alice is not one of the available choices" in refused.content.decode()


def test_the_release_page_and_the_list_say_it(world, carol, client_for):
    evalset = world.evalset
    a_model_grades_everything(evalset)
    publish_release(evalset=evalset, by=carol, judges=["gpt"])
    client = client_for(carol)
    assert (
        "6 of the 8 labels of release 2 came from a model"
        in client.get("/e/handbook/releases/2/").content.decode()
    )
    assert "6 from models" in client.get("/e/handbook/releases/").content.decode()
    assert "came from a model" not in client.get("/e/handbook/releases/1/").content.decode()

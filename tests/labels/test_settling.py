"""Settling, against a slow twin that reads the histories one by one, and as a table of single pairs."""

from __future__ import annotations

import random
import statistics

import pytest

from judging.models import ClassMember, Judgment
from labels.coverage import coverage_of_runs
from labels.services.finding import find_judges
from labels.settling import (
    contested_pairs,
    judged_chunks,
    labels_of_judges,
    labels_of_question,
    settled_counts,
    settled_pairs,
)
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import judge, make_class

POLICIES = ["majority", "median", "latest", "none"]


def settle_slowly(judgments: list[Judgment], policy: str, *judges: str) -> dict:
    """The twin: what each pair settles to, from all judgments of an eval set, in plain loops."""
    replaced = {judgment.replaces_id for judgment in judgments}
    pairs: dict[tuple[int, int], list[Judgment]] = {}
    by_models: dict[tuple[int, int], list[int]] = {}
    for judgment in judgments:
        if judgment.pk in replaced or judgment.revision != judgment.chunk.revision:
            continue
        if judgment.assessor.kind == "model":
            if judgment.assessor.name in judges and judgment.grade is not None:
                by_models.setdefault((judgment.question_id, judgment.chunk_id), []).append(judgment.grade)
            continue
        pairs.setdefault((judgment.question_id, judgment.chunk_id), []).append(judgment)
    settled = {pair: settle_one(history, policy) for pair, history in pairs.items()}
    said = {pair for pair, history in pairs.items() if any(judgment.kind != "skip" for judgment in history)}
    copies = dict(ClassMember.objects.values_list("chunk_id", "chunk_class_id"))
    said_of_class = {(question, copies[chunk]) for question, chunk in said if chunk in copies}
    for (question, chunk), grades in by_models.items():
        if (question, chunk) not in said and (question, copies.get(chunk)) not in said_of_class:
            settled[question, chunk] = (int(statistics.median(grades)), "model")
    return settled


def settle_one(history: list[Judgment], policy: str) -> tuple[int | None, str]:
    history = sorted(history, key=lambda judgment: (judgment.judged_at, judgment.pk))
    decisions = [judgment for judgment in history if judgment.source == "adjudication"]
    if decisions:
        decision = decisions[-1].grade
        return decision, "skipped-only" if decision is None else "adjudicated"
    grades = [judgment.grade for judgment in history if judgment.grade is not None]
    if not grades:
        return None, "skipped-only"
    if len(set(grades)) == 1:
        return grades[0], "unanimous"
    if policy == "latest":
        return grades[-1], "latest"
    if policy == "median":
        return int(statistics.median(grades)), "median"
    if policy == "majority":
        for grade in set(grades):
            if grades.count(grade) * 2 > len(grades):
                return grade, "majority"
    return None, "contested"


@pytest.fixture
def random_histories(evalset, alice, bob, carol):
    """Sixty pairs with up to six judgments each: several people, files, models, regrades, skips, old revisions."""
    draw = random.Random(20260301)
    questions = make_questions(evalset, "q1", "q2", "q3")
    chunks = make_chunks(evalset, *(f"c{n}" for n in range(20)))
    for chunk in draw.sample(chunks, 8):
        add_revision(chunk, f"A newer text of {chunk}.")
    sources = [alice, bob, carol, "file:old", "model:judge", "model:judge", "model:other"]
    for question in questions:
        for chunk in chunks:
            made: list[Judgment] = []
            for _ in range(draw.randrange(7)):
                by = draw.choice(sources)
                mine = [j for j in made if j.assessor.user == by and not hasattr(j, "was_replaced")]
                fields = {}
                if mine and draw.random() < 0.5:
                    fields["replaces"] = mine[-1]
                    mine[-1].was_replaced = True
                if by is carol and draw.random() < 0.3:
                    fields["source"] = "adjudication"
                made.append(
                    judge(
                        question,
                        chunk,
                        draw.choice([None, 0, 0, 1, 2, 3]),
                        by=by,
                        at=draw.randrange(5),
                        revision=draw.randint(1, chunk.revision),
                        **fields,
                    )
                )
    make_class(*chunks[:3])
    make_class(*chunks[3:5])
    return evalset


@pytest.mark.parametrize("judges", [(), ("judge",), ("judge", "other")])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_statement_settles_like_its_slow_twin(random_histories, policy, judges):
    evalset = random_histories
    evalset.settle_policy = policy
    judgments = list(Judgment.objects.select_related("chunk", "assessor"))

    expected = settle_slowly(judgments, policy, *judges)

    pairs = settled_pairs(evalset, judges=find_judges(evalset, judges))
    assert {(pair.question_id, pair.chunk_id): (pair.label, pair.why) for pair in pairs} == expected
    assert len(pairs) == len(expected)
    assert {why for _, why in expected.values()} >= {"adjudicated", "unanimous", "skipped-only"}
    assert ("model" in {why for _, why in expected.values()}) == bool(judges)
    if policy in ("majority", "none"):
        assert "contested" in {why for _, why in expected.values()}


@pytest.mark.parametrize(
    ("policy", "grades", "label", "why"),
    [
        ("majority", [0], 0, "unanimous"),
        ("majority", [2, 2], 2, "unanimous"),
        ("majority", [0, 0, 3], 0, "majority"),
        ("majority", [1, 2], None, "contested"),
        ("majority", [0, 0, 1, 2], None, "contested"),
        ("median", [1, 2], 1, "median"),
        ("median", [0, 3], 1, "median"),
        ("median", [0, 2, 3], 2, "median"),
        ("latest", [3, 0], 0, "latest"),
        ("none", [3, 0], None, "contested"),
        ("none", [3, 3], 3, "unanimous"),
        ("majority", [None], None, "skipped-only"),
        ("majority", [None, 0], 0, "unanimous"),
    ],
)
def test_how_one_pair_settles(evalset, policy, grades, label, why):
    evalset.settle_policy = policy
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    for minute, grade in enumerate(grades):
        judge(question, chunk, grade, by=f"file:{minute}", at=minute)

    [pair] = settled_pairs(evalset)

    assert (pair.label, pair.why) == (label, why)
    assert pair.grades == [grade for grade in reversed(grades) if grade is not None]
    assert pair.skips == grades.count(None)


def test_an_adjudication_overrides_and_a_later_one_overrides_it(evalset, carol):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 3, by="file:a", at=9)
    judge(question, chunk, 3, by="file:b", at=9)
    first = judge(question, chunk, 1, by=carol, source="adjudication", at=1)
    assert labels_of_question(question)[chunk.pk].label == 1

    judge(question, chunk, 0, by=carol, source="adjudication", at=2, replaces=first)

    pair = labels_of_question(question)[chunk.pk]
    assert (pair.label, pair.why, pair.grades) == (0, "adjudicated", [3, 3])


def test_an_adjudicator_may_decide_that_a_pair_cannot_be_judged(evalset, carol):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 3)
    judge(question, chunk, None, by=carol, source="adjudication", kind="cannot-judge", reason="broken-text")

    assert [pair.chunk_id for pair in settled_pairs(evalset, why=["skipped-only"])] == [chunk.pk]


def test_a_judgment_of_an_earlier_text_does_not_count(evalset):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "refund#1")
    judge(question, chunk, 2)
    add_revision(chunk, "Refunds are paid within 30 days.")

    assert settled_pairs(evalset) == []
    assert judged_chunks(question) == set()


def test_a_model_counts_only_where_it_is_asked_for(evalset):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 2, by="model:judge")
    judge(question, chunk, 1, by="model:judge", details={"repetition": 2})
    judge(question, chunk, 3, by="model:another")

    assert labels_of_question(question) == {}
    assert settled_counts(evalset) == (0, 0, 0, 0)
    assert judged_chunks(question) == set()
    [pair] = settled_pairs(evalset, judges=find_judges(evalset, ["judge"]))
    assert (pair.label, pair.why, pair.grades, pair.model_grades) == (1, "model", [], 2)


@pytest.mark.parametrize(
    ("said", "models"),
    [
        ([], True),
        ([None], True),
        ([0], False),
        ([1, 2], False),
        (["cannot-judge"], False),
        (["earlier text"], True),
        (["copy"], False),
        (["copy skipped"], True),
    ],
)
def test_a_model_never_stands_beside_people(evalset, said, models):
    [question], [chunk, copy] = make_questions(evalset, "q1"), make_chunks(evalset, "c1", "c2")
    add_revision(chunk, "A newer text.")
    make_class(chunk, copy)
    judge(question, chunk, 3, by="model:judge")
    for number, word in enumerate(said):
        by = f"file:{number}"
        if word == "cannot-judge":
            judge(question, chunk, None, by=by, kind="cannot-judge", reason="broken-text")
        elif word == "earlier text":
            judge(question, chunk, 0, by=by, revision=1)
        elif word in ("copy", "copy skipped"):
            judge(question, copy, 0 if word == "copy" else None, by=by)
        else:
            judge(question, chunk, word, by=by)

    pairs = settled_pairs(evalset, judges=find_judges(evalset, ["judge"]))

    assert ([pair.chunk_id for pair in pairs if pair.why == "model"] == [chunk.pk]) == models
    assert labels_of_judges(evalset) == ({"judge": int(models)}, int(models))


def test_lists_and_counts(evalset):
    q1, q2 = make_questions(evalset, "q1", "q2")
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    judge(q1, c1, 0)
    judge(q1, c2, 1, by="file:a")
    judge(q1, c2, 2, by="file:b")
    judge(q2, c3, None)
    judge(q2, c2, 1, by="file:a")
    judge(q2, c2, 2, by="file:b")

    assert [(pair.question_id, pair.chunk_id) for pair in contested_pairs(evalset)] == [
        (q1.pk, c2.pk),
        (q2.pk, c2.pk),
    ]
    assert [pair.chunk_id for pair in settled_pairs(evalset, why=["skipped-only"])] == [c3.pk]
    assert settled_counts(evalset) == (3, 1, 2, 1)
    assert judged_chunks(q1) == {c1.pk, c2.pk}


def test_another_eval_sets_judgments_are_not_seen(evalset, other_evalset):
    [question], [chunk] = make_questions(other_evalset, "q1"), make_chunks(other_evalset, "c1")
    judge(question, chunk, 2)

    assert settled_pairs(evalset) == []
    assert len(settled_pairs(other_evalset)) == 1


def test_unjudged_rates_of_runs(evalset):
    q1, q2 = make_questions(evalset, "q1", "q2")
    old = make_run(evalset, "old", {"q1": ["c1", "c2", "c3"], "q2": []})
    new = make_run(evalset, "new", {"q1": ["c9", "c1"], "q2": ["c2"]})
    empty = make_run(evalset, "empty", {"q1": []})
    chunks = {chunk.external_id: chunk for chunk in evalset.chunks.all()}
    judge(q1, chunks["c1"], 0)
    judge(q1, chunks["c2"], 3, by="model:judge")
    judge(q1, chunks["c2"], None)
    judge(q2, chunks["c2"], 1)

    covered = coverage_of_runs(evalset)
    assert {run: found.unjudged(2) for run, found in covered.items()} == {
        old.pk: (2, 1),
        new.pk: (3, 1),
        empty.pk: (0, 0),
    }
    assert [covered[run.pk].unjudged(2).rate for run in (old, new, empty)] == [
        0.5,
        pytest.approx(1 / 3),
        None,
    ]
    assert [covered[run.pk][:3] for run in (old, new, empty)] == [(2, 1, 0), (2, 0, 0), (1, 1, 1)]

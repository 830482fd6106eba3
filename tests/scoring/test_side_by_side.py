"""One question of a comparison: read alone, it must show what the whole release and the whole runs say of it."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pytest

from labels.releases import Excerpt
from labels.services.publishing import publish_release
from pooling.models import Ranking
from scoring.classes import UNJUDGED
from scoring.matching import match, select
from scoring.models import ScoreResult, Unit
from scoring.reading import by_document, read_known, read_run
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve
from scoring.side_by_side import columns
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import judge, make_class

pytestmark = pytest.mark.django_db
DEPTH = 8


@pytest.fixture
def comparisons(evalset, alice):
    """A release of six questions and two runs with all that bears on an entry, compared by chunks and by documents."""
    draw = random.Random(7)
    questions = make_questions(
        evalset, "q0", "q1", "q2", scope="staff", effective_date=datetime.date(2026, 3, 1)
    )
    questions += make_questions(evalset, "q3", "q4", "q5")
    chunks = make_chunks(evalset, *(f"c{number}" for number in range(30)), text=False)
    for number, chunk in enumerate(chunks):
        limits = {"scope": ["", "staff", "managers"][number % 3]}
        if number % 5 == 0:
            limits["effective_to"] = datetime.date(2026, 1, 31)
        add_revision(chunk, chunk.external_id, number=1, doc_id=f"d{number // 4}", **limits)
    for members in (chunks[1:4], chunks[6:10:2], chunks[20:26:5]):
        make_class(*members)
    for question in questions:
        for number, chunk in enumerate(draw.sample(chunks, 12)):
            by = "model:gpt" if number < 2 else alice
            judge(question, chunk, draw.randrange(4), by=by)
    release = publish_release(evalset=evalset, by=None, judges=["gpt"]).release
    ids = [chunk.external_id for chunk in chunks]
    a = make_run(evalset, "A", {f"q{n}": draw.sample(ids, 15) for n in range(5)}, stage="context")
    b = make_run(evalset, "B", {f"q{n}": draw.sample(ids, 0 if n == 3 else 15) for n in range(6)})
    cut = [{"text": "cut", "truncated": number % 2 == 0} for number in range(15)]
    Ranking.objects.filter(run=a, question=questions[1]).update(passages=cut)
    return [
        compare_runs(
            release=release,
            run_a=a,
            run_b=b,
            asked=resolve(release, measures=["Recall@3"], unit=unit, common=True),
        )[0]
        for unit in Unit.values
    ]


def told(comparison, question) -> list[list[tuple]]:
    """What the page is given of each column's entries."""
    return [
        [(e.chunk.pk, e.grade, e.again, e.inadmissible, e.by_model, e.other_rank) for e in column.entries]
        for column in columns(comparison, question.pk, DEPTH)
    ]


def told_slowly(comparison, question) -> list[list[tuple]]:
    """The same, from the whole release and the whole runs."""
    known = read_known(comparison.release)
    loaded = [read_run(run, known) for run in (comparison.run_a, comparison.run_b)]
    if comparison.document["unit"] == Unit.DOCUMENT:
        by_document(known, loaded)
    at = known.question_ids.index(question.pk)
    sides = []
    for run in loaded:
        graded = match(known.truth(), run.rankings, run.inadmissible, run.truncated)
        sides.append(select(graded, np.flatnonzero(graded.question == at)))
    tops = [side.chunk[:DEPTH].tolist() for side in sides]
    return [
        [
            (
                chunk,
                None if side.grade[i] == UNJUDGED else side.grade[i],
                side.grade[i] != UNJUDGED and not side.counts[i] and not side.inadmissible[i],
                side.inadmissible[i],
                side.by_model[i],
                other.index(chunk) + 1 if chunk in other else None,
            )
            for i, chunk in enumerate(top)
        ]
        for side, top, other in zip(sides, tops, tops[::-1], strict=True)
    ]


def test_a_question_read_alone_is_told_as_in_the_whole(evalset, comparisons) -> None:
    seen = set()
    for comparison in comparisons:
        for question in evalset.questions.all():
            entries = told(comparison, question)
            assert entries == told_slowly(comparison, question), (comparison.document["unit"], question)
            seen |= {entry[1:5] for column in entries for entry in column}
    # Nothing that can be said of an entry has been missed.
    for place, values in enumerate([{None, 0, 1, 2, 3}, {True, False}, {True, False}, {True, False}]):
        assert {entry[place] for entry in seen} >= values


def test_missing_and_empty_rankings_are_told_apart(evalset, comparisons) -> None:
    q3, q5 = evalset.questions.filter(external_id__in=["q3", "q5"]).order_by("external_id")
    assert [(column.missing, bool(column.entries)) for column in columns(comparisons[0], q3.pk, DEPTH)] == [
        (False, True),
        (False, False),
    ]
    assert [column.missing for column in columns(comparisons[0], q5.pk, DEPTH)] == [True, False]
    [later] = make_questions(evalset, "later")
    with pytest.raises(KeyError):
        columns(comparisons[0], later.pk, DEPTH)


def test_values_are_those_of_the_stored_documents(evalset, comparisons) -> None:
    results = ScoreResult.objects.filter(policy="raw")
    stored = {
        (result.pk, row["id"]): (row["measures"]["Recall@3"], row["unjudged"]["3"])
        for result in results
        for row in result.document["questions"]
    }
    assert stored
    for question in ["q0", "q1", "q2", "q3", "q4", "q5", 'no"ne']:
        expected = {pk: value for (pk, scored), value in stored.items() if scored == question}
        assert results.values_for(question, "Recall@3") == expected


def test_an_excerpt_reads_no_other_question(evalset, comparisons) -> None:
    question = evalset.questions.get(external_id="q1")
    known = read_known(comparisons[0].release, Excerpt(question.pk, np.empty(0, np.int64)))
    loaded = read_run(comparisons[0].run_b, known)
    assert known.question_ids == [question.pk]
    assert (loaded.rankings.question.tolist(), loaded.unknown) == ([0], 0)

"""From a stratified pool through its judgments and the release to inferred measures, against labels that are all known.

Two systems, six questions, some 110 pairs each, of which about a third is relevant, the fewer the deeper. Everything is
known, so AP and nDCG are; a sample judges all pairs at ranks 1 to 10 and a third of those at 11 to 60.
"""

from __future__ import annotations

import random
import statistics

import pytest

from evalsets.models import Chunk, EvalSet, Question
from judging.models import Assessor, Judgment
from judging.services.remainder import pairs_to_judge
from labels.services.publishing import publish_release
from pooling.models import Ranking, Run, System
from pooling.services.pools import build_pool
from tests.scoring.test_scoring_services import scores_of

pytestmark = pytest.mark.django_db

QUESTIONS, DEPTH = 6, 60
SEEDS = 12


def a_world(number: int) -> tuple[EvalSet, list[Run], dict[tuple[int, int], int]]:
    """An eval set with two runs, and the grade of every pair; always the same but for its name."""
    rng = random.Random(7)
    evalset = EvalSet.objects.create(slug=f"world-{number}", name=f"World {number}")
    names = [f"{q:02}-{n:03}" for q in range(QUESTIONS) for n in range(2 * DEPTH)]
    chunks = Chunk.objects.bulk_create(
        Chunk(evalset=evalset, external_id=name, has_text=True) for name in names
    )
    runs = [
        Run.objects.create(
            evalset=evalset,
            system=System.objects.create(evalset=evalset, name=name),
            name=name,
            date="2026-01-01",
            content_hash=name,
        )
        for name in ("first", "second")
    ]
    grades: dict[tuple[int, int], int] = {}
    for q in range(QUESTIONS):
        question = Question.objects.create(evalset=evalset, external_id=f"q{q}", text="?")
        known = [chunk.pk for chunk in chunks[2 * DEPTH * q : 2 * DEPTH * (q + 1)]]
        # The lower a chunk's number, the better it is, and the earlier the runs return it.
        for place, chunk in enumerate(known):
            chance = 0.9 - 0.8 * place / (2 * DEPTH)
            grades[question.pk, chunk] = rng.choice([1, 2, 3]) if rng.random() < chance**2 else 0
        for run, noise in zip(runs, (25, 45), strict=True):
            order = sorted(range(2 * DEPTH), key=lambda place, noise=noise: place + rng.gauss(0, noise))
            Ranking.objects.create(run=run, question=question, chunk_ids=[known[i] for i in order[:DEPTH]])
    return evalset, runs, grades


def judge_all(evalset: EvalSet, pairs, grades: dict[tuple[int, int], int]) -> None:
    assessor = Assessor.objects.create(evalset=evalset, kind="file", name="people")
    Judgment.objects.bulk_create(
        Judgment(
            evalset=evalset,
            question_id=question,
            chunk_id=chunk,
            revision=1,
            assessor=assessor,
            grade=grades[question, chunk],
        )
        for question, chunk in pairs
    )


def values(evalset: EvalSet, runs: list[Run], *measures: str) -> list[float]:
    release = publish_release(evalset=evalset, by=None).release
    rows = scores_of(release, *runs, measures=list(measures))["runs"]
    return [row["measures"][measure] for row in rows for measure in measures]


def test_over_many_samples_the_estimates_average_to_what_judging_all_says() -> None:
    evalset, runs, grades = a_world(0)
    # Everything that the sampled pool holds, as a depth pool would judge it.
    build_pool(evalset=evalset, name="all", runs=[(run, DEPTH) for run in runs], by=None)
    pool = evalset.pools.get()
    pooled = [(p.question_id, p.chunk_id) for p in pairs_to_judge(pool=pool)]
    judge_all(evalset, pooled, grades)
    truth = values(evalset, runs, "AP", "nDCG@20")

    estimates, plain, judged = [], [], []
    for seed in range(1, SEEDS + 1):
        evalset, runs, grades = a_world(seed)
        pool, _ = build_pool(
            evalset=evalset,
            name="sample",
            runs=[(run, DEPTH) for run in runs],
            by=None,
            strategy="stratified",
            parameters={"strata": f"1-10:1,11-{DEPTH}:0.33"},
            seed=seed,
        )
        drawn = [(p.question_id, p.chunk_id) for p in pairs_to_judge(pool=pool)]
        judge_all(evalset, drawn, grades)
        estimates.append(values(evalset, runs, "infAP", "infNDCG@20"))
        plain.append(values(evalset, runs, "AP", "nDCG@20"))
        judged.append(len(drawn))

    assert statistics.mean(judged) < 0.55 * len(pooled)
    for column, right in enumerate(truth):
        found = [estimate[column] for estimate in estimates]
        # The stated error: 0.02 beside the standard error of the mean over the samples.
        allowed = 0.02 + 2 * statistics.stdev(found) / SEEDS**0.5
        assert statistics.mean(found) == pytest.approx(right, abs=allowed)
    # The plain measures of the same samples are off by more than that: they take what was not drawn for irrelevant.
    assert max(abs(statistics.mean(v[c] for v in plain) - truth[c]) for c in range(4)) > 0.05

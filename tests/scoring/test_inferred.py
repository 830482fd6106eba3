"""Measures inferred from a sampled pool: exact where all was sampled, and right on average where not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from scoring.classes import Labels, build_truth
from scoring.inferred import inferred_ap, inferred_ndcg
from scoring.matching import match
from scoring.measures import parse_measure
from scoring.values import question_values
from tests.scoring.score_text import score, world
from tests.scoring.test_measures import chunk_classes, labels, rankings


@given(known=labels, ranking=rankings, classes=chunk_classes)
@settings(max_examples=60, deadline=None)
def test_where_all_was_sampled_they_are_ap_and_ndcg(known, ranking, classes) -> None:
    one = world({"q": known}, classes=classes)
    exact = score(one, {"q": ranking}, ["AP", "nDCG", "nDCG@3"]).values[0]
    truth = build_truth(one.labels, questions=1, classes=one.classes, chance=np.ones(len(one.labels.grade)))
    graded = match(truth, one.rankings({"q": ranking}))
    names = ["infAP", "infNDCG", "infNDCG@3"]
    inferred = question_values(
        truth,
        graded,
        [parse_measure(name) for name in names],
        threshold=1,
        gain="exponential",
        returned=graded,
    )
    assert inferred[0] == pytest.approx(exact, abs=1e-9)


def test_on_average_a_stratified_sample_tells_what_judging_all_would() -> None:
    rng = np.random.default_rng(11)
    ranking = [f"c{n}" for n in range(120)]
    grades = {
        chunk: int(rng.integers(1, 4)) if rng.random() < 0.6 - n / 250 else 0
        for n, chunk in enumerate(ranking)
    }
    complete = score(world({"q": grades}), {"q": ranking}, ["AP", "nDCG@50"]).values[0]
    chances = np.where(np.arange(120) < 30, 1.0, 0.4)
    estimates = []
    for _ in range(300):
        drawn = rng.random(120) < chances
        rows = [n for n in range(120) if drawn[n]]
        table = Labels(
            np.zeros(len(rows), np.int64), np.array(rows), np.array([grades[ranking[n]] for n in rows])
        )
        truth = build_truth(table, questions=1, chance=chances[rows])
        graded = match(truth, world({"q": grades}).rankings({"q": ranking}))
        estimates.append(
            (
                inferred_ap(truth, graded, threshold=1)[0],
                inferred_ndcg(truth, graded, k=50, gain="exponential")[0],
            )
        )
    assert np.mean(estimates, axis=0) == pytest.approx(complete, abs=0.02)
    # Taken at face value, the sample would say something else.
    assert score(world({"q": grades}), {"q": ranking[30:]}, ["AP"]).values[0][0] != pytest.approx(
        complete[0], abs=0.02
    )


def test_weights_by_hand() -> None:
    """Relevant at ranks 1 (chance 1) and 4 (chance 0.5): 3 relevant in all, two of them like the second."""
    known = world({"q": {"a": 1, "b": 0, "c": 1}})
    truth = build_truth(known.labels, questions=1, chance=np.array([1.0, 1.0, 0.5]))
    graded = match(truth, known.rankings({"q": ["a", "b", "x", "c"]}))
    assert inferred_ap(truth, graded, threshold=1) == pytest.approx([(1 + 2 * (1 + 1) / 4) / 3])
    discount = [1 / np.log2(rank + 1) for rank in range(1, 5)]
    right = (discount[0] + 2 * discount[3]) / sum(discount[:3])
    assert inferred_ndcg(truth, graded, k=None, gain="exponential") == pytest.approx([right])


def test_rankings_do_not_mix() -> None:
    known = world({"q1": {"a": 1, "b": 1}, "q2": {"a": 1, "b": 1}, "q3": {"b": 1}})
    truth = build_truth(known.labels, questions=3, chance=np.full(5, 0.5))
    run = {"q1": ["a", "b"], "q2": [], "q3": ["x", "b"]}
    graded = match(truth, known.rankings(run))
    alone = [
        inferred_ap(truth, match(truth, known.rankings({q: run[q]})), threshold=1)[0]
        for q in ("q1", "q2", "q3")
    ]
    assert inferred_ap(truth, graded, threshold=1).tolist() == alone
    assert alone[1] == 0.0


def test_names() -> None:
    assert parse_measure("infNDCG@10").name == "infNDCG@10"
    assert parse_measure("infNDCG").depth == "all"
    with pytest.raises(ValueError, match="has no threshold"):
        parse_measure("infNDCG(rel=2)@5")

"""Replaying strategies against labels that are known already: what each would have found for how many
judgments.

A strategy hands pairs out level by level: `depth` rank by rank, as a pool is judged deeper and deeper;
`budget` place by place in fused order, as the budget of every question grows. After each level stands how
many pairs have been judged in all and how many of them are relevant. Pairs without a label count as judged
and not relevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pooling.strategies import (
    FUSIONS,
    FUSIONS_OVER_SCORES,
    Pairs,
    Returns,
    budget,
    is_among,
    pair_keys,
    union,
)

Ranking = tuple[Sequence[str], Sequence[float] | None]

#: What can be simulated: `depth`, and `budget` in each fused order.
SIMULATED = ("depth", *(f"budget:{fusion}" for fusion in FUSIONS))


class Curve(NamedTuple):
    """A strategy's course: (judgments, relevant found) after each level, from (0, 0)."""

    name: str
    points: list[tuple[int, int]]


class Simulation(NamedTuple):
    """The curves, and what they can reach: the union's size, its relevant pairs, all relevant pairs of the labels."""

    curves: list[Curve]
    union: int
    relevant_in_union: int
    relevant: int
    unlabelled: int


def simulate(
    runs: Sequence[Mapping[str, Ranking]],
    labels: Mapping[str, Mapping[str, int]],
    strategies: Sequence[str],
    *,
    k: int,
    threshold: int = 1,
) -> Simulation:
    """Replay the strategies over the runs, cut at k, on the questions that have a relevant label.

    `runs` map questions to their chunks, best first, and scores where there are any. Raises ValueError for a
    strategy that is not one of `SIMULATED` or that needs scores which a run does not have.
    """
    for name in strategies:
        if name not in SIMULATED:
            raise ValueError(f"{name!r} cannot be simulated; choose from {', '.join(SIMULATED)}.")
    judged: dict[str, list[int]] = {name: [] for name in strategies}
    found: dict[str, list[int]] = {name: [] for name in strategies}
    totals = np.zeros(4, dtype=np.int64)
    for question in sorted(labels):
        grades = labels[question]
        if not any(grade >= threshold for grade in grades.values()):
            continue
        pairs, relevant, labelled = _one_question(runs, question, grades, k, threshold)
        totals += (
            len(pairs),
            int(relevant.sum()),
            sum(grade >= threshold for grade in grades.values()),
            int((~labelled).sum()),
        )
        for name in strategies:
            level = _levels(name, pairs)
            _add(judged[name], np.bincount(level))
            _add(found[name], np.bincount(level, weights=relevant).astype(np.int64))
    curves = [
        Curve(name, list(zip(_running(judged[name]), _running(found[name]), strict=True)))
        for name in strategies
    ]
    return Simulation(curves, *map(int, totals))


def _one_question(
    runs: Sequence[Mapping[str, Ranking]], question: str, grades: Mapping[str, int], k: int, threshold: int
) -> tuple[Pairs, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The union of one question, which of its pairs are relevant, and which have a label."""
    numbers: dict[str, int] = {}
    chunk: list[int] = []
    run: list[int] = []
    rank: list[int] = []
    score: list[float] = []
    has_scores = True
    for position, rankings in enumerate(runs):
        chunks, scores = rankings.get(question, ((), None))
        chunk += [numbers.setdefault(one, len(numbers)) for one in chunks[:k]]
        run += [position] * len(chunks[:k])
        rank += range(1, len(chunks[:k]) + 1)
        has_scores = has_scores and (scores is not None or not len(chunks))
        score += list(scores[:k]) if scores is not None else [0.0] * len(chunks[:k])
    pairs = union(
        Returns(
            question=np.zeros(len(chunk), np.int32),
            chunk=np.array(chunk, dtype=np.int32),
            run=np.array(run, dtype=np.int16),
            rank=np.array(rank, dtype=np.int32),
            score=np.array(score) if has_scores else None,
        )
    )
    relevant = [numbers[one] for one, grade in grades.items() if grade >= threshold and one in numbers]
    labelled = [numbers[one] for one in grades if one in numbers]
    return pairs, _among(pairs, relevant), _among(pairs, labelled)


def _among(pairs: Pairs, chunks: list[int]) -> npt.NDArray[np.bool_]:
    return is_among(pairs.key, np.sort(pair_keys(np.zeros(len(chunks), np.int64), chunks)))


def _levels(name: str, pairs: Pairs) -> npt.NDArray[np.int64]:
    """The level, from 1, at which the strategy hands each pair of one question out."""
    if not len(pairs):
        return np.zeros(0, dtype=np.int64)
    if name == "depth":
        return np.minimum.reduceat(pairs.rank, pairs.starts[:-1]).astype(np.int64)
    fusion = name.partition(":")[2]
    if fusion in FUSIONS_OVER_SCORES and pairs.score is None:
        raise ValueError(f"{name} adds up scores, and a run has none.")
    priority = budget(pairs, {"budget": len(pairs), "fusion": fusion, "order": "fused"}).priority
    assert priority is not None
    return 1 - priority


def _add(total: list[int], counts: npt.NDArray[np.int64]) -> None:
    """Add the counts of one question's levels; level 0, before anything is judged, has none."""
    total += [0] * (len(counts) - len(total))
    for level, count in enumerate(counts.tolist()):
        total[level] += count


def _running(counts: list[int]) -> list[int]:
    return np.cumsum(counts or [0]).tolist()

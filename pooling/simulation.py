"""Replaying strategies against labels that are known already: what each would have found for how many
judgments.

A strategy hands pairs out level by level: `depth` rank by rank, as a pool is judged deeper and deeper; the others
place by place, the first pair of every question, then the second: `budget` in fused order, those of `pooling.adaptive`
in the order that the labels of the pairs before lead them to, `stratified` the drawn pairs alone, best ranks first.
After each level stands how many pairs have been judged in all and how many of them are relevant. Pairs without a label
count as judged and not relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pooling.adaptive import ADAPTIVE, start_policy
from pooling.strategies import (
    FUSIONS,
    FUSIONS_OVER_SCORES,
    Flags,
    Ints,
    Pairs,
    Returns,
    budget,
    is_among,
    mixed,
    pair_keys,
    parse_strata,
    stratified,
    union,
)

Ranking = tuple[Sequence[str], Sequence[float] | None]

#: What can be simulated by name alone; `stratified:1-10:1,11-50:0.2` and the like can be as well.
SIMULATED = ("depth", *(f"budget:{fusion}" for fusion in FUSIONS), *ADAPTIVE)

#: The shares of the union's relevant pairs whose cost is told.
SHARES = (0.5, 0.8, 0.9, 0.95, 1.0)


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


def simulated(runs: Sequence[Mapping[str, Ranking]]) -> list[str]:
    """Those of `SIMULATED` that the runs allow: none that adds up scores where a ranking has none."""
    scored = all(scores is not None for run in runs for _, scores in run.values())
    return [name for name in SIMULATED if scored or name.partition(":")[2] not in FUSIONS_OVER_SCORES]


def simulate(
    runs: Sequence[Mapping[str, Ranking]],
    labels: Mapping[str, Mapping[str, int]],
    strategies: Sequence[str],
    *,
    k: int,
    threshold: int = 1,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Simulation:
    """Replay the strategies over the runs, cut at k, on the questions that have a relevant label.

    `runs` map questions to their chunks, best first, and scores where there are any. By `seed` ties are broken and
    lots are drawn; `progress` is told how many questions are done, of how many. Raises ValueError for a strategy that
    cannot be simulated or that needs scores which a run does not have.
    """
    for name in strategies:
        _refuse_unknown(name)
    judged: dict[str, list[int]] = {name: [] for name in strategies}
    found: dict[str, list[int]] = {name: [] for name in strategies}
    totals = np.zeros(4, dtype=np.int64)
    for number, question in enumerate(sorted(labels)):
        progress(number, len(labels))
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
            level = _levels(name, pairs, relevant, (seed, number))
            levels = int(level.max(initial=0)) + 1
            _add(judged[name], np.bincount(level[level > 0], minlength=levels))
            _add(found[name], np.bincount(level[(level > 0) & relevant], minlength=levels))
    curves = [
        Curve(name, list(zip(_running(judged[name]), _running(found[name]), strict=True)))
        for name in strategies
    ]
    return Simulation(curves, *map(int, totals))


def _one_question(
    runs: Sequence[Mapping[str, Ranking]], question: str, grades: Mapping[str, int], k: int, threshold: int
) -> tuple[Pairs, Flags, Flags]:
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


def _among(pairs: Pairs, chunks: list[int]) -> Flags:
    return is_among(pairs.key, np.sort(pair_keys(np.zeros(len(chunks), np.int64), chunks)))


def _refuse_unknown(name: str) -> None:
    kind, _, strata = name.partition(":")
    if kind == "stratified":
        parse_strata(strata)
    elif name not in SIMULATED:
        raise ValueError(
            f"{name!r} cannot be simulated; choose from {', '.join(SIMULATED)}, stratified:RANKS:RATE,…"
        )


def _levels(name: str, pairs: Pairs, relevant: Flags, seed: tuple[int, int]) -> Ints:
    """The level, from 1, at which the strategy hands each pair of one question out; 0: never."""
    if not len(pairs):
        return np.zeros(0, dtype=np.int64)
    kind, _, details = name.partition(":")
    if kind == "depth":
        return pairs.best_rank
    if kind in ADAPTIVE:
        return _learning_levels(kind, pairs, relevant, seed)
    if kind == "stratified":
        return _drawn_levels(details, pairs, seed)
    if details in FUSIONS_OVER_SCORES and pairs.score is None:
        raise ValueError(f"{name} adds up scores, and a run has none.")
    priority = budget(pairs, {"budget": len(pairs), "fusion": details, "order": "fused"}, pairs.key).priority
    assert priority is not None
    return 1 - priority


def _learning_levels(name: str, pairs: Pairs, relevant: Flags, seed: tuple[int, int]) -> Ints:
    pair = np.repeat(np.arange(len(pairs)), pairs.return_counts)
    order = np.lexsort((pairs.rank, pairs.run))
    starts = np.flatnonzero(np.diff(pairs.run[order], prepend=-1))
    policy = start_policy(name, [part.tolist() for part in np.split(pair[order], starts[1:])], seed=seed)
    level = np.zeros(len(pairs), dtype=np.int64)
    answers = relevant.tolist()
    for place in range(1, len(pairs) + 1):
        one = policy.next()
        assert one is not None
        policy.learn(one, relevant=answers[one])
        level[one] = place
    return level


def _drawn_levels(strata: str, pairs: Pairs, seed: tuple[int, int]) -> Ints:
    lots = mixed(mixed(pairs.key, seed=seed[0]), seed=seed[1])
    drawn = stratified(pairs, {"strata": strata}, lots).taken
    order = np.lexsort((lots, pairs.best_rank, ~drawn))
    level = np.zeros(len(pairs), dtype=np.int64)
    level[order] = np.arange(1, len(pairs) + 1)
    return np.where(drawn, level, 0)


def _add(total: list[int], counts: Ints) -> None:
    """Add the counts of one question's levels; level 0, before anything is judged, has none."""
    total += [0] * (len(counts) - len(total))
    for level, count in enumerate(counts.tolist()):
        total[level] += count


def _running(counts: list[int]) -> list[int]:
    return np.cumsum(counts or [0]).tolist()


def simulation_json(simulation: Simulation) -> dict[str, Any]:
    """The curves and what each share of the relevant pairs costs, for JSON; a cost of None: it is never reached."""
    return {
        "union": simulation.union,
        "unlabelled": simulation.unlabelled,
        "relevant_in_union": simulation.relevant_in_union,
        "relevant": simulation.relevant,
        "strategies": [
            {
                "name": curve.name,
                "curve": [list(point) for point in curve.points],
                "judgments_to_find": {
                    str(share): judgments_to_find(curve, share * simulation.relevant_in_union)
                    for share in SHARES
                },
            }
            for curve in simulation.curves
        ],
    }


def judgments_to_find(curve: Curve, wanted: float) -> int | None:
    """The judgments after the first level at which at least so many relevant pairs are found; None: never."""
    return next((judgments for judgments, found in curve.points if found >= wanted - 1e-9), None)


def found_after(curve: Curve, judgments: int) -> float:
    """How many relevant pairs a curve has after so many judgments; between two of its points, on a straight line."""
    at, found = zip(*curve.points, strict=True)
    return float(np.interp(judgments, at, found))

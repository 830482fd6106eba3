"""Strategies against their slow, obvious twins. Text in, numbers out; no database."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from pooling.strategies import (
    MAX_QUESTIONS,
    MAX_RETURNS,
    STRATEGIES,
    Returns,
    complete_parameters,
    is_among,
    mixed,
    pair_keys,
    reading_order,
    union,
)

# One run a line: question: chunks, best first.
RUNS = """
0: 1 2 3 | 1: 9 8
0: 3 4   | 1: 8 7
0: 4     |
"""


def parse(text: str) -> list[dict[int, list[int]]]:
    runs = []
    for line in text.strip().splitlines():
        rankings = (part.split(":") for part in line.split("|") if part.strip())
        runs.append({int(q): [int(c) for c in chunks.split()] for q, chunks in rankings})
    return runs


def returns_of(runs: list[dict[int, list[int]]], scores: bool = False) -> Returns:
    rows = [
        (question, chunk, position, rank, 10.0 - rank)
        for position, run in enumerate(runs)
        for question, chunks in run.items()
        for rank, chunk in enumerate(chunks, 1)
    ]
    question, chunk, run, rank, score = (np.array(column) for column in zip(*rows, strict=True))
    return Returns(question, chunk, run, rank, score.astype(float) if scores else None)


def select(name: str, runs: list[dict[int, list[int]]], **parameters) -> set[tuple[int, int]]:
    pairs = union(returns_of(runs, scores=True))
    selection = STRATEGIES[name].select(pairs, complete_parameters(name, parameters), lots(pairs))
    taken = np.flatnonzero(selection.taken)
    return set(zip(pairs.question[taken].tolist(), pairs.chunk[taken].tolist(), strict=True))


def lots(pairs, seed: int = 0):
    return mixed(pairs.key, seed=seed)


def random_runs(seed: int) -> list[dict[int, list[int]]]:
    rng = random.Random(seed)
    return [
        {q: rng.sample(range(1, 30), rng.randint(0, 12)) for q in range(4) if rng.random() < 0.9}
        for _ in range(rng.randint(1, 5))
    ] + [{0: [1]}]


def test_a_union_has_each_pair_once_with_who_returned_it() -> None:
    pairs = union(returns_of(parse(RUNS)))
    told = []
    for i in range(len(pairs)):
        entries = slice(pairs.starts[i], pairs.starts[i + 1])
        by = list(zip(pairs.run[entries].tolist(), pairs.rank[entries].tolist(), strict=True))
        told.append((int(pairs.question[i]), int(pairs.chunk[i]), by))
    assert told == [
        (0, 1, [(0, 1)]),
        (0, 2, [(0, 2)]),
        (0, 3, [(0, 3), (1, 1)]),
        (0, 4, [(1, 2), (2, 1)]),
        (1, 7, [(1, 2)]),
        (1, 8, [(0, 2), (1, 1)]),
        (1, 9, [(0, 1)]),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_depth_takes_the_whole_union(seed: int) -> None:
    runs = random_runs(seed)
    assert select("depth", runs) == {
        (q, chunk) for run in runs for q, chunks in run.items() for chunk in chunks
    }


def fused_slowly(runs: list[dict[int, list[int]]], question: int, fusion: str) -> dict[int, Fraction]:
    """Exact fractions, in place of whole multiples of 2^-40."""
    total: dict[int, Fraction] = {}
    count: dict[int, int] = {}
    for run in runs:
        chunks = run.get(question, [])
        for rank, chunk in enumerate(chunks, 1):
            # Scores are 10 - rank here, so the scaled score falls evenly from 1 to 0.
            scaled = Fraction(len(chunks) - rank, len(chunks) - 1) if len(chunks) > 1 else Fraction(1)
            value = {
                "rrf": Fraction(1, 60 + rank),
                "votes": Fraction(1),
                "combsum": scaled,
                "combmnz": scaled,
            }
            total[chunk] = total.get(chunk, Fraction(0)) + value[fusion]
            count[chunk] = count.get(chunk, 0) + 1
    if fusion == "combmnz":
        return {chunk: value * count[chunk] for chunk, value in total.items()}
    return total


@pytest.mark.parametrize("fusion", ["rrf", "votes", "combsum", "combmnz"])
@pytest.mark.parametrize("seed", range(10))
def test_a_budget_takes_the_first_in_fused_order(seed: int, fusion: str) -> None:
    runs = random_runs(seed)
    taken = select("budget", runs, budget=5, fusion=fusion)
    for question in range(4):
        fused = fused_slowly(runs, question, fusion)
        got = {chunk for q, chunk in taken if q == question}
        assert len(got) == min(5, len(fused))
        # Equal fused scores may be cut either way; what was left out is never better than what was taken.
        if got and len(fused) > 5:
            worst = min(fused[chunk] for chunk in got)
            best_left = max(value for chunk, value in fused.items() if chunk not in got)
            assert float(best_left) <= float(worst) + 1e-9


@pytest.mark.parametrize("fusion", ["rrf", "combsum"])
@pytest.mark.parametrize("seed", range(10))
def test_a_budget_does_not_depend_on_the_order_of_the_runs(seed: int, fusion: str) -> None:
    runs = random_runs(seed)
    shuffled = random.Random(seed).sample(runs, len(runs))
    for budget in (1, 3, 6):
        assert select("budget", runs, budget=budget, fusion=fusion) == select(
            "budget", shuffled, budget=budget, fusion=fusion
        )


def test_a_budget_favours_neither_of_two_runs_that_share_nothing() -> None:
    """Every rank is a tie between the two; chunk numbers of the first run are all lower, as after a first import."""
    first, second = list(range(1, 401)), list(range(1000, 1400))
    taken = select("budget", [{0: first}, {0: second}], budget=401)
    from_first = sum(chunk < 1000 for _, chunk in taken)
    assert 200 <= from_first <= 201
    odd = [
        len({c for _, c in select("budget", [{0: [i]}, {0: [i + 1000]}], budget=1) if c < 1000})
        for i in range(1, 200)
    ]
    assert 70 < sum(odd) < 130


def test_scores_that_are_all_equal_count_as_one() -> None:
    returns = Returns(*(np.array(x) for x in ([0, 0], [1, 2], [0, 0], [1, 2])), score=np.array([3.0, 3.0]))
    pairs = union(returns)
    fused = STRATEGIES["budget"].select(
        pairs, complete_parameters("budget", {"budget": 1, "fusion": "combsum"}), lots(pairs)
    )
    assert fused.taken.tolist() == [True, False]  # the better rank decides


def test_fusing_scores_without_scores_is_refused() -> None:
    pairs = union(returns_of(parse(RUNS)))
    parameters = complete_parameters("budget", {"budget": 1, "fusion": "combmnz"})
    with pytest.raises(ValueError, match="have none"):
        STRATEGIES["budget"].select(pairs, parameters, lots(pairs))


# Sampling


def sample(runs: list[dict[int, list[int]]], strata: str, seed: int = 0):
    pairs = union(returns_of(runs))
    return pairs, STRATEGIES["stratified"].select(
        pairs, complete_parameters("stratified", {"strata": strata}), lots(pairs, seed)
    )


def test_a_stratum_is_told_by_the_best_rank_of_any_run() -> None:
    """Chunk 3 stands at rank 3 and at rank 1: it is of the first stratum. Rank 4 is in none."""
    pairs, selection = sample([{0: [1, 2, 3, 5]}, {0: [3, 4]}], "1-1:1,2-3:0.5")
    assert dict(zip(pairs.chunk.tolist(), selection.chance.tolist(), strict=True)) == {
        1: 1.0,
        2: 0.5,
        3: 1.0,
        4: 0.5,
        5: 0.0,
    }
    assert selection.taken[[0, 2]].all()
    assert not selection.taken[4]
    assert selection.unsampled.tolist() == [
        False,
        not selection.taken[1],
        False,
        not selection.taken[3],
        False,
    ]


def test_each_pair_is_drawn_as_often_as_its_rate_says_and_by_itself() -> None:
    runs = [{0: list(range(1, 61))}]
    drawn = np.array([sample(runs, "1-10:1,11-40:0.3,41-50:0.05", seed)[1].taken for seed in range(4000)])
    often = drawn.mean(axis=0)
    assert (often[:10] == 1).all()
    assert often[10:40] == pytest.approx(0.3, abs=0.035)
    assert often[40:50] == pytest.approx(0.05, abs=0.02)
    assert (often[50:] == 0).all()
    # Two pairs of a stratum are drawn together as often as the product says.
    assert (drawn[:, 10] & drawn[:, 11]).mean() == pytest.approx(0.09, abs=0.02)
    assert (drawn[:, 20] & drawn[:, 21]).mean() == pytest.approx(0.09, abs=0.02)


def test_strata_are_told_in_one_way() -> None:
    assert complete_parameters("stratified", {"strata": " 1-10:1.0 , 11-50:.2"}) == {
        "strata": "1-10:1,11-50:0.2"
    }


@pytest.mark.parametrize(
    ("strategy", "given", "said"),
    [
        ("deep", {}, "no strategy 'deep'; choose from depth, budget"),
        ("depth", {"budget": 3}, "knows no budget"),
        ("budget", {}, "at least 1; got None"),
        ("budget", {"budget": 0}, "at least 1; got 0"),
        ("budget", {"budget": True}, "at least 1; got True"),
        ("budget", {"budget": 3, "fusion": "borda"}, "no fusion 'borda'"),
        ("budget", {"budget": 3, "order": "random"}, "shuffled or fused"),
        ("stratified", {}, "like 11-50:0.2; got ''"),
        ("stratified", {"strata": "1-10"}, "got '1-10'"),
        ("stratified", {"strata": "2-10:1"}, "after the beginning comes 1-…, not 2-10"),
        ("stratified", {"strata": "1-10:1,12-20:0.1"}, "after 1-10:1 comes 11-…, not 12-20"),
        ("stratified", {"strata": "1-10:1,11-5:0.1"}, "comes 11-…, not 11-5"),
        ("stratified", {"strata": "1-10:0"}, "A rate is above 0 and at most 1; stratum 1-10 has 0"),
        ("stratified", {"strata": "1-10:1.5"}, "stratum 1-10 has 1.5"),
        ("stratified", {"strata": "1-10:nan"}, "stratum 1-10 has nan"),
        ("max-mean", {"budget": 3}, "knows no budget"),
    ],
)
def test_parameters_that_are_wrong_say_what_is_right(strategy: str, given: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        complete_parameters(strategy, given)


def test_every_strategy_holds_nothing_at_all() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    pairs = union(Returns(nothing, nothing, nothing, nothing, np.zeros(0)))
    assert len(pairs) == 0
    for name in ("depth", "move-to-front"):
        assert STRATEGIES[name].select(pairs, {}, lots(pairs)).taken.tolist() == []
    assert STRATEGIES["stratified"].select(pairs, {"strata": "1-2:0.5"}, lots(pairs)).taken.tolist() == []
    for fusion in ("rrf", "votes", "combsum", "combmnz"):
        parameters = complete_parameters("budget", {"budget": 1, "fusion": fusion})
        assert STRATEGIES["budget"].select(pairs, parameters, lots(pairs)).taken.tolist() == []


def test_a_slice_that_is_too_large_is_refused_rather_than_miscounted() -> None:
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(ValueError, match="questions in one slice"):
        union(Returns(one * MAX_QUESTIONS, one, one, one))
    many = np.zeros(MAX_RETURNS + 1, dtype=np.int8)
    with pytest.raises(ValueError, match="returned chunks in one slice"):
        union(Returns(many, many, many, many))
    largest = union(Returns(one * (MAX_QUESTIONS - 1), one * (2**31 - 1), one, one))
    assert (largest.question.tolist(), largest.chunk.tolist()) == ([MAX_QUESTIONS - 1], [2**31 - 1])


def test_membership() -> None:
    keys = pair_keys([0, 0, 1], [5, 7, 5])
    assert is_among(keys, pair_keys([0, 1], [7, 6])).tolist() == [False, True, False]
    assert is_among(keys, pair_keys([], [])).tolist() == [False, False, False]


# The order in which assessors read


def test_the_order_of_reading_does_not_tell_the_rank() -> None:
    """Over many questions, the place of the chunk that was ranked first is spread evenly."""
    questions, per_question = 2000, 10
    question = np.repeat(np.arange(questions), per_question)
    identity = pair_keys(question, np.tile(np.arange(1, per_question + 1), questions))
    order = reading_order(question, identity, None, seed=7)
    place_of_first = np.flatnonzero(order % per_question == 0) % per_question
    counts = np.bincount(place_of_first, minlength=per_question)
    expected = questions / per_question
    assert ((counts - expected) ** 2 / expected).sum() < 33  # chi square, 9 degrees: p = 0.0001


def test_the_order_of_reading_depends_on_the_seed_and_not_on_the_slice() -> None:
    question = np.repeat(np.arange(3), 20)
    identity = pair_keys(question + 100, np.tile(np.arange(20), 3))
    whole = reading_order(question, identity, None, seed=1)
    assert sorted(whole.tolist()) == list(range(60))
    assert (question[whole] == question).all()
    last = reading_order(np.zeros(20, dtype=np.int64), identity[40:], None, seed=1)
    assert (last + 40).tolist() == whole[40:].tolist()
    assert reading_order(question, identity, None, seed=2).tolist() != whole.tolist()


def test_priority_comes_first_where_the_strategy_has_one() -> None:
    question = np.array([0, 0, 0, 1, 1])
    priority = np.array([-2, 0, -1, -1, 0])
    assert reading_order(question, pair_keys(question, range(5)), priority, seed=1).tolist() == [
        1,
        2,
        0,
        4,
        3,
    ]


def test_mixing_never_gives_one_number_twice() -> None:
    numbers = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(mixed(numbers, seed=2**62))) == 100_000

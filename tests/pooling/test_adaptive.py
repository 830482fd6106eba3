"""Strategies that go by the grades, each against what its paper says, worked by hand on small examples."""

from __future__ import annotations

import numpy as np
import pytest

from pooling.adaptive import (
    ADAPTIVE,
    BayesianBandit,
    Graded,
    MaxMean,
    MaxMeanNonStationary,
    MoveToFront,
    judging_order,
)

# Three runs that agree on their first chunk, so that it does not matter which of them begins.
#   A: 10 1 2 3 4      B: 10 5 6 7      C: 10 8 9
A, B, C = [10, 1, 2, 3, 4], [10, 5, 6, 7], [10, 8, 9]


def lots(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def asked(policy, answers: dict[int, bool], steps: int) -> list[int]:
    """What a policy asks for when it gets these answers; every other chunk is not relevant."""
    order = []
    for _ in range(steps):
        chunk = policy.next()
        order.append(chunk)
        policy.learn(chunk, relevant=answers.get(chunk, False))
    return order


@pytest.mark.parametrize("seed", range(8))
def test_move_to_front_stays_while_it_finds_and_leaves_at_the_first_miss(seed: int) -> None:
    """A: 1 2 3 4, B: 5 6 7, C: 8 9; only 1 and 2 are relevant. All runs begin with priority 0, and each is left at its
    first miss with -1. So in a first round A gives 1, 2 and 3, B gives 5 and C gives 8, A, B and C in any order; then
    all are equal again, and every chunk is a miss: a second round gives 4, 6 and 9 in any order, and 7 is last.
    """
    order = asked(MoveToFront([A[1:], B[1:], C[1:]], lots(seed)), {1: True, 2: True}, 9)
    assert sorted(order[:5]) == [1, 2, 3, 5, 8]
    at = order.index(1)
    assert order[at : at + 3] == [1, 2, 3]
    assert sorted(order[5:8]) == [4, 6, 9]
    assert order[8] == 7


def test_move_to_front_by_hand() -> None:
    """A: 1 2 3 4, B: 1 5 6. 1 is relevant: its run stays in front. Say that is A; after 2 (a miss) A stands at -1 and
    B at 0, so 5 is next; 5 is relevant, so 6 follows; 6 is a miss, B at -1; both are equal, B is empty, so A: 3, 4."""
    for seed in range(10):
        order = asked(MoveToFront([[1, 2, 3, 4], [1, 5, 6]], lots(seed)), {1: True, 5: True}, 6)
        assert order in ([1, 2, 5, 6, 3, 4], [1, 5, 6, 2, 3, 4])


def test_max_mean_by_hand() -> None:
    """Means begin at 1/2. 10, in all runs, is not relevant: 1/3 each. Grades so far: 1 relevant (A: 1 of 2, mean 2/4);
    5 not (B: 0 of 2, mean 1/4); C stays at 1/3. So A gives 2; not relevant: A falls to 2/5, still above 1/3, so 3; not
    relevant: 2/6, equal to C."""
    policy = MaxMean([A, B, C], lots())
    policy.learn(10, relevant=False)
    policy.learn(1, relevant=True)
    policy.learn(5, relevant=False)
    assert asked(policy, {}, 2) == [2, 3]
    assert policy.next() in (4, 8)


def test_a_grade_counts_for_every_run_that_returned_the_chunk() -> None:
    """7 is shared by the second and third run. It is relevant: both stand at 2/3, the first at 1/2."""
    policy = MaxMean([[1, 2], [7, 3], [4, 7, 5]], lots())
    policy.learn(7, relevant=True)
    assert policy.next() in (3, 4)
    policy.learn(3, relevant=False)  # the second falls to 2/4, the third stays at 2/3
    assert policy.next() == 4


def test_max_mean_non_stationary_forgets_by_hand() -> None:
    """Two runs, A: 1 2 3 4 and B: 5 6 7. A found two relevant chunks long ago, then missed two; B missed two.

    Stationary: A has 2 of 4, mean 3/6; B 0 of 2, mean 1/4. With memory 1/2: A's relevant go 1, 1.5, 0.75, 0.375 and its
    misses 0, 0, 1, 1.5: mean 1.375/3.875 = 0.355; B's misses 1, 1.5: mean 1/3.5 = 0.286. One more miss of A: 0.1875 and
    1.75, mean 1.1875/3.9375 = 0.302, and another: 0.09375 and 1.875, mean 0.276, which is below B; MaxMean stays with
    A, 3/8 against 1/4."""
    runs = [[1, 2, 3, 4, 11, 12, 13], [5, 6, 7]]
    history = [(1, True), (2, True), (3, False), (4, False), (5, False), (6, False)]
    forgetful, plain = MaxMeanNonStationary(runs, lots()), MaxMean(runs, lots())
    for policy in (forgetful, plain):
        for chunk, relevant in history:
            policy.learn(chunk, relevant=relevant)
    assert asked(forgetful, {}, 3) == [11, 12, 7]
    assert asked(plain, {}, 3) == [11, 12, 13]


def test_the_bayesian_bandit_draws_from_the_posteriors() -> None:
    """A has 3 relevant of 3, B 3 misses of 3: Beta(4, 1) against Beta(1, 4). B is drawn the higher with probability
    1/70 (the integral of 4 (1-y)^3 y^4 from 0 to 1 is 4 B(5, 4) = 1/70)."""
    from_b = 0
    for seed in range(4000):
        policy = BayesianBandit([[1, 2, 3, 4], [5, 6, 7, 8]], lots(seed))
        for chunk in (1, 2, 3):
            policy.learn(chunk, relevant=True)
        for chunk in (5, 6, 7):
            policy.learn(chunk, relevant=False)
        from_b += policy.next() == 8
    assert from_b / 4000 == pytest.approx(1 / 70, abs=0.006)


@pytest.mark.parametrize("strategy", ADAPTIVE)
@pytest.mark.parametrize("seed", range(5))
def test_every_chunk_that_waits_comes_exactly_once(strategy: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [rng.permutation(30)[: rng.integers(0, 25)].tolist() for _ in range(4)]
    union = {chunk for run in runs for chunk in run}
    judged = [chunk for chunk in union if rng.random() < 0.3]
    grades = [Graded(chunk, bool(rng.random() < 0.5)) for chunk in judged]
    waiting = {chunk for chunk in union - set(judged) if rng.random() < 0.8} | {99}  # 99 is in no run
    order = judging_order(strategy, runs, grades, waiting, seed=[seed])
    assert sorted(order) == sorted(waiting - {99})
    assert order == judging_order(strategy, runs, grades, waiting, seed=[seed])


@pytest.mark.parametrize("strategy", ["move-to-front", "max-mean", "max-mean-ns"])
def test_the_order_of_what_waits_follows_the_grades(strategy: str) -> None:
    """A found its first two; B and C missed. A's next chunk comes first, then as if nothing more were found."""
    grades = [Graded(1, True), Graded(5, False), Graded(8, False), Graded(2, True)]
    order = judging_order(strategy, [A[1:], B[1:], C[1:]], grades, {3, 4, 6, 7, 9}, seed=[4])
    assert order[0] == 3


def test_no_run_is_favoured_for_its_place() -> None:
    """Two runs that share nothing, before any grade: each begins about half of the time, whatever the strategy."""
    for strategy in ADAPTIVE:
        first = [judging_order(strategy, [[1], [2]], [], {1, 2}, seed=[seed])[0] for seed in range(400)]
        assert 150 < first.count(1) < 250


def test_a_grade_that_no_run_would_have_given_next_moves_no_front() -> None:
    """3 is far down A: judged elsewhere, it says nothing of A's turn, and is passed over later."""
    policy = MoveToFront([A], lots())
    policy.learn(3, relevant=False)
    assert asked(policy, {}, 4) == [10, 1, 2, 4]


def test_a_miss_of_another_run_does_not_end_the_turn_of_the_run_in_front() -> None:
    """1 put A in front. 5, B's next, was on somebody's screen already and is a miss: B falls to -1, A gives 2."""
    for seed in range(10):
        policy = MoveToFront([A[1:], B[1:], C[1:]], lots(seed))
        policy.learn(1, relevant=True)
        policy.learn(5, relevant=False)
        assert policy.next() == 2

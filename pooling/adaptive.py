"""Strategies that go by the grades: which chunk of one question to judge next, after what was judged so far. Pure.

Every run of the pool is a source. At each step a strategy picks a run, and the best-ranked chunk of that run which is
not judged yet comes next; the grade tells the strategy something of the runs. `judging_order` is that as one function
of rankings, grades and seed; a `Policy` is the same step by step. Grades count as relevant or not, by the eval set's
threshold. Between runs that are equal a lot decides, each time anew: a fixed order would favour the run that was
imported first, and a run that nobody finds fault with would never be left.

Sources: the front is G. V. Cormack, C. R. Palmer and C. L. A. Clarke, Efficient construction of large test
collections, SIGIR 1998; the bandits are D. E. Losada, J. Parapar and A. Barreiro, Feeling lucky? Multi-armed bandits
for ordering judgements in pooling-based evaluation, SAC 2016, and the same, Multi-armed bandits for adjudicating
documents in pooling-based evaluation of information retrieval systems, Information Processing and Management 53 (5),
2017.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, NamedTuple

import numpy as np


class Graded(NamedTuple):
    """A chunk that was judged for the question, and whether it was found relevant."""

    chunk: int
    relevant: bool


class Policy(ABC):
    """One question under one strategy: asks for the next chunk, and learns from the answer.

    `rankings` are the runs' chunks, best first; `random` gives the lots.
    """

    def __init__(self, rankings: Sequence[Sequence[int]], random: np.random.Generator) -> None:
        self.rankings = rankings
        self.random = random
        self._place = [0] * len(rankings)
        self._judged: set[int] = set()
        self._returned_by: dict[int, list[int]] = {}
        for run, chunks in enumerate(rankings):
            for chunk in chunks:
                self._returned_by.setdefault(chunk, []).append(run)

    def next(self) -> int | None:
        """The chunk to judge now; None when all are judged."""
        runs = self._waiting()
        return self._head(self._pick(runs)) if runs else None

    def learn(self, chunk: int, *, relevant: bool) -> None:
        """Take note of a grade, whether or not the chunk was asked for."""
        asked = [run for run in self._waiting() if self._head(run) == chunk]
        self._credit(asked, self._returned_by.get(chunk, []), relevant)
        self._judged.add(chunk)

    def _waiting(self) -> list[int]:
        """The runs that have a chunk left to judge."""
        for run, chunks in enumerate(self.rankings):
            place = self._place[run]
            while place < len(chunks) and chunks[place] in self._judged:
                place += 1
            self._place[run] = place
        return [run for run, chunks in enumerate(self.rankings) if self._place[run] < len(chunks)]

    def _head(self, run: int) -> int:
        return self.rankings[run][self._place[run]]

    def _best(self, runs: list[int], value: Callable[[int], float]) -> int:
        """A run of the highest value."""
        values = [value(run) for run in runs]
        highest = max(values)
        best = [run for run, its_value in zip(runs, values, strict=True) if its_value == highest]
        return best[0] if len(best) == 1 else best[int(self.random.integers(len(best)))]

    @abstractmethod
    def _pick(self, runs: list[int]) -> int:
        """Which of the runs that have a chunk left gives the next one."""

    @abstractmethod
    def _credit(self, asked: list[int], returned_by: list[int], relevant: bool) -> None:
        """Learn from a grade: `asked` are the runs whose next chunk it was, `returned_by` all that returned it."""


class MoveToFront(Policy):
    """Stay with a run while its chunks are relevant; at the first that is not, its priority falls by one, and the run
    of the highest priority is next (Cormack, Palmer and Clarke 1998).

    A grade counts for the run that gave the chunk. A chunk that was no run's next one counts for none.
    """

    def __init__(self, rankings: Sequence[Sequence[int]], random: np.random.Generator) -> None:
        super().__init__(rankings, random)
        self._priority = [0] * len(rankings)
        self._front = -1

    def _pick(self, runs: list[int]) -> int:
        # Between runs of equal priority the one in front stays.
        return self._best(runs, lambda run: self._priority[run] + (0.5 if run == self._front else 0))

    def _credit(self, asked: list[int], returned_by: list[int], relevant: bool) -> None:
        if not asked:
            return
        run = self._pick(asked)
        if relevant:
            self._front = run
            return
        self._priority[run] -= 1
        if run == self._front:
            self._front = -1


class Bandit(Policy):
    """Each run is an arm whose chance of a relevant chunk has the prior Beta(1, 1); a grade counts for every run that
    returned the chunk. `memory` is what the earlier grades of a run still weigh when a new one comes in."""

    memory: ClassVar[float] = 1.0

    def __init__(self, rankings: Sequence[Sequence[int]], random: np.random.Generator) -> None:
        super().__init__(rankings, random)
        self._relevant = [0.0] * len(rankings)
        self._not_relevant = [0.0] * len(rankings)

    def _credit(self, asked: list[int], returned_by: list[int], relevant: bool) -> None:
        for run in returned_by:
            self._relevant[run] = self.memory * self._relevant[run] + relevant
            self._not_relevant[run] = self.memory * self._not_relevant[run] + (not relevant)


class BayesianBandit(Bandit):
    """Draw a chance for each run from its posterior, Beta(1 + relevant, 1 + not relevant), and pick the highest:
    Thompson sampling (Losada, Parapar and Barreiro 2016)."""

    def _pick(self, runs: list[int]) -> int:
        return self._best(
            runs, lambda run: self.random.beta(1 + self._relevant[run], 1 + self._not_relevant[run])
        )


class MaxMean(Bandit):
    """Pick the run of the highest posterior mean, (1 + relevant) / (2 + judged) (Losada, Parapar and Barreiro 2016)."""

    def _pick(self, runs: list[int]) -> int:
        return self._best(
            runs,
            lambda run: (1 + self._relevant[run]) / (2 + self._relevant[run] + self._not_relevant[run]),
        )


class MaxMeanNonStationary(MaxMean):
    """MaxMean in which older grades count less, since rankings get worse as one goes down (Losada, Parapar and
    Barreiro 2017: MM-NS).

    Their rate of forgetting lies between 0, where only a run's last grade counts, and 1, which is MaxMean. Here the
    earlier grades of a run weigh half with each new one: at 0 the few runs that a team compares are equal nearly
    always, so that lots decide more than grades.
    """

    memory = 0.5


ADAPTIVE: dict[str, type[Policy]] = {
    "move-to-front": MoveToFront,
    "bayesian-bandit": BayesianBandit,
    "max-mean": MaxMean,
    "max-mean-ns": MaxMeanNonStationary,
}


def start_policy(strategy: str, rankings: Sequence[Sequence[int]], *, seed: Sequence[int]) -> Policy:
    """A policy at its beginning, its lots drawn by whole numbers of any sign."""
    return ADAPTIVE[strategy](rankings, np.random.default_rng([number % 2**64 for number in seed]))


def judging_order(
    strategy: str,
    rankings: Sequence[Sequence[int]],
    grades: Sequence[Graded],
    waiting: Collection[int],
    *,
    seed: Sequence[int],
) -> list[int]:
    """The chunks that wait, the next one to judge first.

    `grades` are in the order in which they were given. What comes after the first chunk is what the strategy would
    ask for if nothing more were found relevant; a relevant answer changes it. Chunks that no run returned are not in
    the answer, and chunks that neither wait nor are judged are passed over.
    """
    known = {grade.chunk for grade in grades} | set(waiting)
    policy = start_policy(
        strategy,
        [[chunk for chunk in chunks if chunk in known] for chunks in rankings],
        seed=[*seed, len(grades)],  # else the same lots would be drawn after each grade
    )
    for grade in grades:
        policy.learn(grade.chunk, relevant=grade.relevant)
    order = []
    while (chunk := policy.next()) is not None:
        order.append(chunk)
        policy.learn(chunk, relevant=False)
    return order

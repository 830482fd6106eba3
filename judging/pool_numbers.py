"""The numbers of a pool: one computation for the preview, the pool's page, the command and the tests. Pure arithmetic.

Each pair of the union falls into exactly one of these, asked in this order: *beyond the budget* (the strategy left it
out), *covered* (a pool that this one extends has it), *not drawn* (pooled, and left unjudged on purpose by the
lot); and for the pairs of the pool itself *judged*, *cannot judge*, *queued*, *waiting for text*, or else the
*remainder*, which is what people have to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from judging.pair_states import PairStates
from pooling.pooled import PooledSlice
from pooling.strategies import Flags, Keys, is_among

# The classes of pairs in the order of the waterfall; `union` is their sum.
PARTS = (
    "beyond_budget",
    "covered",
    "not_drawn",
    "judged",
    "cannot_judge",
    "queued",
    "waiting_for_text",
    "remainder",
)


@dataclass(frozen=True)
class PairCounts:
    """How the pairs of a union, of one question or of all, divide up."""

    union: int
    beyond_budget: int
    covered: int
    not_drawn: int
    judged: int
    cannot_judge: int
    queued: int
    waiting_for_text: int
    remainder: int
    in_judged_class: int = (
        0  # of the remainder, how many are of a class that has a judged member for the question
    )

    @property
    def pairs(self) -> int:
        """The pairs of the pool itself."""
        return self.union - self.beyond_budget - self.covered - self.not_drawn


@dataclass(frozen=True)
class QuestionCounts:
    question_id: int
    counts: PairCounts


@dataclass(frozen=True)
class RunCounts:
    """One run in the pool. `judged` and `unjudged` are about all that it returned within k, whoever pooled it."""

    returned: int
    judged: int
    unjudged: int
    unique: int  # returned by no other of the runs
    added: int  # pairs of the pool that no run before this one returned
    added_remainder: int  # those of them that people have to look at


@dataclass
class PoolNumbers:
    """All numbers of a pool at one moment. `overlap[i][j]` is how many pairs runs i and j both returned within k."""

    totals: PairCounts
    questions: list[QuestionCounts]
    runs: list[RunCounts]
    overlap: list[list[int]]
    missing: dict[int, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seconds_per_judgment: float = 0.0
    timed_judgments: int = (
        0  # how many the seconds are the median of; 0: they are the eval set's stated default
    )

    @property
    def seconds(self) -> float:
        """What the remainder costs one assessor, in seconds."""
        return self.totals.remainder * self.seconds_per_judgment


class Tally:
    """Adds up slices of questions."""

    def __init__(self, run_count: int) -> None:
        self._runs = run_count
        # Begun with none, so that a pool without questions has numbers too.
        self._by_question = [np.zeros((0, len(PARTS) + 1), dtype=np.int64)]
        self._question_ids = [np.zeros(0, dtype=np.int64)]
        self._by_run = np.zeros((5, run_count), dtype=np.int64)
        self._overlap = np.zeros((run_count, run_count), dtype=np.int64)

    def add(self, part: PooledSlice, states: PairStates, without_text: Keys) -> None:
        pairs = part.pairs
        parts = divide(part, states, without_text)
        question = pairs.question
        size = len(part.question_ids)
        self._question_ids.append(part.question_ids)
        remainder = parts == PARTS.index("remainder")
        copies = remainder & states.in_judged_class(pairs.key)
        kinds = [*(parts == i for i in range(len(PARTS))), copies]
        self._by_question.append(
            np.stack([np.bincount(question[kind], minlength=size) for kind in kinds], axis=1)
        )

        judged_return = np.repeat(is_among(pairs.key, states.judged), pairs.return_counts)
        first_run = pairs.first_run
        self._by_run += [
            self._per_run(pairs.run),
            self._per_run(pairs.run[judged_return]),
            self._per_run(first_run[pairs.return_counts == 1]),
            self._per_run(first_run[part.in_pool]),
            self._per_run(first_run[remainder]),
        ]
        self._overlap += shared(pairs.starts, pairs.run, self._runs)

    def _per_run(self, run: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        return np.bincount(run, minlength=self._runs)

    def numbers(self) -> PoolNumbers:
        by_question = np.concatenate(self._by_question)
        returned, judged, unique, added, added_remainder = self._by_run.tolist()
        return PoolNumbers(
            totals=_counts(by_question.sum(axis=0).tolist()),
            questions=[
                QuestionCounts(question_id, _counts(row))
                for question_id, row in zip(
                    np.concatenate(self._question_ids).tolist(), by_question.tolist(), strict=True
                )
            ],
            runs=[
                RunCounts(
                    returned=returned[i],
                    judged=judged[i],
                    unjudged=returned[i] - judged[i],
                    unique=unique[i],
                    added=added[i],
                    added_remainder=added_remainder[i],
                )
                for i in range(self._runs)
            ],
            overlap=self._overlap.tolist(),
        )


def _counts(kinds: Sequence[int]) -> PairCounts:
    return PairCounts(sum(kinds[: len(PARTS)]), *kinds)


def divide(part: PooledSlice, states: PairStates, without_text: Keys) -> npt.NDArray[np.int8]:
    """By pair, the index in `PARTS` of what it falls into."""
    key = part.pairs.key
    reasons: list[Flags] = [
        ~part.selection.taken & ~part.selection.unsampled,
        part.covered,
        part.unsampled,
        is_among(key, states.judged),
        is_among(key, states.cannot_judge),
        is_among(key, states.queued),
        np.isin(part.pairs.chunk, without_text) if len(without_text) else np.zeros(len(key), dtype=bool),
    ]
    return np.select(reasons, list(range(len(reasons))), default=len(reasons)).astype(np.int8)


def shared(
    starts: npt.NDArray[np.int64], run: npt.NDArray[np.integer], run_count: int
) -> npt.NDArray[np.int64]:
    """How many pairs each two of the runs both returned: run_count x run_count, a run's own number on the diagonal.

    Pair i was returned by the runs `run[starts[i]:starts[i + 1]]`.
    """
    # One bit a pair for each run; the bits that two runs share are counted 64 at a time.
    pair_count = len(starts) - 1
    returned = np.zeros((run_count, -(-pair_count // 64) * 64), dtype=bool)
    returned[run, np.repeat(np.arange(pair_count), np.diff(starts))] = True
    bits = np.packbits(returned, axis=1).view(np.uint64)
    total = np.zeros((run_count, run_count), dtype=np.int64)
    for i in range(run_count):
        total[i, i:] = total[i:, i] = np.bitwise_count(bits[i:] & bits[i]).sum(axis=1, dtype=np.int64)
    return total

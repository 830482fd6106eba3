"""What is done about unjudged chunks, and how many there are.

``raw`` counts an unjudged chunk as not relevant. ``judged-only`` (condensed lists, after Sakai, SIGIR 2007)
removes it before scoring: a check beside the raw number, never the headline. ``strict`` refuses to score.

In a release that lets an outside judge in, its labels are scored under all of these but ``strict``; and every count
here has such entries as unjudged, for no person has judged them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from scoring.classes import UNJUDGED, FloatArray, IntArray
from scoring.matching import Graded, count_before

Policy = Literal["raw", "judged-only", "strict"]
POLICIES: tuple[Policy, ...] = ("raw", "judged-only", "strict")


class UnjudgedEntry(NamedTuple):
    """One returned chunk without a label: question number, chunk, rank from 1."""

    question: int
    chunk: int
    rank: int


class UnjudgedError(ValueError):
    """The policy is strict and chunks within the depth are unjudged; ``entries`` lists every one."""

    def __init__(self, entries: Sequence[UnjudgedEntry], depth: int | None) -> None:
        self.entries = tuple(entries)
        self.depth = depth
        within = "in the rankings" if depth is None else f"within depth {depth}"
        super().__init__(f"{len(self.entries)} returned chunks {within} are unjudged")


def apply_policy(graded: Graded, policy: Policy, depth: int | None) -> Graded:
    """Return the rankings as the policy lets them be scored; ``depth`` is the deepest cut-off (None: all).

    Raises UnjudgedError under ``strict``, listing the unjudged entries of the rankings given.
    """
    if policy == "strict":
        entries = unjudged_entries(graded, depth)
        if entries:
            raise UnjudgedError(entries, depth)
    if policy == "judged-only":
        return _condensed(graded)
    return graded


def _condensed(graded: Graded) -> Graded:
    keep = graded.grade != UNJUDGED
    return Graded(
        graded.question,
        count_before(keep)[graded.start],
        graded.chunk[keep],
        graded.grade[keep],
        graded.row[keep],
        graded.known[keep],
        graded.counts[keep],
        graded.inadmissible[keep],
        graded.pooled[keep],
        graded.by_model[keep],
    )


def unjudged_entries(graded: Graded, depth: int | None) -> list[UnjudgedEntry]:
    """Return the entries without a label within the depth, in the order of the rankings."""
    rank = graded.rank
    within = graded.unjudged if depth is None else graded.unjudged & (rank <= depth)
    at = np.flatnonzero(within)
    question = np.repeat(graded.question, np.diff(graded.start))[at]
    return [
        UnjudgedEntry(*entry)
        for entry in zip(question.tolist(), graded.chunk[at].tolist(), rank[at].tolist(), strict=True)
    ]


class Unjudged(NamedTuple):
    """Counts within one depth, one number a ranking: returned, and of these without a label."""

    returned: IntArray
    unjudged: IntArray

    @property
    def rate(self) -> float:
        """Return unjudged / returned over all the rankings; 0 where nothing was returned."""
        returned = int(self.returned.sum())
        return int(self.unjudged.sum()) / returned if returned else 0.0

    @property
    def rates(self) -> FloatArray:
        """Return unjudged / returned of each ranking; 0 for one that returned nothing."""
        return self.unjudged / np.maximum(self.returned, 1)


def count_unjudged(graded: Graded, k: int | None) -> Unjudged:
    """Return how many chunks each ranking returned within k (None: at all), and how many have no label."""
    return count_unjudged_at(graded, {"k": k})["k"]


def count_unjudged_at(graded: Graded, depths: Mapping[str, int | None]) -> dict[str, Unjudged]:
    """Return the counts of `count_unjudged` for several depths at once."""
    counts = {}
    for name, k in depths.items():
        returned = _within(graded, k)
        counts[name] = Unjudged(returned, _between(graded.unjudged_before, graded.start, returned))
    return counts


def count_inadmissible(graded: Graded, k: int | None) -> IntArray:
    """Return, for each ranking, how many inadmissible chunks stand within k (None: in all of it)."""
    return count_inadmissible_at(graded, {"k": k})["k"]


def count_inadmissible_at(graded: Graded, depths: Mapping[str, int | None]) -> dict[str, IntArray]:
    """Return the counts of `count_inadmissible` for several depths at once."""
    before = count_before(graded.inadmissible)
    return {name: _between(before, graded.start, _within(graded, k)) for name, k in depths.items()}


def _within(graded: Graded, k: int | None) -> IntArray:
    lengths = np.diff(graded.start)
    return lengths if k is None else np.minimum(lengths, k)


def _between(before: IntArray, start: IntArray, within: IntArray) -> IntArray:
    """Return how many flags are set among the first ``within`` entries of each ranking."""
    return before[start[:-1] + within] - before[start[:-1]]


def unjudged_by_depth(graded: Graded, deepest: int) -> FloatArray:
    """Return the unjudged rate over all rankings at k = 1 … ``deepest`` (0 where nothing is returned)."""
    rank = graded.rank
    within = rank <= deepest
    returned = np.bincount(rank[within], minlength=deepest + 1)[1:].cumsum()
    missing = np.bincount(rank[within & graded.unjudged], minlength=deepest + 1)[1:].cumsum()
    return missing / np.maximum(returned, 1)

"""How far a judge's grades are off people's, and how far off its own when it is run again. Pure arithmetic."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labels.ratings import Array


class Bias(NamedTuple):
    """The judge's grades less people's over `pairs`: the mean, and the shares (0 to 1) above and below people's."""

    pairs: int
    mean: float | None
    too_high: float | None
    too_low: float | None

    @property
    def right(self) -> float | None:
        """The share of equal grades."""
        if self.too_high is None or self.too_low is None:
            return None
        return max(0.0, 1 - self.too_high - self.too_low)


def bias_of(judge: Array, people: Array) -> Bias:
    """Over the pairs that both graded."""
    apart = (judge - people)[~np.isnan(judge) & ~np.isnan(people)]
    if not len(apart):
        return Bias(0, None, None, None)
    return Bias(len(apart), float(apart.mean()), float((apart > 0).mean()), float((apart < 0).mean()))


class Flips(NamedTuple):
    """How often the judge changes its mind: over the `pairs` that it graded in two repetitions or more.

    `flipped` have grades that differ; `across_threshold` differ on whether the chunk is relevant. `by_size` counts the
    pairs by how far their highest and lowest grade lie apart.
    """

    pairs: int
    flipped: int
    across_threshold: int
    by_size: dict[int, int]

    @property
    def rate(self) -> float | None:
        return self.flipped / self.pairs if self.pairs else None

    @property
    def mean_size(self) -> float | None:
        """By how many grades, over those that differ."""
        total = sum(size * count for size, count in self.by_size.items())
        return total / self.flipped if self.flipped else None


def flips_of(grades: Array, threshold: int) -> Flips:
    """`grades`: pairs x repetitions, NaN where there is none."""
    several = grades[(~np.isnan(grades)).sum(axis=1) >= 2]
    if not len(several):
        return Flips(0, 0, 0, {})
    lowest, highest = np.nanmin(several, axis=1), np.nanmax(several, axis=1)
    sizes, counts = np.unique((highest - lowest)[highest > lowest].astype(int), return_counts=True)
    return Flips(
        pairs=len(several),
        flipped=int(counts.sum()),
        across_threshold=int(((highest >= threshold) & (lowest < threshold)).sum()),
        by_size=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
    )


class Relevance(NamedTuple):
    """What the judge calls relevant (grade >= threshold) against what people do, counted in pairs."""

    both: int
    judge_only: int
    people_only: int

    @property
    def precision(self) -> float | None:
        """Of what it calls relevant, the share that people do too."""
        return self.both / (self.both + self.judge_only) if self.both + self.judge_only else None

    @property
    def recall(self) -> float | None:
        """Of what people call relevant, the share that it does too."""
        return self.both / (self.both + self.people_only) if self.both + self.people_only else None


def relevance_of(judge: Array, people: Array, threshold: int) -> Relevance:
    """Over the pairs that both graded."""
    both = ~np.isnan(judge) & ~np.isnan(people)
    called, found = judge[both] >= threshold, people[both] >= threshold
    return Relevance(int((called & found).sum()), int((called & ~found).sum()), int((~called & found).sum()))

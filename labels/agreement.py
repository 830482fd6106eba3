"""How far those who rated the same items agree, and how far beyond chance. Pure arithmetic over arrays.

Ratings come as an array of items x raters, each entry a grade, NaN or None where a rater said nothing of the item.
`grades` are all grades of the scale, lowest first, those that nobody gave included: chance depends on them.

Every coefficient but the raw ones is 1 - (observed disagreement / disagreement by chance): 1 is full agreement, 0 what
chance alone would give, below 0 worse than chance. They differ in what they take for chance. Where that is 0 the
coefficient is undefined: its `value` is None, and `reason` says why.

Intervals are 95 % percentile bootstraps: whole items are drawn anew, with their ratings. Every formula is written for a
stack of draws, of which the data as they are is the first; each draw says how often it has each distinct item.

Sources:
Cohen (1960), A coefficient of agreement for nominal scales; Cohen (1968), Weighted kappa.
Fleiss (1971), Measuring nominal scale agreement among many raters; for missing ratings as Gwet (2014) extends it.
Krippendorff (2011), Computing Krippendorff's alpha-reliability.
Gwet (2008), Computing inter-rater reliability and its variance in the presence of high agreement (AC1);
Gwet (2014), Handbook of inter-rater reliability, 4th edition (AC2, weights, missing ratings).
Voorhees (2000), Variations in relevance judgments and the measurement of retrieval effectiveness (overlap).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from labels.ratings import (
    Array,
    Weights,
    as_codes,
    both_rated,
    distances,
    distinct,
    in_words,
    packed,
    rated_twice,
    weight_matrix,
)

Level = Literal["nominal", "ordinal"]

RESAMPLES = 1_000
SEED = 20_240_229

TOO_FEW = "No item has two ratings."
ONE_GRADE = (
    "Every rating is the same grade, so chance alone would agree as well: there is nothing to correct for."
)


@dataclass(frozen=True)
class Coefficient:
    """A measure of agreement over `items` items with at least two ratings, `ratings` in all.

    `value` is None where it is undefined, and `reason` says why. `observed` and `chance` are the shares (weighted where
    the coefficient is) of agreement that was seen and that chance would give; `low` and `high` the 95 % interval.
    """

    name: str
    value: float | None
    items: int
    ratings: int
    observed: float | None = None
    chance: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "interval": None if self.low is None else [self.low, self.high],
            "observed": self.observed,
            "chance": self.chance,
            "items": self.items,
            "ratings": self.ratings,
            "reason": self.reason,
        }


class Disagreement(NamedTuple):
    """Observed and by chance, each one number a draw; `chance` None where nothing is taken off for it."""

    observed: Array
    chance: Array | None


Formula = Callable[[Array], Disagreement]


def raw_agreement(
    ratings: ArrayLike, grades: Sequence[int], within: int = 0, resamples: int = RESAMPLES
) -> Coefficient:
    """The share of agreeing twos among the ratings of an item, averaged over items.

    Grades agree that are at most `within` apart.
    """
    counts = _Counts(as_codes(ratings, grades), len(grades))
    far_apart = (distances(len(grades)) > within).astype(float)
    name = "Raw agreement" if not within else f"Agreement within {within} grade{'s' * (within > 1)}"

    def formula(draws: Array) -> Disagreement:
        return Disagreement(counts.observed(draws, far_apart), None)

    return _coefficient(name, formula, counts.times, counts.items, counts.ratings, resamples)


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    grades: Sequence[int],
    weights: Weights | ArrayLike = "identity",
    resamples: int = RESAMPLES,
) -> Coefficient:
    """Cohen's kappa of two raters over the items that both rated; each rater's own habits make up chance.

    `weights` says how far two grades agree, from 0 to 1: by name, or as a matrix of grades x grades.
    """
    rows, times = distinct(both_rated(first, second, grades))
    size = len(grades)
    cells = np.zeros((len(rows), size, size))
    cells[np.arange(len(rows)), rows[:, 0], rows[:, 1]] = 1
    apart = 1 - weight_matrix(weights, size)

    def formula(draws: Array) -> Disagreement:
        table = np.tensordot(draws, cells, 1) / draws.sum(axis=1)[:, None, None]
        by_chance = np.einsum("bi,ij,bj->b", table.sum(axis=2), apart, table.sum(axis=1))
        return Disagreement((table * apart).sum(axis=(1, 2)), by_chance)

    name = "Cohen's kappa" + in_words(weights)
    return _coefficient(name, formula, times, int(times.sum()), 2 * int(times.sum()), resamples)


def fleiss_kappa(
    ratings: ArrayLike,
    grades: Sequence[int],
    weights: Weights | ArrayLike = "identity",
    resamples: int = RESAMPLES,
) -> Coefficient:
    """Fleiss' kappa of any number of raters; how often all of them together gave each grade makes up chance.

    An item with a single rating counts for how often grades are given, not for agreement.
    """
    counts = _Counts(as_codes(ratings, grades), len(grades))
    apart = 1 - weight_matrix(weights, len(grades))

    def formula(draws: Array) -> Disagreement:
        shares = counts.shares(draws)
        by_chance = np.einsum("bi,ij,bj->b", shares, apart, shares)
        return Disagreement(counts.observed(draws, apart), by_chance)

    name = "Fleiss' kappa" + in_words(weights)
    return _coefficient(name, formula, counts.times, counts.items, counts.ratings, resamples)


def gwet_ac(
    ratings: ArrayLike,
    grades: Sequence[int],
    weights: Weights | ArrayLike = "identity",
    resamples: int = RESAMPLES,
) -> Coefficient:
    """Gwet's AC1, or with weights AC2, of any number of raters; it does not collapse where one grade prevails.

    Chance agreement is sum of weights / (q (q - 1)) x sum over the q grades of share (1 - share). An item with a
    single rating counts for how often grades are given, not for agreement.
    """
    size = len(grades)
    counts = _Counts(as_codes(ratings, grades), size)
    agreeing = weight_matrix(weights, size)
    factor = agreeing.sum() / (size * (size - 1))

    def formula(draws: Array) -> Disagreement:
        shares = counts.shares(draws)
        by_chance = 1 - factor * (shares * (1 - shares)).sum(axis=1)
        return Disagreement(counts.observed(draws, 1 - agreeing), by_chance)

    weighing = in_words(weights)
    name = "Gwet's AC2" + weighing if weighing else "Gwet's AC1"
    return _coefficient(name, formula, counts.times, counts.items, counts.ratings, resamples)


def krippendorff_alpha(
    ratings: ArrayLike, grades: Sequence[int], level: Level = "ordinal", resamples: int = RESAMPLES
) -> Coefficient:
    """Krippendorff's alpha of any number of raters over the items with at least two ratings.

    At the ordinal level two grades are the farther apart, the more ratings lie between them.
    """
    size = len(grades)
    counts = _Counts(as_codes(ratings, grades), size, at_least=2)
    own = np.eye(size) * counts.table[:, None, :]
    several = np.maximum(counts.raters - 1, 1)[:, None, None]
    coincidences = (counts.table[:, :, None] * counts.table[:, None, :] - own) / several

    def formula(draws: Array) -> Disagreement:
        seen = np.tensordot(draws, coincidences, 1)
        given = seen.sum(axis=2)
        total = given.sum(axis=1)[:, None, None]
        by_chance = (given[:, :, None] * given[:, None, :] - np.eye(size) * given[:, None, :]) / (total - 1)
        if level == "nominal":
            apart = np.broadcast_to(1 - np.eye(size), seen.shape)
        else:
            # The middle rank of each grade, as a share of all ratings, so that distances lie between 0 and 1.
            ranks = (np.cumsum(given, axis=1) - given / 2) / total[:, :, 0]
            apart = (ranks[:, :, None] - ranks[:, None, :]) ** 2
        return Disagreement(*((table * apart / total).sum(axis=(1, 2)) for table in (seen, by_chance)))

    name = f"Krippendorff's alpha, {level}"
    return _coefficient(name, formula, counts.times, counts.items, counts.ratings, resamples)


def confusion_matrix(first: ArrayLike, second: ArrayLike, grades: Sequence[int]) -> Array:
    """How often the first rater gave the row's grade where the second gave the column's: grades x grades of counts."""
    both = both_rated(first, second, grades)
    table = np.zeros((len(grades), len(grades)), dtype=int)
    np.add.at(table, (both[:, 0], both[:, 1]), 1)
    return table


def confusion_of_all(ratings: ArrayLike, grades: Sequence[int]) -> Array:
    """Each two ratings of an item counted once, in the row of the lower grade and the column of the higher."""
    codes = as_codes(packed(ratings), grades)
    table = np.zeros((len(grades), len(grades)), dtype=int)
    for low, high in itertools.combinations(range(codes.shape[1]), 2):
        both = codes[codes[:, high] >= 0]
        np.add.at(table, (both[:, low], both[:, high]), 1)
    return table


class Overlap(NamedTuple):
    """Of the items that any of their raters found relevant (`any_of`), how many all of them did (`all_of`)."""

    all_of: int
    any_of: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where nobody found anything relevant."""
        return self.all_of / self.any_of if self.any_of else None


def relevant_overlap(ratings: ArrayLike, threshold: int) -> Overlap:
    """Agreement on what is relevant alone (grade >= threshold), over the items with at least two ratings."""
    table = rated_twice(ratings)
    said, relevant = ~np.isnan(table), table >= threshold
    found = relevant.any(axis=1)
    return Overlap(int((found & (relevant == said).all(axis=1)).sum()), int(found.sum()))


@dataclass(frozen=True)
class Agreement:
    """Everything at once, over the items with at least two ratings.

    `given` says how often each grade was given, lowest first. `cohen` and `cohen_weighted` are undefined unless there
    are two raters.
    """

    items: int
    ratings: int
    raters: int
    given: tuple[int, ...]
    raw: Coefficient
    within_one: Coefficient
    cohen: Coefficient
    cohen_weighted: Coefficient
    fleiss: Coefficient
    alpha: Coefficient
    alpha_nominal: Coefficient
    ac1: Coefficient
    ac2: Coefficient
    overlap: Overlap

    @property
    def commonest_share(self) -> float | None:
        """The share of the grade that was given most often, from 0 to 1."""
        return max(self.given) / self.ratings if self.ratings else None

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        corrected = (self.ac1, self.ac2, self.alpha, self.alpha_nominal, self.fleiss)
        return (self.raw, self.within_one, *corrected, self.cohen, self.cohen_weighted)


def measure_agreement(
    ratings: ArrayLike, grades: Sequence[int], threshold: int = 1, resamples: int = RESAMPLES
) -> Agreement:
    """All coefficients over the items with at least two ratings; weighted ones weigh linearly.

    Raises ValueError where a rating is not one of the `grades`.
    """
    table = rated_twice(ratings)
    table = table[:, (~np.isnan(table)).any(axis=0)]
    raters = table.shape[1]
    unnamed = packed(table)  # what is enough for all but Cohen's kappa

    def cohen(weights: Weights) -> Coefficient:
        if raters == 2:
            return cohen_kappa(table[:, 0], table[:, 1], grades, weights, resamples)
        reason = f"It compares two raters; here are {raters}." if raters else TOO_FEW
        ratings_given = int((~np.isnan(table)).sum())
        return Coefficient(
            "Cohen's kappa" + in_words(weights), None, len(table), ratings_given, reason=reason
        )

    return Agreement(
        items=len(table),
        ratings=int((~np.isnan(table)).sum()),
        raters=raters,
        given=tuple(int((table == grade).sum()) for grade in grades),
        raw=raw_agreement(unnamed, grades, 0, resamples),
        within_one=raw_agreement(unnamed, grades, 1, resamples),
        cohen=cohen("identity"),
        cohen_weighted=cohen("linear"),
        fleiss=fleiss_kappa(unnamed, grades, "identity", resamples),
        alpha=krippendorff_alpha(unnamed, grades, "ordinal", resamples),
        alpha_nominal=krippendorff_alpha(unnamed, grades, "nominal", resamples),
        ac1=gwet_ac(unnamed, grades, "identity", resamples),
        ac2=gwet_ac(unnamed, grades, "linear", resamples),
        overlap=relevant_overlap(unnamed, threshold),
    )


class _Counts:
    """The distinct items by how many ratings of each grade they have, and how often each is there."""

    def __init__(self, codes: Array, size: int, at_least: int = 1) -> None:
        table = np.stack([(codes == grade).sum(axis=1) for grade in range(size)], axis=1)
        table = table[table.sum(axis=1) >= at_least]
        self.table, self.times = distinct(table)
        self.raters = self.table.sum(axis=1)
        self.several = (self.raters >= 2).astype(float)
        self.items = int(self.times @ self.several)
        self.ratings = int(self.times @ (self.raters * self.several))

    def observed(self, draws: Array, apart: Array) -> Array:
        """How far apart the ratings of one item are: over all twos of them, then over items. One number a draw."""
        twos = np.maximum(self.raters * (self.raters - 1), 1)
        # A rating is at no distance from itself, so that it may stand among those it is compared with.
        distance = (self.table * (self.table @ apart)).sum(axis=1) / twos
        return np.asarray(draws @ distance / (draws @ self.several))

    def shares(self, draws: Array) -> Array:
        """How often each grade was given, each item counting once: draws x grades, each row adds up to 1."""
        return np.asarray(draws @ (self.table / self.raters[:, None]) / draws.sum(axis=1)[:, None])


def _coefficient(
    name: str, formula: Formula, times: Array, items: int, ratings: int, resamples: int
) -> Coefficient:
    if not items:
        return Coefficient(name, None, 0, 0, reason=TOO_FEW)
    observed, chance = formula(times[None, :].astype(float))
    agreed = float(1 - observed[0])
    if chance is None:
        value, by_chance = agreed, None
    elif chance[0] == 0:
        return Coefficient(name, None, items, ratings, agreed, 1.0, reason=ONE_GRADE)
    else:
        value, by_chance = float(1 - observed[0] / chance[0]), float(1 - chance[0])
    low = high = None
    if resamples:
        total = times.sum()
        draws = np.random.default_rng(SEED).multinomial(total, times / total, size=resamples).astype(float)
        # A draw without two ratings of one item, or of one grade only, has no value and does not count.
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = formula(draws)
            values = 1 - (drawn.observed if drawn.chance is None else drawn.observed / drawn.chance)
        values = values[np.isfinite(values)]
        if len(values):
            low, high = (float(end) for end in np.percentile(values, [2.5, 97.5]))
    return Coefficient(name, value, items, ratings, agreed, by_chance, low, high)

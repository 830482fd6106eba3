"""Coefficients of agreement: published examples to their digits, slow twins, other libraries, and what must hold."""

import itertools

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from labels.agreement import (
    ONE_GRADE,
    TOO_FEW,
    cohen_kappa,
    confusion_matrix,
    confusion_of_all,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    measure_agreement,
    raw_agreement,
    relevant_overlap,
)
from labels.ratings import distinct, weight_matrix


def rows(text: str) -> list[list[int | None]]:
    """Raters as lines, items as columns, a dot where a rating is missing; given back as items x raters."""
    lines = [
        [None if word == "." else int(word) for word in line.split()]
        for line in text.split("\n")
        if line.strip()
    ]
    return [list(item) for item in zip(*lines, strict=True)]


def from_table(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Two raters' ratings that make this confusion matrix, grades from 1."""
    cells = [
        (i + 1, j + 1) for i, line in enumerate(table) for j, times in enumerate(line) for _ in range(times)
    ]
    return [first for first, _ in cells], [second for _, second in cells]


# Krippendorff (2011), part C: four observers, twelve units, values missing. Gwet (2014) uses the same data; what
# he does not print (weighted coefficients) is as his package irrCAC gives it.
FOUR_OBSERVERS = rows("""
    1 2 3 3 2 1 4 1 2 . . .
    1 2 3 3 2 2 4 1 2 5 . 3
    . 3 3 3 2 3 4 2 2 5 1 .
    1 2 3 3 2 4 4 1 2 5 1 .
""")
# Krippendorff (2011), part A: two observers, two values.
BINARY = rows("""
    0 1 0 0 0 0 0 0 1 0
    1 1 1 0 0 1 0 0 0 0
""")
# Krippendorff (2011), part B: two observers, five values (a to e), Ben and Gerry.
BEN_AND_GERRY = rows("""
    1 1 2 2 4 3 3 3 5 4 4 1
    2 1 2 2 2 3 3 3 5 4 4 4
""")
# Fleiss (1971), table 1: 30 patients, each by six psychiatrists, five diagnoses; how many gave each.
PSYCHIATRISTS = [
    [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0], [2, 0, 4, 0, 0],
    [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6], [1, 0, 0, 5, 0], [1, 1, 0, 4, 0],
    [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1], [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0],
    [0, 2, 0, 4, 0], [1, 0, 2, 0, 3], [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0],
    [1, 0, 0, 4, 1], [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
]  # fmt: skip
DIAGNOSES = [[d for d, times in enumerate(line, 1) for _ in range(times)] for line in PSYCHIATRISTS]
# Cohen (1960): two clinicians, 200 patients; personality disorder, neurosis, psychosis.
CLINICIANS = from_table([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
# Cohen (1968): how far apart the three are, and so how far they agree.
COHEN_1968 = 1 - np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]]) / 6
# Gwet (2014): 100 pregnancies by two abstractors; ectopic, abnormal intrauterine, normal intrauterine.
ABSTRACTORS = from_table([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
# Feinstein and Cicchetti (1990): the same raw agreement, balanced and skewed.
BALANCED, SKEWED = from_table([[40, 9], [6, 45]]), from_table([[80, 10], [5, 5]])

THREE, FIVE, TWO = [1, 2, 3], [1, 2, 3, 4, 5], [1, 2]


def both(two: tuple[list[int], list[int]]) -> list[tuple[int, int]]:
    return list(zip(*two, strict=True))


@pytest.mark.parametrize(
    ("coefficient", "published"),
    [
        (krippendorff_alpha(BINARY, [0, 1], "nominal"), "0.095"),
        (krippendorff_alpha(BEN_AND_GERRY, FIVE, "nominal"), "0.692"),
        (krippendorff_alpha(FOUR_OBSERVERS, FIVE, "nominal"), "0.743"),
        (krippendorff_alpha(FOUR_OBSERVERS, FIVE, "ordinal"), "0.815"),
        (krippendorff_alpha(both(ABSTRACTORS), THREE, "nominal"), "0.7972585"),
        (fleiss_kappa(DIAGNOSES, FIVE), "0.430"),
        (raw_agreement(DIAGNOSES, FIVE), "0.556"),
        (fleiss_kappa(FOUR_OBSERVERS, FIVE), "0.76117"),
        (fleiss_kappa(FOUR_OBSERVERS, FIVE, "quadratic"), "0.86494"),
        (cohen_kappa(*CLINICIANS, THREE), "0.492"),
        (cohen_kappa(*CLINICIANS, THREE, COHEN_1968), "0.348"),
        (cohen_kappa(*ABSTRACTORS, THREE), "0.7964094"),
        (cohen_kappa(*ABSTRACTORS, THREE, "quadratic"), "0.8921569"),
        (gwet_ac(both(ABSTRACTORS), THREE), "0.8493305"),
        (gwet_ac(both(ABSTRACTORS), THREE, "quadratic"), "0.9402369"),
        (raw_agreement(both(ABSTRACTORS), THREE), "0.89"),
        (gwet_ac(FOUR_OBSERVERS, FIVE), "0.77544"),
        (gwet_ac(FOUR_OBSERVERS, FIVE, "quadratic"), "0.91400"),
        (gwet_ac(FOUR_OBSERVERS, FIVE, "linear"), "0.85874"),
        (gwet_ac(FOUR_OBSERVERS, FIVE, "ordinal"), "0.89894"),
        (raw_agreement(FOUR_OBSERVERS, FIVE), "0.81818"),
        (cohen_kappa(*BALANCED, TWO), "0.70"),
        (cohen_kappa(*SKEWED, TWO), "0.32"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_published_examples(coefficient, published) -> None:
    assert f"{coefficient.value:.{len(published) - 2}f}" == published


def test_where_one_grade_prevails_kappa_collapses_and_ac_does_not() -> None:
    assert raw_agreement(both(BALANCED), TWO).value == raw_agreement(both(SKEWED), TWO).value == 0.85
    assert cohen_kappa(*SKEWED, TWO).value < cohen_kappa(*BALANCED, TWO).value / 2
    assert gwet_ac(both(BALANCED), TWO).value == pytest.approx(0.70, abs=0.01)
    assert gwet_ac(both(SKEWED), TWO).value == pytest.approx(0.81, abs=0.01)


def test_the_counts_behind_a_coefficient() -> None:
    """The last unit of the four observers has one rating: it is no item of agreement."""
    for coefficient in (
        krippendorff_alpha(FOUR_OBSERVERS, FIVE),
        fleiss_kappa(FOUR_OBSERVERS, FIVE),
        gwet_ac(FOUR_OBSERVERS, FIVE),
    ):
        assert (coefficient.items, coefficient.ratings) == (11, 40)
    kappa = cohen_kappa([1, None, 2, 3], [1, 2, None, 1], THREE)
    assert (kappa.items, kappa.ratings) == (2, 4)
    assert (cohen_kappa(*CLINICIANS, THREE).observed, cohen_kappa(*CLINICIANS, THREE).chance) == (
        pytest.approx(0.70),
        pytest.approx(0.41),
    )


def test_where_one_grade_is_all_there_is_kappa_is_undefined_and_ac_is_not() -> None:
    zeros = [[0, 0], [0, 0], [0, 0]]
    everything = measure_agreement(zeros, range(4))
    for coefficient in (everything.cohen, everything.fleiss, everything.alpha, everything.alpha_nominal):
        assert (coefficient.value, coefficient.reason, coefficient.low) == (None, ONE_GRADE, None)
    for coefficient in (everything.raw, everything.ac1, everything.ac2):
        assert (coefficient.value, coefficient.low, coefficient.high) == (1, 1, 1)


@pytest.mark.parametrize("nothing", [[], [[1, None], [None, 2]], [[None, None]], [[3], [2]]])
def test_without_two_ratings_of_an_item_everything_is_undefined(nothing) -> None:
    everything = measure_agreement(nothing, range(4))
    assert (everything.items, everything.ratings, everything.raters, everything.commonest_share) == (
        0,
        0,
        0,
        None,
    )
    for coefficient in everything.coefficients:
        assert (coefficient.value, coefficient.reason) == (None, TOO_FEW)
    assert everything.overlap.share is None


def test_cohens_kappa_is_for_two_raters() -> None:
    everything = measure_agreement([[0, 0, 1], [1, 1, 1]], range(4))
    assert (everything.cohen.value, everything.cohen.reason) == (None, "It compares two raters; here are 3.")
    # A third rater who shares no item with anybody is none here.
    assert measure_agreement([[0, 1, None], [1, 1, None], [None, None, 2]], range(4)).cohen.value is not None


def test_the_confusion_of_two_raters_and_of_all() -> None:
    assert confusion_matrix([0, 0, 1, 2, None], [0, 2, 1, None, 1], range(3)).tolist() == [
        [1, 0, 1],
        [0, 1, 0],
        [0, 0, 0],
    ]
    # (0, 2), (0, 0), (2, 0) of the first item; (1, 2) of the second.
    assert confusion_of_all([[0, 2, 0], [2, 1, None]], range(3)).tolist() == [[1, 0, 2], [0, 0, 1], [0, 0, 0]]


def test_overlap_is_of_the_items_that_anybody_found_relevant() -> None:
    ratings = [[0, 0, None], [1, 3, None], [0, 2, None], [2, 2, 0], [1, None, None]]
    assert relevant_overlap(ratings, 1) == (1, 3)
    assert relevant_overlap(ratings, 2) == (0, 3)
    assert relevant_overlap([[0, 0]], 1).share is None


@pytest.mark.parametrize(
    ("ratings", "grades", "message"),
    [
        ([[0, 4]], range(4), "The rating 4 is not one of the grades"),
        ([[0, 1.5]], range(4), "The rating 1.5 is not one of"),
        ([0, 1, 2], range(4), "items x raters"),
        ([[0, 0]], [0], "at least two grades"),
    ],
)
def test_what_is_no_table_of_ratings_is_refused(ratings, grades, message) -> None:
    with pytest.raises(ValueError, match=message):
        gwet_ac(ratings, grades)


def test_weights_are_a_square_of_the_scale() -> None:
    with pytest.raises(ValueError, match="3 x 3"):
        cohen_kappa([1], [1], THREE, np.eye(2))
    assert weight_matrix("linear", 4)[0].tolist() == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert weight_matrix("quadratic", 4)[0].tolist() == pytest.approx([1, 8 / 9, 5 / 9, 0])
    assert weight_matrix("ordinal", 4)[0].tolist() == pytest.approx([1, 5 / 6, 1 / 2, 0])


# Slow, obvious twins: they go through items and ratings one by one.


def present(item):
    return [grade for grade in item if grade is not None]


def slow_observed(items, agreeing) -> float:
    """The mean over items of the mean agreement of any two of its ratings."""
    several = [present(item) for item in items if len(present(item)) >= 2]
    return np.mean(
        [np.mean([agreeing[a][b] for a, b in itertools.permutations(item, 2)]) for item in several]
    )


def slow_shares(items, grades) -> list[float]:
    rated = [present(item) for item in items if present(item)]
    return [np.mean([item.count(grade) / len(item) for item in rated]) for grade in grades]


def slow_fleiss(items, grades, agreeing) -> float | None:
    shares = slow_shares(items, grades)
    chance = sum(shares[a] * shares[b] * agreeing[a][b] for a in grades for b in grades)
    return (slow_observed(items, agreeing) - chance) / (1 - chance) if chance < 1 - 1e-12 else None


def slow_gwet(items, grades, agreeing) -> float:
    shares = slow_shares(items, grades)
    weight = sum(agreeing[a][b] for a in grades for b in grades)
    chance = weight * sum(share * (1 - share) for share in shares) / (len(grades) * (len(grades) - 1))
    return (slow_observed(items, agreeing) - chance) / (1 - chance)


def slow_cohen(items, grades, agreeing) -> float | None:
    both = [item for item in items if None not in item]
    observed = np.mean([agreeing[a][b] for a, b in both])
    chance = np.mean([agreeing[a][b] for (a, _), (_, b) in itertools.product(both, both)])
    return (observed - chance) / (1 - chance) if chance < 1 - 1e-12 else None


RATING = st.sampled_from([None, 0, 0, 0, 1, 2, 3])
GRADES = range(4)


def ratings_of(raters: int):
    return st.lists(st.lists(RATING, min_size=raters, max_size=raters), min_size=1, max_size=12)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 4).flatmap(ratings_of), st.sampled_from(["identity", "linear", "quadratic", "ordinal"]))
def test_the_twins_say_the_same(items, weights) -> None:
    assume(any(len(present(item)) >= 2 for item in items))
    agreeing = weight_matrix(weights, 4)
    assert raw_agreement(items, GRADES, resamples=0).value == pytest.approx(slow_observed(items, np.eye(4)))
    assert gwet_ac(items, GRADES, weights, resamples=0).value == pytest.approx(
        slow_gwet(items, GRADES, agreeing)
    )
    assert fleiss_kappa(items, GRADES, weights, resamples=0).value == pytest.approx(
        slow_fleiss(items, GRADES, agreeing), abs=1e-9
    )
    pairs = [item[:2] for item in items]
    if any(None not in item for item in pairs):
        first, second = zip(*pairs, strict=True)
        assert cohen_kappa(first, second, GRADES, weights, resamples=0).value == pytest.approx(
            slow_cohen(pairs, GRADES, agreeing), abs=1e-9
        )


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 4).flatmap(ratings_of), st.sampled_from(["nominal", "ordinal"]))
def test_alpha_is_that_of_the_library(items, level) -> None:
    several = [item for item in items if len(present(item)) >= 2]
    assume(len({grade for item in several for grade in present(item)}) > 1)
    library = krippendorff.alpha(
        np.array(items, dtype=float).T, value_domain=list(GRADES), level_of_measurement=level
    )
    assert krippendorff_alpha(items, GRADES, level, resamples=0).value == pytest.approx(library)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(*[st.sampled_from([0, 0, 0, 1, 2, 3])] * 2), min_size=1, max_size=15),
    st.sampled_from([("identity", None), ("linear", "linear"), ("quadratic", "quadratic")]),
)
def test_kappa_is_that_of_the_library(items, weights) -> None:
    first, second = zip(*items, strict=True)
    assume(len({*first, *second}) > 1)
    ours, theirs = weights
    library = cohen_kappa_score(first, second, labels=list(GRADES), weights=theirs)
    assert cohen_kappa(first, second, GRADES, ours, resamples=0).value == pytest.approx(library, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 4).flatmap(ratings_of), st.randoms())
def test_what_must_hold(items, random) -> None:
    said = measure_agreement(items, GRADES, resamples=50)
    for coefficient in said.coefficients:
        assert (coefficient.value is None) == bool(coefficient.reason)
        if coefficient.value is not None:
            assert coefficient.value <= 1 + 1e-12
            assert np.isfinite(coefficient.value)
    # Neither the order of items nor, but for kappa's names, that of raters matters; nor does a rater who said nothing.
    order = list(range(len(items[0])))
    random.shuffle(order)
    again = [[item[place] for place in order] + [None] for item in items]
    random.shuffle(again)
    for before, after in zip(
        said.coefficients, measure_agreement(again, GRADES, resamples=0).coefficients, strict=True
    ):
        assert after.value == pytest.approx(before.value, abs=1e-9)


def test_full_agreement_is_one_and_opposite_ratings_are_below_zero() -> None:
    same = measure_agreement([[grade, grade] for grade in (0, 1, 2, 3)], GRADES)
    assert {coefficient.value for coefficient in same.coefficients} == {1}
    opposite = measure_agreement([[0, 3], [3, 0]] * 5, GRADES)
    assert all(c.value < 0 for c in opposite.coefficients if c not in (opposite.raw, opposite.within_one))
    assert (opposite.raw.value, opposite.within_one.value) == (0, 0)


def test_the_interval_holds_the_value_narrows_with_the_items_and_is_the_same_each_time() -> None:
    few, many = (gwet_ac(both(ABSTRACTORS) * times, THREE) for times in (1, 9))
    assert few.low < few.value < few.high
    assert many.high - many.low == pytest.approx((few.high - few.low) / 3, rel=0.15)
    assert gwet_ac(both(ABSTRACTORS), THREE) == few
    # Gwet's own standard error for this table is 0.0432.
    assert (few.high - few.low) / 2 == pytest.approx(1.96 * 0.0432, rel=0.1)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 3000])
def test_distinct_rows_are_those_that_numpy_finds(size):
    rows = np.random.default_rng(size).integers(-1, 4, (size, 3))
    expected = np.unique(rows, axis=0, return_counts=True)
    for found, known in zip(distinct(rows), expected, strict=True):
        assert found.tolist() == known.tolist()

"""Comparing two runs: may it be read, what moved, could it be chance, and the sentence."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.comparison import (
    Change,
    ComparisonRefused,
    PoolMembership,
    Reading,
    by_slice,
    configuration_differences,
    few_questions,
    identical,
    notes,
    pair_by_question,
    paired,
    percent,
    read,
    refuse_if_not_run,
    regression_shown,
    regressions,
    resolution,
    sentence,
    signed,
)
from scoring.resampling import bootstrap_interval, bootstrap_means, holm, randomisation_p
from scoring.scores import Questions
from tests.scoring.score_text import world

READINGS = """
0.00 0.00 meaningful
0.02 0.04 meaningful
0.00 0.01 meaningful
0.01 0.10 meaningful
0.10 0.10 meaningful
0.02 0.11 uninterpretable
0.45 0.03 uninterpretable
0.00 1.00 uninterpretable
0.12 0.36 uninterpretable
0.12 0.35 relabel
0.40 0.40 relabel
1.00 1.00 relabel
"""


@pytest.mark.parametrize("row", READINGS.strip().splitlines())
def test_may_it_be_read(row: str) -> None:
    a, b, word = row.split()
    reading = read(float(a), float(b), depth="5")
    assert reading.word == word
    assert "unjudged@5 is" in reading.why[0]


def test_the_limit_can_be_set() -> None:
    assert read(0.02, 0.15, depth="5", low=0.2).word == "meaningful"


def test_the_outsider_is_named() -> None:
    assert "B stands largely outside" in read(0.01, 0.6, depth="5").why[0]
    assert "A stands largely outside" in read(0.6, 0.01, depth="5").why[0]


def test_pools_and_configurations_are_told() -> None:
    pooled = [PoolMembership("old", 10), PoolMembership("new", 3), PoolMembership("dense", None)]
    differ = configuration_differences(
        {"chunker": "v1", "k": 10, "model": "x"},
        {"chunker": "v2", "k": 10, "model": "y", "corpus_snapshot": "may"},
    )
    assert differ == [
        "corpus snapshot differs: not recorded for A, “may” for B.",
        "chunker differs: “v1” for A, “v2” for B.",
    ]
    why = read(0.0, 0.0, depth="5", pooled=pooled, differences=differ).why
    assert why[1:] == (
        "Run “new” was pooled only to depth 3, less than the measure's 5.",
        "Run “dense” is in no pool of this release.",
        *differ,
    )
    assert "looks at the whole ranking" in read(0.0, 0.0, depth="all", pooled=pooled[:1]).why[1]


def test_a_run_that_did_not_run_is_refused() -> None:
    known = world({"q1": {"a": 1}, "q2": {"b": 1}})
    one = known.rankings({"q1": ["a"], "q2": ["b", "c"]})
    nothing = known.rankings({"q1": [], "q2": []})
    with pytest.raises(ComparisonRefused, match="“new” returned nothing for any question"):
        refuse_if_not_run("old", one, "new", nothing)
    with pytest.raises(ComparisonRefused, match="same rankings, chunk for chunk"):
        refuse_if_not_run("old", one, "new", known.rankings({"q2": ["b", "c"], "q1": ["a"]}))
    refuse_if_not_run("old", one, "new", known.rankings({"q1": ["a"], "q2": ["c", "b"]}))


def test_identical_means_chunk_for_chunk() -> None:
    known = world({"q1": {"a": 1}, "q2": {"b": 1}})
    one = known.rankings({"q1": ["a"], "q2": ["b", "c"]})
    assert identical(one, known.rankings({"q1": ["a"], "q2": ["b", "c"]}))
    assert not identical(one, known.rankings({"q1": ["a", "b"], "q2": ["c"]}))
    assert not identical(one, known.rankings({"q1": ["a"]}))


def test_identical_scores_are_no_difference_and_never_nan() -> None:
    same = np.array([0.5, 0.2, 0.9])
    result = paired(same, same.copy())
    assert (result.wins, result.losses, result.ties, result.n) == (0, 0, 3, 3)
    assert (result.difference, result.interval, result.p) == (0.0, (0.0, 0.0), 1.0)
    assert not regression_shown(result)


def test_pairs_are_joined_by_id_never_by_row() -> None:
    a = {"q1": 0.9, "q2": 0.1, "q3": 0.8, "q4": 0.2}
    b = {"q1": 0.9, "q3": 0.8, "q4": 0.2, "q5": 0.3}
    ids, left, right = pair_by_question(list(a), list(a.values()), list(b), list(b.values()))
    assert ids == ["q1", "q3", "q4"]
    result = paired(left, right)
    assert (result.n, result.difference, result.ties) == (3, 0.0, 3)
    with pytest.raises(ValueError, match="twice"):
        pair_by_question(["q1", "q1"], [1, 2], ["q1"], [1])


def test_wins_losses_ties_and_the_mean() -> None:
    a = np.array([0.0, 0.5, 1.0, 0.2, 0.1 + 0.2])
    b = np.array([1.0, 0.0, 1.0, 0.4, 0.3])
    result = paired(a, b)
    assert (result.wins, result.losses, result.ties) == (2, 1, 2)
    assert result.difference == pytest.approx(0.14)


def test_no_common_question_is_an_error_and_unequal_lists_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="nothing to resample"):
        paired(np.array([]), np.array([]))
    with pytest.raises(ValueError, match="not pairs"):
        paired(np.array([1.0]), np.array([1.0, 2.0]))


def exact_p(differences) -> float:
    """The randomisation test by its definition: every pattern of signs."""
    seen = abs(sum(differences))
    patterns = list(itertools.product([1, -1], repeat=len(differences)))
    extreme = sum(
        abs(sum(s * d for s, d in zip(p, differences, strict=True))) >= seen - 1e-9 for p in patterns
    )
    return extreme / len(patterns)


@given(st.lists(st.sampled_from([-0.5, -0.25, 0.0, 0.25, 1.0]), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_p_is_exact_for_few_questions(differences) -> None:
    assert randomisation_p(np.array(differences)) == pytest.approx(exact_p(differences))


def test_p_for_many_questions_is_near_the_exact_one() -> None:
    rng = np.random.default_rng(5)
    differences = np.round(rng.normal(0.15, 0.4, size=16), 2)
    drawn = randomisation_p(differences)
    assert drawn == pytest.approx(exact_p(differences.tolist()), abs=0.015)
    assert randomisation_p(np.full(200, 0.1)) == pytest.approx(1 / 10_001)
    assert randomisation_p(np.concatenate([np.full(100, 0.1), np.full(100, -0.1)])) == pytest.approx(1.0)
    assert randomisation_p(differences) == drawn


def test_the_interval_is_the_percentile_interval_of_resampled_means() -> None:
    rng = np.random.default_rng(1)
    differences = rng.normal(0.1, 0.5, size=60)
    low, high = bootstrap_interval(differences, seed=7)
    slow = np.random.default_rng(99)
    means = [slow.choice(differences, size=60, replace=True).mean() for _ in range(4000)]
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.01)
    assert bootstrap_interval(differences, seed=7) == (low, high)
    assert bootstrap_interval(differences, seed=8) != (low, high)


def test_resampling_many_questions_keeps_memory_small_and_one_question_works() -> None:
    means = bootstrap_means(np.arange(30_000) / 30_000, resamples=200)
    assert means.shape == (200,)
    assert means.mean() == pytest.approx(0.5, abs=0.005)
    assert bootstrap_interval(np.array([0.25])) == (0.25, 0.25)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_the_interval_lies_within_the_differences(differences) -> None:
    low, high = bootstrap_interval(np.array(differences), resamples=300)
    assert min(differences) - 1e-12 <= low <= high <= max(differences) + 1e-12
    assert 0 < randomisation_p(np.array(differences), resamples=300) <= 1


def test_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


QUESTIONS = Questions(
    ("q1", "q2", "q3", "q4"),
    np.ones(4, dtype=bool),
    (("multi-source",), ("multi-source", "short"), (), ("short",)),
)


def test_regressions_come_largest_first() -> None:
    worse = regressions(np.array([0, 1, 2, 3]), np.array([1, 1, 0.5, 0.2]), np.array([0.5, 0, 0.5, 0.9]))
    assert worse == [Change(1, 1.0, 0.0), Change(0, 1.0, 0.5)]


def test_each_slice_has_its_own_n_and_warning() -> None:
    a, b = np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    slices = by_slice(QUESTIONS, np.arange(4), a, b, resamples=100)
    assert [(s.name, s.paired.n, s.paired.wins, s.paired.losses) for s in slices] == [
        ("multi-source", 2, 1, 0),
        ("short", 2, 0, 1),
    ]
    assert slices[0].warning == "only 2 questions: few for any conclusion (below 50)"
    assert few_questions(120) == "120 questions: too few to see modest effects (below 300)"
    assert few_questions(300) == ""


def result_of(differences):
    values = np.array(differences, dtype=float)
    return paired(np.zeros(len(values)), values)


def test_what_must_be_said_about_the_numbers() -> None:
    assert "indistinguishable from noise" in notes(result_of([1, -1, 1, -1, 0]))[0]
    few = notes(result_of([1.0] * 10 + [-0.01] * 10))
    assert few == ["Wins and losses are about equal, yet the mean moved: few questions moved it."]
    assert notes(result_of([0.5] * 40 + [-0.1] * 3)) == []


def test_a_regression_is_shown_only_beyond_the_margin() -> None:
    worse = result_of([-0.5] * 30 + [-0.3] * 30)
    assert regression_shown(worse)
    assert regression_shown(worse, margin=0.2)
    assert not regression_shown(worse, margin=0.45)
    assert not regression_shown(result_of([-0.5, 0.4] * 20))
    assert not regression_shown(result_of([0.5] * 30))


def test_the_resolution_is_half_the_interval_of_two_runs_of_one_system() -> None:
    rng = np.random.default_rng(3)
    first = rng.random(80)
    second = first + rng.normal(0, 0.05, 80)
    low, high = paired(first, second).interval
    assert resolution((low, high)) == (high - low) / 2
    assert resolution(paired(first, first).interval) == 0.0


def test_the_sentence() -> None:
    differences = np.array([0.1] * 22 + [0.0] * 119 + [-0.05] * 9)
    result = paired(np.zeros(150), differences)
    questions = Questions(
        tuple(f"q{n}" for n in range(150)),
        np.ones(150, dtype=bool),
        tuple(("multi-source",) if n < 148 else () for n in range(150)),
    )
    worse = regressions(np.arange(150), np.zeros(150), differences)
    text = sentence("Recall@5", "5", result, (0.02, 0.04), read(0.02, 0.04, depth="5"), worse, questions)
    low, high = result.interval
    assert text == (
        "Recall@5 improved on 22 of 150 questions and regressed on 9; bootstrapped 95 % interval on the paired "
        f"difference {low:+.2f} to {high:+.2f}; unjudged@5 2 % and 4 %; "
        "7 of the 9 regressions are in slice multi-source."
    )


@pytest.mark.parametrize(
    ("worse", "said"),
    [
        ([0], "; the one regression is in slice multi-source."),
        ([0, 1], "; all 2 regressions are in slice multi-source."),
        ([0, 1, 2], "; 2 of the 3 regressions are in slice multi-source."),
        ([2], "; unjudged@5 0 % and 0 %."),
        ([0, 2], "; unjudged@5 0 % and 0 %."),
    ],
)
def test_the_sentence_names_the_slice_that_holds_most_regressions(worse, said) -> None:
    result = result_of([-0.1, -0.1, -0.1, 0.0])
    changes = [Change(question, 1.0, 0.5) for question in worse]
    text = sentence("P@5", "5", result, (0.0, 0.0), read(0.0, 0.0, depth="5"), changes, QUESTIONS)
    assert text.endswith(said)


def test_the_sentence_says_when_nothing_may_be_concluded() -> None:
    result = result_of([0.1, -0.1, 0.0, 0.0])
    for word, begins in (
        ("uninterpretable", "Not to be read as a difference in quality: "),
        ("relabel", "Not to be read at all: "),
    ):
        text = sentence("AP", "all", result, (0.01, 0.5), Reading(word, ()), [], QUESTIONS)
        assert text.startswith(begins)
        assert "unjudged 1 % and 50 %" in text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.02, "2 %"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.014, "1.4 %"),
        (0.0004, "under 0.1 %"),
        (0.99999, "over 99.9 %"),
        (0.29, "29 %"),
    ],
)
def test_percentages(rate: float, text: str) -> None:
    assert percent(rate) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.01, "+0.01"), (-0.2, "-0.20"), (0.0, "0.00"), (0.003, "+0.003")]
)
def test_signed_differences(value: float, text: str) -> None:
    assert signed(value) == text

"""Unjudged chunks: three policies, and the rate that belongs beside every number."""

import numpy as np
import pytest

from scoring.matching import match
from scoring.policies import UnjudgedError, count_unjudged, unjudged_by_depth
from tests.scoring.score_text import by_question, score, world

KNOWN = world({"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}})
RUN = {"q1": ["x", "b", "a", "y", "c"], "q2": ["a"]}


def test_raw_counts_an_unjudged_chunk_as_not_relevant() -> None:
    scores = score(KNOWN, RUN, ["P@2", "RR@5", "Recall@3"])
    assert by_question(KNOWN, scores, "P@2") == {"q1": 0.0, "q2": 0.5}
    assert by_question(KNOWN, scores, "RR@5") == {"q1": 1 / 3, "q2": 1.0}


def test_judged_only_removes_them_before_the_cut() -> None:
    scores = score(KNOWN, RUN, ["P@2", "RR@5", "Recall@3"], policy="judged-only")
    assert by_question(KNOWN, scores, "P@2") == {"q1": 0.5, "q2": 0.5}
    assert by_question(KNOWN, scores, "RR@5") == {"q1": 0.5, "q2": 1.0}
    assert by_question(KNOWN, scores, "Recall@3") == {"q1": 1.0, "q2": 1.0}


def test_the_rate_is_of_what_was_returned_whatever_the_policy() -> None:
    for policy in ("raw", "judged-only"):
        scores = score(KNOWN, RUN, ["P@2", "P@5", "AP", "Judged@5"], policy=policy)
        assert {depth: counts.rate for depth, counts in scores.unjudged.items()} == {
            "2": 1 / 3,
            "5": 2 / 6,
            "all": 2 / 6,
        }
        assert scores.unjudged["5"].rates.tolist() == [0.4, 0.0]
        assert by_question(KNOWN, scores, "Judged@5") == {"q1": 0.6, "q2": 1.0}
        # Judged@k is counted over all chunks, as its twin the unjudged rate is.
        assert scores.means[3] == 1 - 2 / 6


def test_strict_lists_every_unjudged_chunk_within_the_depth() -> None:
    with pytest.raises(UnjudgedError, match="2 returned chunks within depth 4 are unjudged") as caught:
        score(KNOWN, RUN, ["P@4", "RR@2"], policy="strict")
    names = {number: name for name, number in KNOWN.chunks.items()}
    assert [(e.question, names[e.chunk], e.rank) for e in caught.value.entries] == [(0, "x", 1), (0, "y", 4)]
    with pytest.raises(UnjudgedError, match="2 returned chunks in the rankings"):
        score(KNOWN, RUN, ["AP"], policy="strict")


def test_strict_is_the_raw_score_where_all_is_judged() -> None:
    run = {"q1": ["b", "a", "c"], "q2": ["a", "far"]}
    strict, raw = (score(KNOWN, run, ["P@1", "Recall@1"], policy=policy) for policy in ("strict", "raw"))
    assert strict.values.tolist() == raw.values.tolist()


def test_the_rate_is_over_labelled_questions_and_told_apart_for_the_scored_ones() -> None:
    known = world({"q1": {"a": 1}, "q2": {"b": 0}, "q3": {}})
    scores = score(known, {"q1": ["a"], "q2": ["x"], "q3": ["y", "z"]}, ["P@1"])
    assert [known.questions.ids[n] for n in scores.ranked] == ["q1", "q2"]
    assert scores.unjudged["1"].rate == 0.5
    assert scores.unjudged_scored["1"] == 0.0


def test_judged_to_a_depth_leaves_no_hole_at_that_depth() -> None:
    """What was pooled to depth k and judged has no unjudged chunk in any top k: one order serves both."""
    ranking = ["d", "b", "a", "c"]
    known = world({"q": dict.fromkeys(ranking[:3], 1)})
    graded = match(known.truth, known.rankings({"q": ranking}))
    assert count_unjudged(graded, 3).rate == 0.0
    assert count_unjudged(graded, 4).rate == 0.25
    assert unjudged_by_depth(graded, 6).tolist() == [0.0, 0.0, 0.0, 0.25, 0.25, 0.25]


def test_the_curve_equals_the_rate_at_each_depth() -> None:
    graded = match(KNOWN.truth, KNOWN.rankings(RUN))
    assert unjudged_by_depth(graded, 7) == pytest.approx(
        np.array([count_unjudged(graded, k).rate for k in range(1, 8)])
    )

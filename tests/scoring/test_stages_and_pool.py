"""Reusability of the pool, where evidence is lost between stages, required facts, abstention."""

import numpy as np
import pytest

from scoring.classes import Rankings
from scoring.facts import abstention, fact_coverage, mean_coverage, unanswerable_slice
from scoring.matching import match
from scoring.measures import parse_measure, parse_measures
from scoring.reusability import System, kendall_tau, leave_out, returned_within
from scoring.scores import Plan, Rules, plan_questions, score_run
from scoring.stages import StageRun, funnel, per_question, trace
from tests.scoring.score_text import world

LABELS = {
    "q1": {"a": 1, "b": 1, "only": 1, "n": 0},
    "q2": {"c": 2, "n": 0},
    "q3": {"last": 1},
}
RUNS = {
    "old": {"q1": ["a", "b"], "q2": ["c"], "q3": ["x"]},
    "new": {"q1": ["only", "a"], "q2": ["n", "c"], "q3": ["last"]},
    "none": {"q1": ["n"], "q2": ["n"], "q3": ["n"]},
}


def left_out(families=(), pooled_to=None, scored=tuple(RUNS)):
    known = world(LABELS)
    runs = {name: known.rankings(run) for name, run in RUNS.items()}
    contributed = {
        name: returned_within(known.labels, runs[name], depth)
        for name, depth in (pooled_to or dict.fromkeys(RUNS, 2)).items()
    }
    measure = parse_measure("Recall@2")
    plan = plan_questions(known.truth, known.questions, [measure], Rules(), {})
    rows = leave_out(
        known.labels,
        {name: System(runs[name]) for name in scored},
        contributed,
        plan,
        measure,
        Rules(),
        questions=3,
        families=families,
        classes=known.classes,
    )
    return {row.system: row for row in rows}


def test_leaving_a_system_out_takes_away_what_only_it_contributed() -> None:
    rows = left_out()
    assert (rows["old"].removed, rows["new"].removed, rows["none"].removed) == (1, 2, 0)
    # Without "only" and "last" the new system holds 1 of 2 and 1 of 1; q3 has lost its last label and scores
    # 0.
    assert rows["new"].score_before == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert rows["new"].score_after == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert (rows["new"].rank_before, rows["new"].rank_after) == (1, 2)
    assert rows["new"].tau == pytest.approx(1 / 3)
    assert (rows["new"].unjudged_before, rows["new"].unjudged_after) == (0.0, 2 / 5)
    assert (rows["none"].tau, rows["none"].score_before) == (1.0, 0.0)


def test_leaving_out_equals_scoring_on_labels_without_them() -> None:
    without = world({"q1": {"a": 1, "b": 1, "n": 0}, "q2": {"c": 2, "n": 0}})
    scores = score_run(
        without.truth,
        Plan(np.array([0, 1]), ()),
        without.rankings({q: RUNS["new"][q] for q in ("q1", "q2")}),
        parse_measures(["Recall@2"]),
        Rules(),
    )
    assert left_out()["new"].score_after == pytest.approx(scores.values.sum() / 3)


def test_a_family_is_left_out_together() -> None:
    rows = left_out(families=[["old", "new"]])
    assert rows["old"].removed == rows["new"].removed == 5
    assert rows["new"].score_after == 0.0
    assert rows["old"].family == ("old", "new")


def test_what_a_system_that_is_not_scored_contributed_too_is_not_taken_away() -> None:
    rows = left_out(scored=["new", "none"])
    assert rows["new"].removed == 2  # not "a" and "c", which the old system returned as well
    assert left_out(scored=["new"], families=[["old", "new"]])["new"].removed == 5


def test_only_what_stood_within_the_pool_depth_was_contributed() -> None:
    rows = left_out(pooled_to={"old": 1, "new": 2})
    # "b" stands at old's rank 2, so no pooled run contributed it and nobody's absence takes it away.
    assert rows["old"].removed == 0
    assert rows["new"].removed == 2


@pytest.mark.parametrize(
    ("a", "b", "tau"),
    [
        ([3, 2, 1], [30, 20, 10], 1.0),
        ([3, 2, 1], [1, 2, 3], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 2 / 3),
        ([1, 1, 2], [1, 2, 3], 2 / np.sqrt(2 * 3)),
        ([1], [5], 1.0),
        ([1, 1], [1, 2], 0.0),
        ([1, 1], [2, 2], 1.0),
    ],
)
def test_kendalls_tau(a, b, tau: float) -> None:
    assert kendall_tau(a, b) == pytest.approx(tau)


STAGES = {
    "candidates": {"q1": ["a", "b", "n", "d2"], "q2": ["e"]},
    "reranked": {"q1": ["b", "d2", "a"], "q2": ["e"]},
    "context": {"q1": ["b", "d2"], "q2": []},
}


def staged(known, k=None, truncated=None, runs=None):
    return [
        StageRun(
            stage,
            match(known.truth, known.rankings(run), truncated=flags),
            k=(k or {}).get(stage),
            truncated=flags,
        )
        for stage, run in (runs or STAGES).items()
        for flags in [np.array(truncated) if truncated and stage == "context" else None]
    ]


def test_where_each_relevant_class_was_lost() -> None:
    known = world({"q1": {"a": 1, "b": 3, "n": 0, "c": 2, "d": 1}, "q2": {"e": 1}}, classes=[["d", "d2"]])
    runs = staged(known, k={"reranked": 2})
    lost = trace(known.truth, [0, 1], runs, threshold=1)
    names = {number: name for name, number in known.chunks.items()}
    assert [(one.question, names[one.unit], one.fate) for one in lost] == [
        (0, "a", "cut by reranking"),
        (0, "b", "kept"),
        (0, "c", "never retrieved"),
        (0, "d", "kept"),
        (1, "e", "dropped in packing"),
    ]
    assert funnel(lost, runs) == (5, (("candidates", 4), ("reranked", 3), ("context", 2)))
    assert per_question(lost)[0] == {
        "never retrieved": 1,
        "cut by reranking": 1,
        "dropped in packing": 0,
        "truncated in packing": 0,
        "kept": 2,
    }


def test_a_truncated_passage_is_lost_in_packing() -> None:
    known = world({"q1": {"b": 3}, "q2": {"e": 1}})
    runs = staged(known, truncated=[True, False])
    lost = trace(known.truth, [0], runs, threshold=1)
    assert [one.fate for one in lost] == ["truncated in packing"]
    assert funnel(lost, runs).left[-1] == ("context", 0)


@pytest.mark.parametrize(
    ("own", "fate"), [(None, "truncated in packing"), (0, "truncated in packing"), (1, "kept")]
)
def test_what_is_left_of_a_cut_passage_decides_whether_the_evidence_was_kept(own, fate) -> None:
    labels = {"b": 3} if own is None else {"b": 3, "b~": own}
    known = world({"q1": labels, "q2": {"e": 1}}, cuts={"b~": "b"})
    runs = staged(known, runs={**STAGES, "context": {"q1": ["b~", "d2"], "q2": []}})
    assert [one.fate for one in trace(known.truth, [0], runs, threshold=1)] == [fate]


def test_a_unit_that_is_known_by_its_cut_passage_alone_was_not_lost_before() -> None:
    known = world({"q1": {"b~": 2}, "q2": {"e": 1}}, cuts={"b~": "b"})
    runs = staged(known, runs={**STAGES, "context": {"q1": ["b~", "d2"], "q2": []}})
    assert [one.fate for one in trace(known.truth, [0], runs, threshold=1)] == ["kept"]
    assert [one.fate for one in trace(known.truth, [0], runs, threshold=3)] == []


def test_stages_that_were_not_run_lose_nothing_and_each_comes_once() -> None:
    known = world({"q1": {"b": 3, "zz": 1}, "q2": {"e": 1}})
    runs = staged(known)
    lost = trace(known.truth, [0, 1], [runs[2], runs[0]], threshold=1)
    assert [one.fate for one in lost] == ["kept", "never retrieved", "dropped in packing"]
    with pytest.raises(ValueError, match="one run for each stage"):
        trace(known.truth, [0], [runs[0], runs[0]], threshold=1)
    with pytest.raises(ValueError, match="one run for each stage"):
        trace(known.truth, [0], [], threshold=1)


def test_required_facts_are_covered_by_any_chunk_or_its_copy() -> None:
    known = world({"q1": {"a": 3, "b": 1}, "q2": {"c": 1}, "q3": {"c": 1}}, classes=[["a", "a2"]])
    number = known.chunks
    support = {
        (0, number["a"]): ["price", "date"],
        (0, number["b"]): ["date"],
        (1, number["a"]): ["limit"],
    }
    facts = {0: ["price", "date", "who", "price"], 1: ["limit"], 2: []}
    run = known.rankings({"q1": ["x", "a2", "b"], "q2": ["c"], "q3": ["c"]})
    one, two = fact_coverage(facts, support, run, classes=known.classes)
    assert (one.supported, one.missing, one.share) == (("price", "date"), ("who",), 2 / 3)
    assert (two.supported, two.missing, two.share) == ((), ("limit",), 0.0)
    assert mean_coverage([one, two]) == pytest.approx(1 / 3)
    assert mean_coverage([]) is None
    shallow = fact_coverage(facts, support, run, k=1, classes=known.classes)
    assert shallow[0].supported == ()
    cut = np.array([False, True, False, False, False])
    assert fact_coverage(facts, support, run, classes=known.classes, excluded=cut)[0].supported == ("date",)
    with pytest.raises(KeyError):
        fact_coverage({2: ["x"]}, {}, known.rankings({"q1": ["a"]}))


def test_abstention_is_counted_where_it_is_reported() -> None:
    counts = abstention([True, True, False, False, False], {0: False, 1: True, 2: True, 3: False})
    assert counts == (2, 1, 2, 1)
    assert (counts.rate, counts.wrong_rate) == (0.5, 0.5)
    assert abstention([True], {}).rate is None


def test_an_empty_ranking_is_not_abstention_but_is_told() -> None:
    rankings = Rankings(np.array([0, 1, 2]), np.array([0, 2, 2, 7]), np.arange(7))
    assert unanswerable_slice([True, False, False], rankings) == (2, 1, 2.5)
    assert unanswerable_slice([True, False, False], rankings, k=3) == (2, 1, 1.5)
    assert unanswerable_slice([True, True, True], rankings) == (0, 0, 0.0)

"""Small inputs on which tools went wrong: ties, grades, cut-offs, questions without labels, empty runs."""

import math

import numpy as np
import pytest

from scoring.classes import Labels, Rankings, build_truth
from scoring.matching import match
from scoring.scores import MissingRankings
from tests.scoring.score_text import by_question, score, world


def test_the_names_of_tied_chunks_do_not_matter() -> None:
    known = world({"q1": {"a": 0, "b": 1, "c": 0}})
    first, second = (score(known, {"q1": ["b", other]}, ["RR", "RR@10", "nDCG"]) for other in "ac")
    assert first.values.tolist() == second.values.tolist() == [[1.0, 1.0, 1.0]]


def test_the_stored_order_is_the_order_for_every_measure() -> None:
    known = world({"q1": {"d3": 1}})
    scores = score(
        known, {"q1": ["d1", "d2", "d3"]}, ["AP", "RR", "RR@3", "P@1", "Success@3", "Bpref", "nDCG@3"]
    )
    assert scores.values[0] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 1, 1, 0.5])


def test_a_grade_of_two_counts_one_chunk() -> None:
    known = world({"q1": {"a": 2, "b": 1, "x": 0}})
    assert score(known, {"q1": ["a", "b", "x"]}, ["P@5", "Recall@5"]).values[0] == pytest.approx([0.4, 1.0])


def test_linear_and_exponential_gain() -> None:
    known = world({"q1": {"a": 3, "b": 2, "c": 1}})
    linear, exponential = (
        score(known, {"q1": ["c", "b", "a"]}, ["nDCG@3"], gain=g).means[0] for g in ("linear", "exponential")
    )
    assert (f"{linear:.4f}", f"{exponential:.4f}") == ("0.7900", "0.6806")


def test_both_gains_asked_for_one_after_the_other_do_not_mix() -> None:
    known = world({"q1": {"a": 3, "b": 2, "c": 1}})
    values = [
        score(known, {"q1": ["c", "b", "a"]}, ["P@3", "nDCG@3", "nDCG@2", "AP(rel=2)"], gain=gain)
        .values[0]
        .tolist()
        for gain in ("linear", "exponential", "linear", "exponential")
    ]
    assert values[0] == values[2] != values[1] == values[3]


def test_average_precision_divides_by_all_relevant_also_at_a_cut_off() -> None:
    known = world({"q1": {f"d{n}": 1 for n in range(1, 11)}})
    scores = score(known, {"q1": [f"d{n}" for n in range(1, 6)]}, ["AP@5", "AP", "AP@3"])
    assert scores.values[0] == pytest.approx([0.5, 0.5, 0.3])


def test_reciprocal_rank_has_its_cut_off() -> None:
    known = world({"q1": {"c12": 1}, "q2": {"c02": 1}})
    ranking = [f"c{n:02}" for n in range(1, 16)]
    scores = score(known, {"q1": ranking, "q2": ranking}, ["RR", "RR@10", "RR@12", "RR@11"])
    assert scores.means == pytest.approx([(1 / 12 + 1 / 2) / 2, 0.25, (1 / 12 + 1 / 2) / 2, 0.25])


def test_reciprocal_rank_is_cut_right_at_every_depth() -> None:
    for rank in (1, 2, 3, 7, 10, 49, 93, 999, 1000):
        known = world({"q": {"hit": 1}})
        ranking = [f"x{n}" for n in range(rank - 1)] + ["hit"]
        scores = score(known, {"q": ranking}, [f"RR@{rank}", *([f"RR@{rank - 1}"] if rank > 1 else [])])
        assert scores.values[0].tolist() == [1 / rank, *([0.0] if rank > 1 else [])]


def test_the_discount_starts_at_the_second_rank() -> None:
    known = world({"q1": {"rel": 1}})
    assert score(known, {"q1": ["x", "rel", "y"]}, ["nDCG@3"]).means[0] == pytest.approx(1 / math.log2(3))
    assert score(known, {"q1": ["rel", "x", "y"]}, ["nDCG@3"]).means[0] == 1.0


def test_a_question_without_a_relevant_label_is_listed_and_not_averaged() -> None:
    known = world({"q1": {"c1": 1}, "q2": {"c1": 0}}, extra_questions=["q3"])
    scores = score(known, {"q1": ["c1"], "q2": ["c1"], "q3": ["c1"]}, ["AP"])
    assert by_question(known, scores, "AP") == {"q1": 1.0}
    assert [(known.questions.ids[s.question], s.why) for s in scores.skipped] == [
        ("q2", "no relevant label (none of 1 at 1 or above)"),
        ("q3", "no label"),
    ]


def test_the_threshold_moves_hits_denominators_and_who_is_scored() -> None:
    known = world({"q1": {"a": 1, "b": 2}, "q2": {"a": 1}})
    run = {"q1": ["a", "b"], "q2": ["a"]}
    one, two = (score(known, run, ["Recall@1", "P@1"], threshold=t) for t in (1, 2))
    assert one.values.tolist() == [[0.5, 1.0], [1.0, 1.0]]
    assert two.values.tolist() == [[0.0, 0.0]]
    assert [s.why for s in two.skipped] == ["no relevant label (none of 1 at 2 or above)"]


def test_a_question_in_between_without_labels_shifts_no_other() -> None:
    qrels = {"q1": {"d2": 1}, "q3": {"d2": 1, "d3": 1}}
    run = {"q1": ["d2"], "q2": ["d2"], "q3": ["d2", "d3"]}
    with_it = world({"q1": qrels["q1"], "q2": {}, "q3": qrels["q3"]})
    without = world(qrels)
    assert by_question(with_it, score(with_it, run, ["AP"]), "AP") == {"q1": 1.0, "q3": 1.0}
    del run["q2"]
    assert by_question(without, score(without, run, ["AP"]), "AP") == {"q1": 1.0, "q3": 1.0}


def test_an_empty_ranking_scores_zero_and_never_nan() -> None:
    known = world({"q1": {"c1": 1}, "q2": {"c1": 1}})
    asked = ["AP", "RR", "RR@5", "nDCG", "nDCG@5", "P@5", "Recall@5", "Success@5", "Bpref", "infAP", "RBP"]
    scores = score(known, {"q1": [], "q2": []}, asked)
    assert scores.values.tolist() == [[0.0] * len(asked)] * 2
    assert scores.means.tolist() == [0.0] * len(asked)
    assert scores.unjudged["5"].rate == 0.0
    half = score(known, {"q1": [], "q2": ["c1"]}, ["Recall@5"])
    assert half.means.tolist() == [0.5]


def test_a_missing_ranking_stops_the_report_and_names_the_questions() -> None:
    known = world({"q1": {"c1": 1}, "q2": {"c1": 1}, "q3": {"c1": 0}})
    with pytest.raises(MissingRankings, match=r"1 question \(q2\)") as caught:
        score(known, {"q1": ["c1"]}, ["Recall@5"])
    assert caught.value.missing == {"run": ("q2",)}
    common = score(known, {"q1": ["c1"]}, ["Recall@5", "Judged@5"], common=True)
    assert common.values.tolist() == [[1.0, 1.0]]
    assert [(s.question, s.why) for s in common.skipped] == [
        (1, "no ranking in run “run”"),
        (2, "no relevant label (none of 1 at 1 or above)"),
    ]


def test_unanswerable_questions_are_not_averaged() -> None:
    known = world({"q1": {"c1": 1}, "q2": {"c1": 0, "c2": 2}}, unanswerable=["q2"])
    scores = score(known, {"q1": ["c1"], "q2": ["c2"]}, ["Recall@5"])
    assert by_question(known, scores, "Recall@5") == {"q1": 1.0}
    assert scores.skipped[0].why.startswith("unanswerable")


def test_nothing_to_score_has_no_average() -> None:
    known = world({"q1": {"c1": 0}})
    scores = score(known, {"q1": ["c1"]}, ["Recall@5"])
    assert len(scores.questions) == 0
    assert np.isnan(scores.means).all()


def test_short_lists_get_no_smaller_denominator() -> None:
    known = world({"q1": {"a": 1, "b": 1, "c": 1}})
    scores = score(known, {"q1": ["a"]}, ["P@5", "Recall@5", "nDCG@3", "AP@5"])
    full = 1 + 1 / math.log2(3) + 0.5
    assert scores.values[0] == pytest.approx([0.2, 1 / 3, 1 / full, 1 / 3])


def test_no_value_is_rounded() -> None:
    known = world({"q1": {f"c{n}": 1 for n in range(7)}})
    assert score(known, {"q1": ["c0"]}, ["Recall@5"]).values[0][0] == 1 / 7


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(0, 1, -1)], "grade -1"),
        ([(0, 1, 2), (0, 1, 2)], "two labels"),
        ([(0, 1, 2), (0, 1, 0)], "two labels"),
        ([(3, 1, 2)], "only 1 questions"),
        ([(0, -4, 2)], "numbered from 0"),
    ],
)
def test_labels_that_a_library_would_swallow_are_refused(rows, told: str) -> None:
    table = np.array(rows)
    with pytest.raises(ValueError, match=told):
        build_truth(Labels(table[:, 0], table[:, 1], table[:, 2]), questions=1)


def test_rankings_that_cannot_be_are_refused() -> None:
    truth = build_truth(Labels(np.array([0]), np.array([1]), np.array([2])), questions=1)
    with pytest.raises(ValueError, match="twice in one ranking"):
        match(truth, Rankings(np.array([0]), np.array([0, 2]), np.array([1, 1])))
    with pytest.raises(ValueError, match="two rankings"):
        match(truth, Rankings(np.array([0, 0]), np.array([0, 1, 2]), np.array([1, 2])))
    with pytest.raises(ValueError, match="end with the last chunk"):
        match(truth, Rankings(np.array([0]), np.array([0, 3]), np.array([1, 2])))


def test_chunk_numbers_beyond_the_labels_touch_no_other_question() -> None:
    """Pairs are looked up by one number a pair; a large chunk number must not reach into the next question."""
    truth = build_truth(Labels(np.array([0, 1]), np.array([1, 0]), np.array([1, 1])), questions=2)
    graded = match(truth, Rankings(np.array([0, 1]), np.array([0, 2, 3]), np.array([2, 1, 5])))
    assert graded.grade.tolist() == [-1, 1, -1]


def test_the_order_of_rankings_in_a_run_does_not_matter() -> None:
    known = world({"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1, "d": 1}})
    run = {"q3": ["x", "c"], "q1": ["a"], "q2": ["y"]}
    again = {question: run[question] for question in sorted(run)}
    asked = ["Recall@2", "RR", "nDCG@2"]
    assert score(known, run, asked).values.tolist() == score(known, again, asked).values.tolist()

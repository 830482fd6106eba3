"""Names of measures, the worked example, and each measure against its slow twin and against ir_measures."""

import itertools

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.measures import Measure, MeasureError, gain_of, parse_measure, parse_measures
from tests.scoring.score_text import by_question, score, stand_for, twin, world

LABELS = {
    "refund": {"policy": 3, "exception": 2, "overview": 1, "noise": 0},
    "limits": {"limit": 3, "scope": 2, "noise": 0},
    "restore": {"restore": 3, "snapshot": 2, "noise": 0},
}
RUN_A = {
    "refund": ["overview", "policy", "exception"],
    "limits": ["limit", "noise"],
    "restore": ["noise", "restore", "snapshot"],
}
RUN_B = {
    "refund": ["policy", "exception", "overview"],
    "limits": ["noise", "scope", "limit"],
    "restore": ["restore", "noise", "snapshot"],
}
WORKED = """
A refund  1.0000 1.0000 0.7364
A limits  0.5000 1.0000 0.7872
A restore 1.0000 0.5000 0.6653
A mean    0.8333 0.8333 0.7296
B refund  1.0000 1.0000 1.0000
B limits  1.0000 0.5000 0.6064
B restore 1.0000 1.0000 0.9558
B mean    1.0000 0.8333 0.8541
"""


@pytest.mark.parametrize("row", WORKED.strip().splitlines())
def test_the_worked_example(row: str) -> None:
    name, question, *expected = row.split()
    known = world(LABELS)
    scores = score(known, RUN_A if name == "A" else RUN_B, ["Recall@3", "RR@3", "nDCG@3"])
    values = scores.means if question == "mean" else scores.values[known.questions.ids.index(question)]
    assert [f"{value:.4f}" for value in values] == expected
    assert scores.unjudged["3"].rate == 0.0


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Recall@5", "Recall@5"),
        ("R@5", "Recall@5"),
        ("RR@10", "RR@10"),
        ("MRR@10", "RR@10"),
        ("RR", "RR"),
        ("P@3", "P@3"),
        ("P(rel=2)@3", "P(rel=2)@3"),
        ("Success@1", "Success@1"),
        ("AP@5", "AP@5"),
        ("MAP", "AP"),
        ("nDCG@10", "nDCG@10"),
        ("Judged@10", "Judged@10"),
        ("bpref", "Bpref"),
        ("Bpref", "Bpref"),
        ("RBP", "RBP(p=0.8)"),
        ("RBP(p=0.95)", "RBP(p=0.95)"),
        ("RBP(p=0.5,rel=2)@10", "RBP(p=0.5,rel=2)@10"),
        ("infAP", "infAP"),
        (" nDCG@10 ", "nDCG@10"),
    ],
)
def test_a_name_is_read_as_ir_measures_writes_it(written: str, name: str) -> None:
    assert parse_measure(written).name == name
    assert parse_measure(name) == parse_measure(written)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("Recall@0", "whole number from 1 up"),
        ("Recall@-1", "whole number from 1 up"),
        ("Recall@2.5", "whole number from 1 up"),
        ("Recall@05", "whole number from 1 up"),
        ("nDCG@ten", "whole number from 1 up"),
        ("Recall", "needs a cut-off"),
        ("P", "needs a cut-off"),
        ("Bpref@5", "takes no cut-off"),
        ("Hits@5", "Known are"),
        ("", "Known are"),
        ("ERR@10", "not one of the measures computed here"),
        ("RBP(p=1.5)", "between 0 and 1"),
        ("RBP(p=0)", "between 0 and 1"),
        ("nDCG(gains={1:5})@5", "cannot be set in a measure's name"),
        ("P(judged_only=True)@5", "cannot be set in a measure's name"),
        ("P(rel=0)@5", "a grade from 1 up"),
        ("nDCG@5; import os", "is not a measure"),
    ],
)
def test_a_wrong_name_says_what_is_right(written: str, told: str) -> None:
    with pytest.raises(MeasureError, match=told):
        parse_measure(written)


def test_measures_keep_their_order_and_come_once() -> None:
    assert [m.name for m in parse_measures(["RR@5", "P@1", "MRR@5"])] == ["RR@5", "P@1"]
    with pytest.raises(MeasureError, match="No measure was named"):
        parse_measures([])


def test_the_gain_of_a_grade() -> None:
    assert [gain_of(g, "exponential") for g in range(4)] == [0, 1, 3, 7]
    assert [gain_of(g, "linear") for g in range(4)] == [0, 1, 2, 3]


CHUNKS = [f"c{n}" for n in range(9)]
MEASURES = ["Recall", "P", "Success", "AP", "nDCG", "RR", "Judged"]
labels = st.dictionaries(st.sampled_from(CHUNKS), st.integers(0, 3), min_size=1).filter(
    lambda known: any(known.values())
)
rankings = st.lists(st.sampled_from(CHUNKS), unique=True)
chunk_classes = st.permutations(CHUNKS).flatmap(
    lambda order: st.sampled_from([(), (order[:2],), (order[:3], order[3:5]), (order[:4], order[4:8])])
)


@given(
    known=labels, ranking=rankings, classes=chunk_classes, k=st.integers(1, 10), threshold=st.integers(1, 3)
)
@settings(max_examples=150, deadline=None)
def test_each_measure_equals_its_slow_twin(known, ranking, classes, k, threshold) -> None:
    entries, grades = stand_for(ranking, known, classes)
    if max(grades) < threshold:
        return
    asked = [f"{name}@{k}" for name in MEASURES] + ["AP", "RR", "Bpref", "nDCG"]
    for gain in ("exponential", "linear"):
        one = world({"q": known}, classes=classes)
        scores = score(one, {"q": ranking}, asked, threshold=threshold, gain=gain)
        for measure, value in zip(scores.measures, scores.values[0], strict=True):
            right = twin(measure.family, measure.k, entries, grades, threshold=threshold, gain=gain)
            assert value == pytest.approx(right, abs=1e-12), measure.name


@given(known=labels, ranking=rankings.filter(len), k=st.integers(1, 10), threshold=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_without_classes_each_measure_equals_ir_measures(known, ranking, k, threshold) -> None:
    if max(known.values()) < threshold:
        return
    scores = score(
        world({"q": known}),
        {"q": ranking},
        [f"{name}@{k}" for name in MEASURES] + ["AP", "RR", "Bpref"],
        threshold=threshold,
        gain="linear",
    )
    ids = {"q": {chunk: float(-place) for place, chunk in enumerate(ranking)}}
    for measure, value in zip(scores.measures, scores.values[0], strict=True):
        options = "" if measure.family in ("nDCG", "Judged") else f"(rel={threshold})"
        cut = f"@{measure.k}" if measure.k else ""
        theirs = ir_measures.parse_measure(f"{measure.family}{options}{cut}")
        # One measure a call: a call that asks for several mixes them up.
        assert value == pytest.approx(
            ir_measures.calc_aggregate([theirs], {"q": known}, ids)[theirs], abs=1e-12
        )


def test_all_orders_of_a_small_fixture_stay_in_bounds_and_recall_never_falls() -> None:
    known = world({"q": {"a": 3, "b": 2, "c": 1, "d": 0}}, classes=[["b", "e"]])
    depths = range(1, 6)
    asked = [f"{name}@{k}" for name in (*MEASURES, "RBP(p=0.7)") for k in depths]
    for order in itertools.permutations("abcde"):
        scores = score(known, {"q": order}, asked)
        assert ((scores.values >= 0) & (scores.values <= 1 + 1e-12)).all()
        recall = [scores.column(Measure("Recall", k))[0] for k in depths]
        assert recall == sorted(recall)


@given(known=labels, ranking=rankings)
@settings(max_examples=60, deadline=None)
def test_an_unlabelled_tail_changes_nothing_but_the_unjudged_rate(known, ranking) -> None:
    asked = ["Recall@5", "nDCG@5", "AP", "RR", "Bpref", "nDCG", "P@5"]
    short = score(world({"q": known}), {"q": ranking}, asked)
    long = score(world({"q": known}), {"q": [*ranking, *(f"x{n}" for n in range(40))]}, asked)
    assert short.values == pytest.approx(long.values)


def test_own_thresholds_stand_beside_the_common_one() -> None:
    known = world({"q": {"a": 1, "b": 2, "c": 3}})
    scores = score(
        known, {"q": ["a", "b", "x"]}, ["P@2", "P(rel=2)@2", "Recall(rel=3)@2", "nDCG@2"], threshold=1
    )
    assert scores.values[0][:3].tolist() == [1.0, 0.5, 0.0]
    assert scores.values[0][3] == pytest.approx(twin("nDCG", 2, [1, 2, None], [3, 2, 1]))


def test_many_cut_offs_of_one_measure_stay_apart() -> None:
    ranking = [f"d{n:02}" for n in range(1, 21)]
    known = world({"q1": {f"d{n:02}": 1 for n in range(1, 11)}})
    scores = score(known, {"q1": ranking}, ["P@10", "P@15", "P@5", "P@100", "P@1"])
    assert scores.values[0] == pytest.approx([1.0, 10 / 15, 1.0, 0.1, 1.0])


def test_rbp_and_its_residual() -> None:
    known = world({"q": {"a": 1, "b": 0}})
    scores = score(known, {"q": ["a", "x", "b"]}, ["RBP(p=0.5)", "RBP(p=0.5)@2"])
    assert scores.values[0].tolist() == [0.5, 0.5]
    # Unjudged at rank 2 weighs 0.25; behind rank 3 lies 0.125, behind rank 2 lies 0.25.
    assert scores.residuals["RBP(p=0.5)"].tolist() == [0.375]
    assert scores.residuals["RBP(p=0.5)@2"].tolist() == [0.5]


def test_inferred_ap_knows_what_was_pooled_but_not_judged() -> None:
    # "a" relevant at rank 3; above it one rejected and one pooled but unjudged chunk:
    # 1/3 + 2/3 * (2 pooled of 2 above) * (0 relevant + e) / (1 judged + 2e), nearly 1/3.
    known = world({"q": {"a": 1, "b": 0}}, pooled=[("q", "s")])
    assert score(known, {"q": ["b", "s", "a"]}, ["infAP"]).values[0][0] == pytest.approx(1 / 3, abs=1e-4)
    # A relevant one above: 1/1 at rank 1, and at rank 3: 1/3 + 2/3 * 2/2 * 1/1.
    known = world({"q": {"a": 1, "b": 1}}, pooled=[("q", "s")])
    sampled = score(known, {"q": ["b", "s", "a"]}, ["infAP", "AP", "P@3", "Bpref", "nDCG@3"])
    assert sampled.values[0][0] == pytest.approx((1 + 1) / 2, abs=1e-4)
    # Being pooled changes no other measure.
    plain = score(
        world({"q": {"a": 1, "b": 1}}), {"q": ["b", "s", "a"]}, ["infAP", "AP", "P@3", "Bpref", "nDCG@3"]
    )
    assert sampled.values[0][1:] == pytest.approx(plain.values[0][1:])
    assert plain.values[0][0] == pytest.approx((1 + 1 / 3 + 1 / 3 * 1) / 2, abs=1e-4)


def test_gains_too_high_for_an_exponent_are_refused_where_they_matter() -> None:
    known = world({"q": {"a": 40}})
    assert score(known, {"q": ["a"]}, ["P@1"]).values[0][0] == 1.0
    assert score(known, {"q": ["a"]}, ["nDCG@1"], gain="linear").values[0][0] == 1.0
    with pytest.raises(ValueError, match="use linear gain"):
        score(known, {"q": ["a"]}, ["nDCG@1"])


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="everything judged would be relevant"):
        score(world({"q": {"a": 0}}), {"q": ["a"]}, ["P@1"], threshold=0)


def test_grade_zero_is_a_label() -> None:
    known = world({"q": {"a": 0, "b": 1}})
    scores = score(known, {"q": ["a", "x"]}, ["Judged@2", "Judged@1"])
    assert by_question(known, scores, "Judged@2") == {"q": 0.5}
    assert by_question(known, scores, "Judged@1") == {"q": 1.0}

"""The commands `score` and `compare`: what they print, their documents and their exit statuses."""

from __future__ import annotations

import json

import pytest

from tests.commands import call
from tests.conftest import make_questions, make_run
from tests.scoring.test_measures import LABELS, RUN_A, RUN_B
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db


@pytest.fixture
def worked(evalset):
    release = release_labels(evalset, LABELS)
    return release, make_run(evalset, "A", RUN_A), make_run(evalset, "B", RUN_B)


def test_score_prints_a_table_with_the_rate_beside_each_number(worked, capsys) -> None:
    status, out = call(
        "score", "handbook", "--release", 1, "--run", "A", "B", "--measure", "Recall@3", "RR@3", capsys=capsys
    )
    assert status == 0
    lines = out.splitlines()
    assert "policy raw, threshold 1, exponential gain" in lines[0]
    assert lines[1].split() == ["run", "n", "Recall@3", "unjudged@3", "RR@3", "unjudged@3"]
    assert lines[2].split() == ["A", "3", "0.8333", "0", "%", "0.8333", "0", "%"]
    status, out = call(
        "score",
        "handbook",
        "--release",
        1,
        "--run",
        "B",
        "--measure",
        "nDCG@3",
        "--per-question",
        capsys=capsys,
    )
    assert "limits" in out
    assert "0.6064" in out


def test_score_as_json_has_its_shape(worked, capsys) -> None:
    _, out = call(
        "score",
        "handbook",
        "--release",
        1,
        "--run",
        "A",
        "--measure",
        "Recall@3",
        "AP",
        "--json",
        capsys=capsys,
    )
    document = json.loads(out)
    assert set(document) >= {"release", "hash", "threshold", "gain", "policy", "unit", "runs"}
    (run,) = document["runs"]
    assert set(run) >= {"run", "n", "skipped", "unjudged", "measures", "questions"}
    assert run["unjudged"] == {"3": 0.0, "all": 0.0}
    assert run["questions"][0] == {
        "id": "limits",
        "unjudged": {"3": 0.0, "all": 0.0},
        "measures": {"Recall@3": 0.5, "AP": 0.5},
    }
    assert run["measures"]["Recall@3"] == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "nowhere", "--release", 1, "--run", "A", "--measure", "P@1"),
        ("score", "handbook", "--release", 9, "--run", "A", "--measure", "P@1"),
        ("score", "handbook", "--release", 1, "--run", "Z", "--measure", "P@1"),
        ("score", "handbook", "--release", 1, "--run", "A", "--measure", "P@0"),
        ("compare", "handbook", "A", "A", "--release", 1, "--measure", "P@1"),
        ("compare", "handbook", "A", "B", "--release", 1, "--measure", "P@1", "--margin", "2"),
        ("compare", "handbook", "A", "B", "--release", 1, "--measure", "P@1", "--seed", "-1"),
    ],
)
def test_bad_input_exits_3_with_a_report(worked, capsys, arguments) -> None:
    status, out = call(*arguments, "--json", capsys=capsys)
    assert status == 3
    assert json.loads(out)["error"]


def many(evalset, grades_b, n=40):
    """A release and two runs over n questions; run A has every answer first, run B where `grades_b` says so."""
    release = release_labels(evalset, {f"q{i:02}": {f"a{i}": 1, f"b{i}": 0} for i in range(n)})
    make_run(evalset, "A", {f"q{i:02}": [f"a{i}", f"b{i}"] for i in range(n)})
    make_run(
        evalset,
        "B",
        {f"q{i:02}": ([f"a{i}"] if grades_b(i) else [f"b{i}", f"a{i}"]) for i in range(n)},
    )
    return release


COMPARE = ("compare", "handbook", "A", "B", "--release", 1, "--measure", "P@1")


def test_compare_exits_1_where_a_regression_beyond_the_margin_is_shown(evalset, capsys) -> None:
    many(evalset, lambda i: i % 2 == 0)
    status, out = call(*COMPARE, capsys=capsys)
    assert status == 1
    assert "P@1: The difference may be read." in out
    assert "0 wins, 20 losses, 20 ties over n = 40" in out
    assert call(*COMPARE, "--margin", "0.8", capsys=capsys)[0] == 0


def test_compare_warns_of_small_slices_and_score_tells_the_residual(evalset, capsys) -> None:
    make_questions(evalset, "q00", slices=["legal"])
    many(evalset, lambda i: i != 3)
    _, out = call(*COMPARE, capsys=capsys)
    assert "Slice legal: only 1 question: few for any conclusion (below 50)." in out
    _, out = call("score", "handbook", "--release", 1, "--run", "A", "--measure", "RBP(p=0.5)", capsys=capsys)
    assert "A: residual of RBP(p=0.5) 0.2500" in out


def test_compare_exits_0_where_none_is_shown(evalset, capsys) -> None:
    many(evalset, lambda i: i != 3)
    status, out = call(*COMPARE, "--json", capsys=capsys)
    document = json.loads(out)
    assert status == 0
    assert set(document) >= {
        *(
            "reading",
            "why",
            "measure",
            "a",
            "b",
            "n",
            "wins",
            "losses",
            "ties",
            "difference",
            "interval",
            "p",
        ),
        *("regressions", "configuration_differences", "comparisons_so_far", "sentence"),
    }
    assert document["regressions"] == [
        {"id": "q03", "a": 1.0, "b": 0.0, "unjudged_a": 0.0, "unjudged_b": 0.0}
    ]
    assert document["interval"][0] < document["interval"][1] == 0.0


def test_compare_exits_2_where_it_may_not_be_read(evalset, capsys) -> None:
    release_labels(evalset, {"q": {"a": 1}})
    make_run(evalset, "A", {"q": ["a"]})
    make_run(evalset, "B", {"q": ["x"]})
    status, out = call(*COMPARE, "--json", capsys=capsys)
    assert status == 2
    assert json.loads(out)["reading"] == "uninterpretable"


def test_what_was_compared_is_recorded_as_the_leads(evalset, alice, carol, capsys) -> None:
    many(evalset, lambda i: i != 3)
    assert call(*COMPARE, "--by", "alice", capsys=capsys)[0] == 3
    assert call(*COMPARE, "--by", "carol", capsys=capsys)[0] == 0
    assert evalset.events.get(verb="runs-compared").by == carol
    call("score", "handbook", "--release", 1, "--run", "A", "--measure", "AP", "--by", "carol", capsys=capsys)
    assert (
        evalset.score_results.filter(measures=["AP"]).values_list("created_by", flat=True).get() == carol.pk
    )


def test_compare_takes_several_measures_and_adjusts_for_them(evalset, capsys) -> None:
    many(evalset, lambda i: i % 2 == 0)
    status, out = call(*COMPARE, "RR@2", "--json", capsys=capsys)
    document = json.loads(out)
    assert [one["measure"] for one in document["all"]] == ["P@1", "RR@2"]
    assert document["all"][0]["p_holm"] == pytest.approx(min(1, 2 * document["all"][0]["p"]))
    assert status == 1

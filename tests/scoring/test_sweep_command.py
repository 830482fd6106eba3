"""The command `sweep`: the runs in order, the price of picking the best, and its confirmation on the holdout split."""

from __future__ import annotations

import pytest

from evalsets.models import Question
from scoring.models import Comparison
from tests.commands import call, call_json
from tests.conftest import make_run
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db
SWEEP = ("sweep", "handbook", "--release", 2, "--measure", "P@1", "--baseline", "base")


@pytest.fixture
def swept(evalset):
    """`good` finds the answer of q1 first, `bad` none; q2 is the holdout, where `good` is no better than `base`."""
    release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    for name, split in (("q1", "dev"), ("q2", "holdout")):
        Question.objects.filter(external_id=name).update(split=split)
    release_labels(evalset, {"q1": {"b": 0}})
    make_run(evalset, "base", {"q1": ["b", "a"], "q2": ["a"]})
    make_run(evalset, "good", {"q1": ["a"], "q2": ["a", "b"]})
    make_run(evalset, "bad", {"q1": ["b"], "q2": ["b", "a"]}, system="base")


def test_the_best_comes_first_with_what_picking_it_costs(swept, capsys):
    status, document = call_json(*SWEEP, "--run", "bad", "good", "base", capsys=capsys)
    assert status == 0
    assert document.keys() >= {"release", "hash", "measure", "threshold", "gain", "unit", "split"}
    assert (document["baseline"], document["best"]) == ("base", "good")
    assert [one["b"]["run"] for one in document["comparisons"]] == ["good", "bad"]
    assert all(
        {"reading", "interval", "p", "p_holm", "n", "page"} <= one.keys() for one in document["comparisons"]
    )
    assert (document["floor"]["a"], document["floor"]["b"]) == ("base", "bad")
    assert (document["has_holdout"], document["holdout_uses"], document["confirmation"]) == (True, 2, None)
    _, out = call(*SWEEP, "--run", "bad", "good", capsys=capsys)
    assert out.startswith("The best of 2 looks better than it is.")
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["run", "good", "bad", "base"]
    assert out.endswith("Confirm good on the holdout split with --confirm.\n")
    assert Comparison.objects.count() == 2


def test_the_best_is_confirmed_on_the_holdout(swept, capsys):
    arguments = (*SWEEP, "--run", "bad", "good", "--split", "dev", "--confirm")
    status, document = call_json(*arguments, capsys=capsys)
    assert status == 0
    confirmation = document["confirmation"]
    assert (confirmation["split"], confirmation["b"]["run"], confirmation["ties"]) == ("holdout", "good", 1)
    assert document["holdout_uses"] == 1
    assert Comparison.objects.count() == 3
    _, out = call(*arguments, capsys=capsys)
    assert f"On the holdout split: {confirmation['sentence']}" in out


def test_it_exits_2_where_the_best_may_not_be_read(evalset, swept, capsys):
    make_run(evalset, "unknown", {"q1": ["x"], "q2": ["y"]})
    status, document = call_json(*SWEEP, "--run", "unknown", capsys=capsys)
    assert (status, document["comparisons"][0]["reading"]) == (2, "uninterpretable")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "base"], "Name a run other than the baseline."),
        (["--run", "better"], "has no run 'better'"),
        (["--run", "good", "--measure", "RR@1"], "Name one measure here."),
        (["--run", "good", "--split", "holdout", "--confirm"], "sweep with --split dev"),
    ],
)
def test_it_says_what_is_wrong(swept, capsys, arguments, message):
    status, document = call_json(*SWEEP, *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]
    assert not Comparison.objects.exists()


def test_without_a_holdout_nothing_is_compared(swept, capsys):
    Question.objects.update(split="")
    status, document = call_json(*SWEEP, "--run", "good", "--confirm", capsys=capsys)
    assert (status, "`manage.py draw_split handbook` draws one" in document["error"]) == (3, True)
    assert not Comparison.objects.exists()

"""The commands `reusability` and `stages`: their documents, tables and exit statuses."""

from __future__ import annotations

import pytest

from pooling.models import Pool, PoolRun
from scoring.models import Analysis
from tests.commands import call, call_json
from tests.conftest import make_run
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db
REUSABILITY = ("reusability", "handbook", "--release", 1, "--measure", "Recall@2")


@pytest.fixture
def pooled(evalset):
    """Two systems of one pool; without what only `second` found the other stands first."""
    release_labels(evalset, {"q1": {"a": 1, "b": 1, "c": 1}})
    runs = [make_run(evalset, "first", {"q1": ["a"]}), make_run(evalset, "second", {"q1": ["b", "c"]})]
    pool = Pool.objects.create(
        evalset=evalset, name="p", strategy="depth", seed=1, specification_hash="0" * 64
    )
    for position, run in enumerate(runs):
        PoolRun.objects.create(pool=pool, run=run, position=position, k=2)
    return release_labels(evalset, {"q2": {"z": 0}})


def test_reusability_exits_1_where_a_rank_changes(pooled, capsys):
    arguments = (
        "reusability",
        "handbook",
        "--release",
        2,
        "--measure",
        "Recall@2",
        "--run",
        "first",
        "second",
    )
    status, document = call_json(*arguments, capsys=capsys)
    assert status == 1
    assert document.keys() >= {"release", "hash", "measure", "threshold", "gain", "n", "systems", "page"}
    assert (document["release"], document["moved"]) == (2, 1)
    rows = {row["system"]: row for row in document["systems"]}
    assert (rows["second"]["removed"], rows["second"]["rank_before"], rows["second"]["rank_after"]) == (
        2,
        1,
        2,
    )
    status, out = call(*arguments, capsys=capsys)
    assert status == 1
    assert out.startswith("1 of 2 systems would stand elsewhere had they not been pooled.")
    assert Analysis.objects.count() == 1


def test_reusability_exits_0_where_none_does(evalset, capsys):
    release_labels(evalset, {"q1": {"a": 1}})
    make_run(evalset, "first", {"q1": ["a"]})
    make_run(evalset, "second", {"q1": ["b", "c"]})
    status, out = call(*REUSABILITY, "--run", "first", "second", capsys=capsys)
    assert status == 0
    assert "No system would change its rank" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "first"], "at least two systems"),
        (["--run", "first", "again"], "Choose one run of each system"),
        (["--run", "first", "third"], "has no run 'third'"),
        (["--run", "first", "second", "--measure", "RR@2"], "Name one measure here."),
    ],
)
def test_reusability_says_what_is_wrong(pooled, evalset, capsys, arguments, message):
    make_run(evalset, "again", {"q1": ["c"]}, system="first")
    status, document = call_json(*REUSABILITY, *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]


@pytest.fixture
def staged(evalset):
    release_labels(evalset, {"q1": {"a": 3, "b": 1, "c": 1, "never": 1}})
    make_run(evalset, "early", {"q1": ["c"]}, system="s", stage="candidates")
    make_run(evalset, "first", {"q1": ["a", "b", "c"]}, system="s", stage="candidates")
    make_run(evalset, "second", {"q1": ["b", "a", "c"]}, system="s", stage="reranked", k=2)
    make_run(evalset, "other", {"q1": ["a"]}, stage="context")


@pytest.mark.parametrize("which", [["--system", "s"], ["--run", "second", "first"]])
def test_stages_are_traced_by_system_or_by_runs(staged, capsys, which):
    status, document = call_json("stages", "handbook", "--release", 1, *which, capsys=capsys)
    assert status == 0
    assert document.keys() >= {
        "release",
        "hash",
        "system",
        "runs",
        "relevant",
        "left",
        "fates",
        "lost",
        "page",
    }
    assert [one["run"] for one in document["runs"]] == ["first", "second"]
    assert document["left"] == [{"stage": "candidates", "left": 3}, {"stage": "reranked", "left": 2}]
    _, out = call("stages", "handbook", "--release", 1, *which, capsys=capsys)
    lines = [line.split() for line in out.splitlines()]
    assert ["reranked", "second", "2"] in lines
    assert ["never", "retrieved", "1"] in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "t"], "has no system 't'. Known: other, s."),
        (["--system", "other"], "at least two stages"),
        (["--run", "first", "other"], "runs of one system"),
        (["--run", "early", "first"], "one run for each of at least two stages"),
    ],
)
def test_stages_say_what_is_wrong(staged, capsys, arguments, message):
    status, document = call_json("stages", "handbook", "--release", 1, *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]

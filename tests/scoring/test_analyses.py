"""Reusability and stages on the real database."""

from __future__ import annotations

import pytest

from evalsets.errors import BadInput
from pooling.models import Pool, PoolRun, Run, System
from scoring.services.analysing import analyse_reusability, analyse_stages
from scoring.services.scoring import resolve
from tests.conftest import make_run
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db


def test_reusability_is_computed_once_and_names_families(evalset) -> None:
    release_labels(evalset, {"q1": {"a": 1, "b": 1, "only": 1}, "q2": {"c": 1}})
    runs = [
        make_run(evalset, "old", {"q1": ["a", "b"], "q2": ["c"]}),
        make_run(evalset, "new", {"q1": ["only", "a"], "q2": ["x", "c"]}),
        make_run(evalset, "newer", {"q1": ["only", "b"], "q2": ["x"]}),
    ]
    pool = Pool.objects.create(
        evalset=evalset, name="p", strategy="depth", seed=1, specification_hash="0" * 64
    )
    for position, run in enumerate(runs):
        PoolRun.objects.create(pool=pool, run=run, position=position, k=2)
    System.objects.filter(name__startswith="new").update(family="dense")
    release = release_labels(evalset, {"q3": {"z": 0}})
    runs = list(Run.objects.select_related("system").order_by("pk"))
    asked = resolve(release, measures=["Recall@2"])
    analysis = analyse_reusability(release=release, runs=runs, asked=asked)
    rows = {row["system"]: row for row in analysis.document["systems"]}
    assert (rows["old"]["removed"], rows["new"]["removed"], rows["newer"]["removed"]) == (0, 1, 1)
    assert rows["new"]["family"] == ["new", "newer"]
    assert rows["new"]["score_after"] == pytest.approx((1 / 2 + 1) / 2)
    assert rows["new"]["pooled_to"] == 2
    assert analyse_reusability(release=release, runs=runs, asked=asked) == analysis
    some = analyse_reusability(release=release, runs=[runs[0], runs[2]], asked=asked)
    rows = {row["system"]: row for row in some.document["systems"]}
    assert (rows["old"]["removed"], rows["newer"]["removed"]) == (0, 1), "the third was pooled as well"
    assert rows["newer"]["family"] == ["new", "newer"]
    with pytest.raises(BadInput, match="at least two systems"):
        analyse_reusability(release=release, runs=runs[:1], asked=asked)


def test_stages_are_traced_and_belong_to_one_system(evalset) -> None:
    release = release_labels(evalset, {"q1": {"a": 3, "b": 1, "c": 1, "never": 1}})
    runs = [
        make_run(evalset, "first", {"q1": ["a", "b", "c"]}, system="s", stage="candidates"),
        make_run(evalset, "second", {"q1": ["b", "a", "c"]}, system="s", stage="reranked", k=2),
        make_run(evalset, "third", {"q1": ["b"]}, system="s", stage="context"),
    ]
    document = analyse_stages(release=release, runs=runs[::-1]).document
    assert document["relevant"] == 4
    assert document["left"] == [
        {"stage": "candidates", "left": 3},
        {"stage": "reranked", "left": 2},
        {"stage": "context", "left": 1},
    ]
    assert {row["chunk"]: row["fate"] for row in document["lost"]} == {
        "a": "dropped in packing",
        "c": "cut by reranking",
        "never": "never retrieved",
    }
    with pytest.raises(BadInput, match="at least two stages"):
        analyse_stages(release=release, runs=runs[:1])
    with pytest.raises(BadInput, match="one system"):
        analyse_stages(release=release, runs=[runs[0], make_run(evalset, "x", {"q1": []}, stage="context")])

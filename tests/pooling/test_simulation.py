"""Replaying strategies against known labels: the curves equal a plain recount."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from pooling.simulation import SIMULATED, simulate

RUNS = [
    {"q1": (["a", "b", "c"], [9.0, 5.0, 1.0]), "q2": (["x", "y"], [2.0, 1.0])},
    {"q1": (["c", "d", "a"], [3.0, 2.0, 1.0]), "q3": (["z"], [1.0])},
]
LABELS = {"q1": {"a": 2, "c": 1, "d": 0, "e": 1}, "q2": {"y": 1}, "q3": {"z": 0}}


def points(name: str, **options) -> list[tuple[int, int]]:
    (curve,) = simulate(RUNS, LABELS, [name], **{"k": 3, **options}).curves
    return curve.points


def test_depth_goes_rank_by_rank() -> None:
    # q1: a, c at depth 1; b, d at 2. q2: x at 1, y at 2. q3 has no relevant label and is left out.
    assert points("depth") == [(0, 0), (3, 2), (6, 3)]
    assert points("depth", threshold=2) == [(0, 0), (2, 1), (4, 1)]
    assert points("depth", k=1) == [(0, 0), (3, 2)]


def test_budget_goes_place_by_place_in_fused_order() -> None:
    # By votes a and c come first (two runs each, best rank 1), then b and d; of q2 x, then y.
    assert points("budget:votes") == [(0, 0), (2, 1), (4, 3), (5, 3), (6, 3)]


def test_every_strategy_ends_at_the_whole_union() -> None:
    simulation = simulate(RUNS, LABELS, SIMULATED, k=3)
    assert simulation.union == 6
    assert (simulation.relevant_in_union, simulation.relevant, simulation.unlabelled) == (3, 4, 2)
    for curve in simulation.curves:
        assert curve.points[0] == (0, 0)
        assert curve.points[-1] == (6, 3)
        assert curve.points == sorted(curve.points)


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be simulated"):
        simulate(RUNS, LABELS, ["bandit-of-old"], k=3)
    without = [{"q1": (["a"], None)}]
    with pytest.raises(ValueError, match="a run has none"):
        simulate(without, LABELS, ["budget:combsum"], k=3)


@pytest.fixture
def files(tmp_path):
    qrels, first, second = tmp_path / "qrels.txt", tmp_path / "one.txt", tmp_path / "two.txt"
    qrels.write_text("".join(f"{q} 0 {c} {g}\n" for q, known in LABELS.items() for c, g in known.items()))
    for path, run in ((first, RUNS[0]), (second, RUNS[1])):
        path.write_text(
            "".join(
                f"{q} Q0 {c} {rank} {score} tag\n"
                for q, (chunks, scores) in run.items()
                for rank, (c, score) in enumerate(zip(chunks, scores, strict=True), 1)
            )
        )
    return qrels, first, second


def test_the_command_prints_curves_and_costs(files, capsys) -> None:
    qrels, *runs = map(str, files)
    call_command(
        "simulate_pooling", "--qrels", qrels, "--run", *runs, "--strategy", "depth", "budget", "--json"
    )
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["strategies"]] == ["depth", "budget:rrf"]
    assert document["strategies"][0]["curve"] == [[0, 0], [3, 2], [6, 3]]
    assert document["strategies"][0]["judgments_to_find"]["0.5"] == 3
    call_command("simulate_pooling", "--qrels", qrels, "--run", *runs)
    out = capsys.readouterr().out
    assert "holds 6 pairs (2 without a label" in out
    assert "budget:combmnz" in out


def test_the_command_refuses_bad_files_and_names(files, capsys, tmp_path) -> None:
    qrels, *runs = map(str, files)
    broken = tmp_path / "broken.txt"
    broken.write_text("q1 Q0 a 1 1.0 tag\nq1 Q0 a b 2 1.0 tag\n")
    for arguments, told in (
        (["--qrels", qrels, "--run", str(broken)], "line 2"),
        (["--qrels", qrels, "--run", *runs, "--strategy", "luck"], "cannot be simulated"),
        (["--qrels", qrels, "--run", *runs, "--k", "0"], "from 1 up"),
    ):
        with pytest.raises(CommandError, match=told) as caught:
            call_command("simulate_pooling", *arguments)
        assert caught.value.returncode == 3

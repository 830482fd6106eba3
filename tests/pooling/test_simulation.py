"""Replaying strategies against known labels: the curves equal a plain recount."""

from __future__ import annotations

import json
from xml.etree import ElementTree

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


def test_what_goes_by_the_grades_goes_place_by_place_too() -> None:
    """Of three runs one has nothing but relevant chunks: it is found out and followed."""
    good = {f"q{n}": ([f"r{n}-{i}" for i in range(8)] + ["x"], None) for n in range(30)}
    bad = {f"q{n}": ([f"b{n}-{i}" for i in range(8)], None) for n in range(30)}
    worse = {f"q{n}": ([f"w{n}-{i}" for i in range(8)], None) for n in range(30)}
    labels = {f"q{n}": {f"r{n}-{i}": 1 for i in range(8)} for n in range(30)}
    names = ["depth", "move-to-front", "max-mean", "max-mean-ns", "bayesian-bandit"]
    simulation = simulate([bad, good, worse], labels, names, k=8)
    found = {curve.name: dict(curve.points) for curve in simulation.curves}
    # Of each question's 24 pairs and the x: by depth 9 hold 3 relevant ones, while two misses tell the others enough
    # to have all 8 within 10.
    assert found["depth"][270] == 90
    for name in ("move-to-front", "max-mean", "max-mean-ns"):
        assert found[name][300] == 240, name
    assert found["bayesian-bandit"][300] > 150


def test_a_sample_hands_out_what_the_lot_falls_on() -> None:
    assert points("stratified:1-1:1") == [(0, 0), (2, 1), (3, 2)]
    assert points("stratified:1-3:1")[-1] == (6, 3)
    runs = [{f"q{n}": ([f"{n}-{i}" for i in range(20)], None) for n in range(50)}]
    labels = {f"q{n}": {f"{n}-{i}": 1 for i in range(20)} for n in range(50)}
    (curve,) = simulate(runs, labels, ["stratified:1-5:1,6-20:0.2"], k=20, seed=3).curves
    assert curve.points[-1][0] == pytest.approx(50 * (5 + 3), abs=40)
    assert curve.points[-1][0] == curve.points[-1][1]


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be simulated"):
        simulate(RUNS, LABELS, ["bandit-of-old"], k=3)
    with pytest.raises(ValueError, match="from rank 1"):
        simulate(RUNS, LABELS, ["stratified:5-9:1"], k=3)
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


def test_the_command_draws_a_picture_that_names_every_line(files, tmp_path, capsys) -> None:
    qrels, *runs = map(str, files)
    picture = tmp_path / "curves.svg"
    options = ["--strategy", "depth", "max-mean", "stratified:1-1:1", "--picture", str(picture)]
    call_command("simulate_pooling", "--qrels", qrels, "--run", *runs, *options)
    assert "never" in capsys.readouterr().out  # a sample of the first rank never finds all
    svg = ElementTree.parse(picture).getroot()
    space = "{http://www.w3.org/2000/svg}"
    names = {text.text for text in svg.iter(f"{space}text")}
    assert {"depth", "max-mean", "stratified:1-1:1", "6 pairs in the union, 3 of them relevant"} <= names
    assert len(list(svg.iter(f"{space}polyline"))) == 3
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("simulate_pooling", "--qrels", qrels, "--run", *runs, "--picture", str(tmp_path))


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

"""The walk-through of docs/api.md and the gate of docs/examples, run as they stand against real servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from evalsets.models import EvalSet
from labels.models import Release
from tests.servers import server_environment

DOCS = settings.BASE_DIR / "docs"


def commands_of(text: str) -> str:
    """All that stands between ```bash and ```, as one script."""
    return "\n".join(re.findall(r"^```bash\n(.*?)^```$", text, flags=re.M | re.S))


@pytest.fixture
def run(web, worker, broker, tmp_path):
    """Run some bash in a folder that looks like the checkout, with what it writes in a folder of the test."""
    for name in ("manage.py", "demo", "docs"):
        (tmp_path / name).symlink_to(settings.BASE_DIR / name)
    environment = {
        **server_environment(broker),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(settings.BASE_DIR),
        "FAIRPOOL_URL": web.url,
    }

    def bash(script: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script, "bash", *arguments],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return bash


def test_the_walk_through_and_the_gate(run, web, tmp_path) -> None:
    script = commands_of((DOCS / "api.md").read_text())
    done = run(script + '\necho "TOKEN $TOKEN"')
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    evalset = EvalSet.objects.get(slug="handbook")
    release = Release.objects.get(evalset=evalset)
    assert (evalset.questions.count(), evalset.runs.count(), evalset.pools.count()) == (60, 2, 1)
    assert len((tmp_path / "qrels.txt").read_text().splitlines()) == release.counts["labels"] > 1000
    assert (tmp_path / "remainder.jsonl").stat().st_size > 0
    assert "uninterpretable" not in done.stdout
    assert "bootstrapped 95 % interval" in done.stdout
    assert evalset.events.filter(token__name="walk-through").count() > 5

    token = done.stdout.rpartition("TOKEN ")[2].strip()
    gate = "bash docs/examples/gate.sh {file} {name} hybrid nDCG@5 0.02"
    summary = tmp_path / "summary.md"
    secrets = {
        "FAIRPOOL": web.url,
        "FAIRPOOL_EVALSET": "handbook",
        "FAIRPOOL_TOKEN": token,
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    baseline = (settings.BASE_DIR / "demo/runs/hybrid.trec").read_text()
    ranked = [line.split() for line in baseline.splitlines()]
    runs = {
        "same": (baseline, 3, "hold the same rankings"),
        # The first five the other way round.
        "worse": (_run_of(ranked, lambda chunk, rank: (chunk, 100 + rank if rank <= 5 else -rank)), 1, ""),
        # Chunks that nobody has seen stand first.
        "unseen": (_run_of(ranked, lambda chunk, rank: (f"new-{rank}" if rank < 5 else chunk, -rank)), 2, ""),
        "broken": ("q01 Q0 c1 1 high t\n", 3, "line 1: score 'high' (right: a finite number)"),
    }
    for name, (content, status, words) in runs.items():
        (tmp_path / f"{name}.trec").write_text(content)
        done = run(gate.format(file=f"{name}.trec", name=f"pr-{name}"), **secrets)
        assert (done.returncode, words in done.stderr) == (status, True), (name, done.stdout, done.stderr)
    said = summary.read_text()
    assert "A regression beyond 0.02 is shown." in said
    assert "may not be read. Judge the remainder" in said
    assert re.search(rf"^{web.url}/e/handbook/scores/comparisons/\d+/$", said, flags=re.M)


def _run_of(ranked: list[list[str]], change: Callable[[str, int], tuple[str, float]]) -> str:
    """A TREC run with each chunk and score changed by its rank."""
    lines = []
    for question, _, chunk, rank, _, _ in ranked:
        changed, score = change(chunk, int(rank))
        lines.append(f"{question} Q0 {changed} {rank} {score} changed")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("arguments", "status"), [("", 3), ("run.trec pr base nDCG@5 much", 3)])
def test_a_gate_that_was_called_wrongly_gives_no_answer(arguments, status, tmp_path) -> None:
    done = subprocess.run(
        ["bash", str(DOCS / "examples/gate.sh"), *arguments.split()],
        env={"PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == status


def test_the_workflow_calls_the_gate_with_all_it_asks() -> None:
    workflow = yaml.safe_load((DOCS / "examples/gate.yml").read_text())
    step = workflow["jobs"]["gate"]["steps"][-1]
    called = step["run"].split()
    assert called[:2] == ["bash", "docs/examples/gate.sh"]
    assert (DOCS.parent / called[1]).exists()
    needed = set(re.findall(r"\$\{?(FAIRPOOL\w*)", (DOCS / "examples/gate.sh").read_text()))
    assert needed == step["env"].keys()

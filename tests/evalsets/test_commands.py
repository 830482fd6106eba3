"""How a command ends: 1 and 2 are answers, so that neither a wrong call nor a fault of ours may end with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalsets.commands import FairpoolCommand
from evalsets.errors import BadInput


class Ending(FairpoolCommand):
    """Ends in the way that it is asked to."""

    uses_tables = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("way", choices=["answer-1", "answer-2", "bad-input", "fault"])

    def perform(self, **options: Any) -> dict[str, Any]:
        way, _, answer = options["way"].partition("-")
        if way == "bad":
            raise BadInput("Line 3 has seven columns.")
        if way == "fault":
            raise ZeroDivisionError
        self.exit_status = int(answer)
        return {}

    def show(self, document: dict[str, Any]) -> None:
        return None


@pytest.mark.parametrize(
    ("way", "status"),
    [("answer-1", 1), ("answer-2", 2), ("bad-input", 3), ("no such way", 3), ("fault", 70)],
)
def test_exit_status(way, status, capsys):
    with pytest.raises(SystemExit) as end:
        Ending().run_from_argv(["manage.py", "ending", way])
    assert end.value.code == status
    assert ("Traceback" in capsys.readouterr().err) == (way == "fault")


ROOT = Path(__file__).resolve().parents[2]
SIMULATE = "manage.py simulate_pooling --qrels demo/qrels.txt --run demo/runs/bm25.trec --json"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing", "REDIS_URL": "", **environment}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} {line}"],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_has_had_enough_sees_no_traceback():
    done = shell(f"{SIMULATE} | true", SECRET_KEY="a long and random string of a test " * 3)
    assert (done.returncode, done.stderr) == (141, "")


def test_wrong_settings_are_no_answer():
    done = shell("manage.py compare handbook a b --release 1 --measure P@1", SECRET_KEY="")
    assert done.returncode == 70
    assert "SECRET_KEY is not set" in done.stderr
    assert "Traceback" not in done.stderr

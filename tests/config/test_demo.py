"""`manage.py demo` from start to stop, with kills in between."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from config.management.commands.demo import PREFERRED_PORT
from config.supervise import is_healthy
from tests.config.conftest import CHECKOUT, Homestead
from tests.waiting import wait_until

pytestmark = pytest.mark.kill

# Killed together, in two rounds.
WHAT_MAY_DIE = (
    [("gunicorn",), ("celery", "worker"), ("config.embedded.keeper", "postgres")],
    [("supervisor.supervisord",), ("valkey-server",), ("bin/postgres", "-D")],
)


class Demo:
    def __init__(self, process: subprocess.Popen[str], output: str) -> None:
        self.process, self.output = process, output
        found = re.search(r"http://127\.0\.0\.1:\d+", output)
        assert found
        self.url = found[0]


@contextmanager
def running_demo(homestead: Homestead, *arguments: str) -> Iterator[Demo]:
    """The demo, up and answering; killed at the end of the block if it still runs then."""
    with subprocess.Popen(
        [sys.executable, "manage.py", "demo", *arguments],
        cwd=CHECKOUT,
        env=homestead.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # As a shell does with what it runs in the background; Ctrl-C must stop the demo all the same.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        assert process.stdout
        output = ""
        while "Ctrl-C" not in output and (line := process.stdout.readline()):
            output += line
        try:
            assert "Ctrl-C" in output, output
            yield Demo(process, output)
        finally:
            process.kill()


def replaced(homestead: Homestead, words: tuple[str, ...], killed: set[int]) -> bool:
    """Whether new processes of that kind run and all the killed one's children have ended."""
    running = homestead.pids(*words)
    return bool(running) and not running & killed


def test_demo_runs_beside_others_and_survives_kills(homestead):
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", PREFERRED_PORT))
        taken.listen()
    except OSError:
        pass  # taken already, which serves as well
    with taken, running_demo(homestead) as demo:
        assert not demo.url.endswith(f":{PREFERRED_PORT}")
        with urllib.request.urlopen(f"{demo.url}/sign-in/") as page:
            assert "Sign in" in page.read().decode()

        second = homestead.manage("demo")
        assert second.returncode == 0
        assert f"running already at {demo.url}" in second.stdout

        assert "[X] 0001_initial" in homestead.manage("showmigrations", "evalsets").stdout
        made = homestead.manage("create_user", "dora", "--json")
        assert json.loads(made.stdout)["username"] == "dora"

        for kinds in WHAT_MAY_DIE:
            killed = {words: homestead.kill(*words) for words in kinds}
            wait_until(lambda killed=killed: all(replaced(homestead, *item) for item in killed.items()), 90)
            wait_until(lambda: is_healthy(demo.url), 90)

        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(60) == 0
        assert not homestead.processes()


def test_killed_demo_leaves_no_process_behind(homestead):
    with running_demo(homestead) as demo:
        demo.process.kill()
        demo.process.wait(60)
        wait_until(lambda: not homestead.processes(), 60)

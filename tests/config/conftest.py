from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from config.embedded import folder_outside
from config.embedded.home import Home
from tests.waiting import wait_until

CHECKOUT = settings.BASE_DIR


HOLD = """
import sys
from pathlib import Path
from config import embedded
server = embedded.server(getattr(embedded, sys.argv[2]), Path(sys.argv[1]))
server.ensure()
print(server.port, flush=True)
sys.stdin.read()
"""


class Homestead:
    """A FAIRPOOL_HOME of its own for tests that start, kill and break what runs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = Home(path)
        without = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")
        self.environment = {key: value for key, value in os.environ.items() if key not in without}
        self.environment |= {"FAIRPOOL_HOME": str(path), "DJANGO_SETTINGS_MODULE": "config.settings"}

    def run(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments in the checkout, on this home."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=CHECKOUT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("manage.py", *arguments)

    def processes(self) -> dict[int, str]:
        """Command lines of everything that runs for this home, by process number."""
        marker = f"FAIRPOOL_HOME={self.path}".encode()
        # Postgres' and Valkey's processes write their titles over their environment; they are known by their folder.
        data = (self.path, folder_outside(self.home))
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                belongs = marker in (folder / "environ").read_bytes().split(b"\0") or any(
                    (folder / "cwd").readlink().is_relative_to(place) for place in data
                )
                if belongs:
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        found.pop(os.getpid(), None)
        return {pid: command for pid, command in found.items() if command}

    def pids(self, *words: str) -> set[int]:
        """The processes whose command line has all the words."""
        return {pid for pid, line in self.processes().items() if all(word in line for word in words)}

    def kill(self, *words: str) -> set[int]:
        """Kill the first process of its kind (the parent of the others); returns all of that kind."""
        pids = self.pids(*words)
        os.kill(min(pids), signal.SIGKILL)
        return pids


@contextlib.contextmanager
def holder(homestead: Homestead, kind: str = "Postgres") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that uses the server until the block ends; gives the process and the server's port."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(homestead.path), kind],
        cwd=CHECKOUT,
        env=homestead.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert line, "the server did not start"
        yield process, int(line)


def _homestead(path: Path) -> Iterator[Homestead]:
    homestead = Homestead(path)
    yield homestead
    for pid in homestead.processes():
        with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder_outside(homestead.home), ignore_errors=True)


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homestead]:
    """One home for the tests of a module, since making a database takes seconds."""
    yield from _homestead(tmp_path_factory.mktemp("fairpool") / "home")


@pytest.fixture
def homestead(shared_home: Homestead) -> Homestead:
    """The module's home, with nothing running in it."""
    wait_until(lambda: not shared_home.processes())
    return shared_home


@pytest.fixture
def second_home(tmp_path: Path) -> Iterator[Homestead]:
    yield from _homestead(tmp_path / "a home with spaces")

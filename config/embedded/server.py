"""How long an embedded server lives: exactly as long as somebody uses it.

Each server of a home has three lock files in `run/`:

* `NAME.users`: every process that uses the server holds it *shared* until it ends. The kernel lets go of it however
  the process ends, so a killed one leaves nothing behind.
* `NAME.keeper`: held by the server's keeper, a small process (keeper.py) that starts the server, starts it again should
  it die, and waits for `NAME.users` to be free of everybody: then the last one is out, and it stops the server.
* `NAME.start`: held while somebody joins or the keeper stops, so that these cannot cross.

So a command works beside a running demo, and where nothing runs it has the server for its own duration.
"""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from config.embedded.home import EmbeddedError, Home, exclusive, free_port, open_lock, try_lock

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds for a server to answer: recovery after a crash takes a while


class Server(ABC):
    """One embedded server of one home. Subclasses say what it is; this class says who starts it and when."""

    name: ClassVar[str]
    preferred_port: ClassVar[int]
    stop_signal: ClassVar[int]

    def __init__(self, home: Home) -> None:
        self.home = home
        self._joining = threading.Lock()
        self._users: int | None = None  # descriptor of the users' lock, held until this process ends

    @abstractmethod
    def prepare(self) -> list[str]:
        """Make the data folder and whatever the server needs. Returns what the user should be told."""

    @abstractmethod
    def launch(self, port: int, log: int) -> "subprocess.Popen[bytes]":
        """Start the server on `port`, its output to the descriptor `log`."""

    @abstractmethod
    def answers(self, port: int) -> bool:
        """Whether the server on `port` is this one and takes requests."""

    @abstractmethod
    def url(self) -> str:
        """Where clients find the server, password included."""

    def complete(self, port: int) -> None:  # noqa: B027 (most servers have nothing to complete)
        """What is left to do once the server answers for the first time."""

    @property
    def log(self) -> Path:
        return self.home.logs / f"{self.name}.log"

    def lock(self, role: str) -> Path:
        return self.home.run / f"{self.name}.{role}"

    @property
    def port(self) -> int:
        """The port the server listens on, or listened on last."""
        try:
            return int(json.loads((self.home.run / f"{self.name}.json").read_text())["port"])
        except (OSError, ValueError, KeyError):
            return self.preferred_port

    def record(self, port: int) -> None:
        draft = self.home.run / f"{self.name}.json.new"
        draft.write_text(json.dumps({"port": port}))
        draft.replace(self.home.run / f"{self.name}.json")

    def ensure(self) -> None:
        """Have the server running from now until this process ends. Cheap when it is running already.

        Raises EmbeddedError when it cannot be started."""
        with self._joining:
            if self._users is not None and self.is_kept():
                return
            self.home.prepare()
            with exclusive(self.lock("start")):
                if self._users is None:
                    self._users = open_lock(self.lock("users"))
                    fcntl.flock(self._users, fcntl.LOCK_SH)
                if not self.is_kept():
                    self._start_keeper()
            self.wait_until_it_answers()

    def release(self) -> None:
        """Be a user no longer. Where nobody else is one, returns once the server has stopped."""
        with self._joining:
            if self._users is None:
                return
            is_last = try_lock(self._users, fcntl.LOCK_EX)
            os.close(self._users)
            self._users = None
            deadline = time.monotonic() + PATIENCE
            while is_last and self.is_kept() and time.monotonic() < deadline:
                time.sleep(0.05)

    def is_kept(self) -> bool:
        """Whether a keeper looks after the server."""
        try:
            keeper = open_lock(self.lock("keeper"))
        except OSError:
            return False
        try:
            return not try_lock(keeper, fcntl.LOCK_SH)
        finally:
            os.close(keeper)

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.answers(self.port):
            if time.monotonic() > deadline or not self.is_kept():
                raise EmbeddedError(
                    f"The embedded {self.name} does not answer. Its log: {self.log}\n{self.log_tail()}"
                )
            time.sleep(0.05)

    def log_tail(self, lines: int = 8) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def _start_keeper(self) -> None:
        read, write = os.pipe()
        arguments = [
            sys.executable,
            "-m",
            "config.embedded.keeper",
            self.name,
            str(self.home.path),
            str(write),
        ]
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            # The keeper hands its work to a child and ends, so that nobody's child is left to be waited for.
            subprocess.run(
                arguments,
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[write],
                start_new_session=True,
                check=False,
            )
        os.close(write)
        answer = self.log_tail()
        with open(read) as report:
            for line in report:
                kind, _, answer = line.rstrip("\n").partition(" ")
                if kind == "ready":
                    return
                if kind == "note":
                    print(answer, file=sys.stderr)
        why = answer.replace("\\n", "\n")
        raise EmbeddedError(f"The embedded {self.name} could not be started.\n{why}\nIts log: {self.log}")

    def pick_port(self) -> int:
        return free_port(self.port)

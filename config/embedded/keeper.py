"""The keeper of one embedded server: starts it, restarts it, and stops it when the last user is gone.

Run as `python -m config.embedded.keeper NAME HOME DESCRIPTOR`; see server.py for the locks. What it has to say to the
process that started it goes to the descriptor, line by line: notes, then `ready` or `error …`.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from config.embedded.home import EmbeddedError, Home, open_lock, try_lock
from config.embedded.postgres import Postgres
from config.embedded.server import PATIENCE, Server
from config.embedded.valkey import Valkey

PORTS_TRIED = 5
LOG_LIMIT = 20 * 1024**2  # bytes; a longer log is put aside as NAME.log.1 at the start


class Keeper:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.keeper_lock = open_lock(server.lock("keeper"))
        self.users_lock = open_lock(server.lock("users"))
        self.start_lock = open_lock(server.lock("start"))
        self.stopping = threading.Event()
        self.changing = threading.RLock()  # held while the process is started or told to stop
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, report: int) -> None:
        """Start the server on a free port and say so. Raises EmbeddedError when it does not come up."""
        fcntl.flock(self.keeper_lock, fcntl.LOCK_EX)
        for note in self.server.prepare():
            os.write(report, f"note {note}\n".encode())
        for _ in range(PORTS_TRIED):
            port = self.server.pick_port()
            self.process = self.server.launch(port, sys.stderr.fileno())
            if self._comes_up(port):
                self.server.complete(port)
                self.server.record(port)
                return
            # Somebody may have taken the port since we looked; anything else fails the same way again.
            if self.server.pick_port() == port:
                break
        raise EmbeddedError(self.server.log_tail())

    def _comes_up(self, port: int) -> bool:
        assert self.process
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            if self.server.answers(port):
                return True
            time.sleep(0.02)
        self.process.send_signal(self.server.stop_signal)
        self.process.wait()
        return False

    def keep(self) -> None:
        """Look after the server until nobody uses it any more, or until we are told to end."""
        signal.signal(signal.SIGTERM, self._told_to_end)
        threading.Thread(target=self._stop_after_the_last_user, daemon=True).start()
        port = self.server.port
        pause = 0.1
        while True:
            assert self.process
            started = time.monotonic()
            self.process.wait()
            if time.monotonic() - started > 60:
                pause = 0.1
            with self.changing:
                if self.stopping.is_set():
                    return
            print(
                f"The server ended with status {self.process.returncode}; it is started again.",
                file=sys.stderr,
            )
            time.sleep(pause)
            pause = min(pause * 2, 10)
            with self.changing:
                if self.stopping.is_set():
                    return
                # The same port, since those who use the server know it by its port.
                self.server.prepare()
                self.process = self.server.launch(port, sys.stderr.fileno())

    def _stop(self) -> None:
        with self.changing:
            self.stopping.set()
            if self.process and self.process.poll() is None:
                self.process.send_signal(self.server.stop_signal)

    def _told_to_end(self, signum: int, frame: FrameType | None) -> None:
        # In a thread: the signal may have come while the main thread held the lock.
        threading.Thread(target=self._stop, daemon=True).start()

    def _stop_after_the_last_user(self) -> None:
        while True:
            fcntl.flock(self.users_lock, fcntl.LOCK_EX)  # waits until no process holds it shared
            fcntl.flock(self.users_lock, fcntl.LOCK_UN)
            fcntl.flock(self.start_lock, fcntl.LOCK_EX)
            if try_lock(self.users_lock, fcntl.LOCK_EX):
                break  # Nobody joins any more: both locks stay ours until this process has ended.
            fcntl.flock(self.start_lock, fcntl.LOCK_UN)
        self._stop()


def main() -> None:
    kinds: dict[str, type[Server]] = {kind.name: kind for kind in (Postgres, Valkey)}
    name, home, report = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    server = kinds[name](Home(home))
    os.set_inheritable(report, False)
    if server.log.stat().st_size > LOG_LIMIT:
        server.log.replace(server.log.with_suffix(".log.1"))
    if os.fork():
        os._exit(0)
    keeper = Keeper(server)
    try:
        keeper.start(report)
    except (EmbeddedError, OSError) as error:
        os.write(report, f"error {error}".replace("\n", "\\n").encode())
        sys.exit(1)
    os.write(report, b"ready\n")
    os.close(report)
    keeper.keep()


if __name__ == "__main__":
    main()

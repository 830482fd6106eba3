"""FAIRPOOL_HOME: the folder that holds everything a running Fairpool writes on this machine."""

import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


class EmbeddedError(Exception):
    """An embedded server cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Home:
    # Everything that is ever put into it, uploads and collected static files by Django.
    CONTENTS: ClassVar = (
        *("postgres", "postgres.password", "valkey", "valkey.password", "secret_key"),
        *("uploads", "static", "logs", "run"),
    )

    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def run(self) -> Path:
        """Locks and ports of what is running."""
        return self.path / "run"

    def prepare(self) -> None:
        """Make the folders, for this user's eyes only. Raises EmbeddedError where that cannot be done."""
        try:
            for folder in (self.path, self.logs, self.run):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self.run, os.W_OK):
                raise PermissionError(13, "Permission denied", str(self.run))
        except OSError as error:
            raise EmbeddedError(
                f"The folder for data, logs and uploads cannot be written: {error}.\n"
                f"Make {self.path} writable for this user, or set FAIRPOOL_HOME to a folder that is."
            ) from error

    def secret(self, name: str) -> str:
        """A random secret that is made at the first call and kept in a file only this user can read."""
        file = self.path / name
        if not file.exists():
            self.prepare()
            # Written whole under another name first: two processes at once end up with one secret, never half a one.
            draft = file.with_name(f"{name}.{os.getpid()}.new")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
                stream.write(secrets.token_urlsafe(48))
            try:
                os.link(draft, file)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        try:
            return file.read_text().strip()
        except OSError as error:
            raise EmbeddedError(
                f"{file} cannot be read: {error}.\n"
                "This home was made by another user: run as that user, or set FAIRPOOL_HOME to a folder of your own."
            ) from error


def open_lock(path: Path) -> int:
    """A descriptor of the lock file `path`. The kernel drops its locks when the process ends, however it ends."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone; waits for whoever holds it."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, how: int) -> bool:
    """Take the lock if nobody is in the way; says whether it was taken."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def free_port(preferred: int, host: str = "127.0.0.1") -> int:
    """The first port from `preferred` on that nobody listens on, among fifty; else any free one."""
    for port in (*range(preferred, preferred + 50), 0):
        with socket.socket() as candidate:
            # As the servers themselves do: a connection that lingers from the last run is not in the way.
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((host, port))
                candidate.listen()
            except OSError:
                continue
            return int(candidate.getsockname()[1])
    raise EmbeddedError(f"No free port on {host}.")

"""A crowd of people at once against a web server, each with a connection of their own: for the desk's benchmark."""

from __future__ import annotations

import contextlib
import http.client
import random
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass
class Outcome:
    """What a crowd sent and got. `times` are seconds from the grade being sent to the next pair being here."""

    sent: int = 0
    confirmed: int = 0
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        return statistics.quantiles(self.times, n=100, method="inclusive")[round(share * 100) - 1]


class Person(Protocol):
    """One of the crowd: takes up the first task, then works."""

    def start(self) -> None: ...

    def work(self, outcome: Outcome, on: Callable[[], bool], rest: Callable[[], None]) -> None:
        """Goes on while `on()`, counts in the outcome, and calls `rest()` after each grade."""


def run_crowd(
    people: Sequence[Person],
    *,
    pause: float,
    most: float,
) -> Outcome:
    """Each in a thread of their own, for `most` seconds from when all have started."""
    together = threading.Barrier(len(people))

    def work(number: int) -> Outcome:
        mine, draw = Outcome(), random.Random(number)
        people[number].start()
        together.wait()
        end = time.perf_counter() + most
        time.sleep(draw.random() * pause)
        due = time.perf_counter()

        def rest() -> None:
            nonlocal due
            due += pause
            time.sleep(max(0.0, due - time.perf_counter()))

        begun = time.perf_counter()
        people[number].work(mine, lambda: time.perf_counter() < end, rest)
        mine.seconds = time.perf_counter() - begun
        return mine

    with ThreadPoolExecutor(len(people)) as threads:
        outcomes = list(threads.map(work, range(len(people))))
    return Outcome(
        sent=sum(one.sent for one in outcomes),
        confirmed=sum(one.confirmed for one in outcomes),
        seconds=max(one.seconds for one in outcomes),
        times=[seconds for one in outcomes for seconds in one.times],
    )


class Http:
    """A connection that is kept, and opened anew where the server has closed it. Any status but 2xx is an error."""

    def __init__(self, address: str, headers: dict[str, str]):
        self.headers = headers
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def ask(self, method: str, path: str, body: str | None = None) -> bytes:
        for again in (True, False):
            try:
                self.connection.request(method, path, body, self.headers)
                response = self.connection.getresponse()
                content = response.read()
                break
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                if not again:
                    raise
        if not 200 <= response.status < 300:
            raise RuntimeError(f"{method} {path} answered {response.status}: {content[:500]!r}")
        return content


@contextlib.contextmanager
def running(
    command: Sequence[str], environment: dict[str, str], log: Path, ready: str, *, cwd: Path
) -> Iterator[None]:
    """The server, from its first answer at `ready` on until the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), urllib.request.urlopen(ready, timeout=5):
                    break
                if process.poll() is not None:
                    raise SystemExit(f"The server ended:\n{log.read_text()[-3000:]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait()

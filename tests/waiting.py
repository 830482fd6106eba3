"""Waiting for what another process does."""

import time
from collections.abc import Callable


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    """Fail unless `true()` becomes true in time: much longer than it takes, since the machine may be busy."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {true}"
        time.sleep(0.05)

"""How long work says how far it is. Services call a `Progress`; who started the work decides what becomes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tqdm import tqdm


class Progress(Protocol):
    def __call__(self, done: int, total: int | None = None, phase: str = "") -> None:
        """`done` of `total` units of this phase are done. Cheap to call often.

        Raises `evalsets.errors.Cancelled` when a person has asked the work to stop.
        """


def silent(done: int, total: int | None = None, phase: str = "") -> None:
    """A progress that nobody watches."""


@contextmanager
def terminal_progress(unit: str = "row") -> Iterator[Progress]:
    """A progress bar on standard error, shown only where that is a terminal."""
    with tqdm(unit=f" {unit}", file=sys.stderr, disable=not sys.stderr.isatty(), leave=False) as bar:

        def show(done: int, total: int | None = None, phase: str = "") -> None:
            bar.total = total
            if phase:
                bar.set_description(phase, refresh=False)
            bar.update(done - bar.n)

        yield show

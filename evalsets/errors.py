from __future__ import annotations

from typing import Any


class BadInput(Exception):
    """What came from outside is wrong; the message says where and what would be right.

    `report` carries the machine-readable account where there is one, for example an import's list of faults.
    """

    def __init__(self, message: str, *, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report


class Refused(Exception):
    """An act that the rules do not allow as things stand; the message says why and what to do instead."""


class CannotStore(Refused):
    """What was sent cannot be kept, or not be fetched again: the disk is full, or the store does not answer."""


class Cancelled(Exception):
    """A person asked the running work to stop; nothing of it is kept."""

from __future__ import annotations

from typing import Any

from evalsets.models import EvalSet, Event, User


def record_event(
    *,
    evalset: EvalSet | None,
    by: User | None,
    verb: str,
    summary: str,
    details: dict[str, Any] | None = None,
) -> Event:
    """Write down who did what; call it in the transaction of the act itself. `by` is None on the command line."""
    return Event.objects.create(
        evalset=evalset,
        by=by,
        token=by.acting_token if by else None,
        verb=verb,
        summary=summary,
        details=details or {},
    )

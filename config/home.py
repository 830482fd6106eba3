"""Where an eval set stands, and the one next thing to do: what its home page shows."""

from __future__ import annotations

from typing import NamedTuple

from django.urls import reverse

from evalsets.models import EvalSet, Member


class NextStep(NamedTuple):
    """What to do next, why, and where."""

    title: str
    why: str
    address: str


class Overview(NamedTuple):
    questions: int
    chunks: int
    systems: int
    next_step: NextStep | None


def evalset_overview(evalset: EvalSet, role: Member.Role) -> Overview:
    """The figures of the home page for somebody of that role."""
    overview = Overview(
        questions=evalset.questions.count(),
        chunks=evalset.chunks.count(),
        systems=evalset.systems.count(),
        next_step=None,
    )
    return overview._replace(next_step=_next_step(evalset, overview) if role == Member.Role.LEAD else None)


def _next_step(evalset: EvalSet, overview: Overview) -> NextStep | None:
    importing = reverse("judging:import", args=[evalset.slug])
    if not overview.questions:
        return NextStep("Bring in the questions", "Everything else refers to them.", importing)
    if not overview.systems:
        return NextStep("Bring in runs", "A pool is the union of what several systems returned.", importing)
    return None

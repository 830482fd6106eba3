"""Where relevant evidence is lost on its way through a system: retrieved, reranked, packed into context."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from scoring.classes import Truth
from scoring.matching import Graded

Stage = Literal["candidates", "reranked", "context"]
STAGES: tuple[Stage, ...] = ("candidates", "reranked", "context")

Fate = Literal["kept", "never retrieved", "cut by reranking", "dropped in packing", "truncated in packing"]
FATES: tuple[Fate, ...] = (
    "never retrieved",
    "cut by reranking",
    "dropped in packing",
    "truncated in packing",
    "kept",
)
_LOST: Mapping[Stage, Fate] = {
    "candidates": "never retrieved",
    "reranked": "cut by reranking",
    "context": "dropped in packing",
}


class StageRun(NamedTuple):
    """A run at one stage, matched, with the depth that is handed on to the next stage (None: all of it).

    ``truncated`` marks entries that were cut to an unknown text (stage ``context``); one flag an entry, or None for
    none.
    """

    stage: Stage
    graded: Graded
    k: int | None = None
    truncated: Sequence[bool] | None = None


class Lost(NamedTuple):
    """What became of one relevant unit (class or chunk) of one question."""

    question: int
    unit: int
    grade: int
    fate: Fate


class Funnel(NamedTuple):
    """How many relevant units there are, and how many are still there after each stage that was run."""

    relevant: int
    left: tuple[tuple[Stage, int], ...]


def trace(truth: Truth, questions: Sequence[int], runs: Sequence[StageRun], *, threshold: int) -> list[Lost]:
    """Return the fate of every relevant unit of the questions, by question and unit.

    The stage at which a unit is first absent has lost it, even if it turns up again later. A truncated
    passage does not carry the full passage's grade: a unit that only truncated entries hold is "truncated in
    packing", unless what was left of it was found relevant by itself. A stage that was not run loses nothing.
    Raises ValueError for no run, or two runs of one stage.
    """
    ordered = _ordered(runs)
    present = [(run, _present(truth, run, threshold)) for run in ordered]
    result = []
    for question in questions:
        for row in range(int(truth.first[question]), int(truth.first[question + 1])):
            if truth.grade[row] >= threshold:
                fate = _fate(row, present)
                result.append(Lost(question, int(truth.unit[row]), int(truth.grade[row]), fate))
    return result


def _ordered(runs: Sequence[StageRun]) -> list[StageRun]:
    by_stage = {run.stage: run for run in runs}
    if not runs or len(by_stage) != len(runs):
        raise ValueError("name one run for each stage, and at least one")
    return [by_stage[stage] for stage in STAGES if stage in by_stage]


def _present(truth: Truth, run: StageRun, threshold: int) -> tuple[set[int], set[int]]:
    """Return the truth's rows that the run holds whole, or cut but still relevant, and those that it holds at all."""
    graded = run.graded
    within = graded.known.copy()
    if run.k is not None:
        within &= graded.rank <= run.k
    within &= ~graded.inadmissible
    whole = within.copy()
    if run.stage == "context":
        whole &= ~truth.cuts.holds(graded.chunk) | (graded.grade >= threshold)
    if run.truncated is not None:
        whole &= ~np.asarray(run.truncated, dtype=bool)
    return set(graded.row[whole].tolist()), set(graded.row[within].tolist())


def _fate(row: int, present: Sequence[tuple[StageRun, tuple[set[int], set[int]]]]) -> Fate:
    for run, (whole, at_all) in present:
        if row not in at_all:
            return _LOST[run.stage] if run is not present[0][0] else "never retrieved"
        if row not in whole:
            return "truncated in packing"
    return "kept"


def funnel(lost: Sequence[Lost], runs: Sequence[StageRun]) -> Funnel:
    """Return how many relevant units survive each of the stages that were run."""
    fates = [one.fate for one in lost]
    left = len(fates)
    steps: list[tuple[Stage, int]] = []
    for number, run in enumerate(_ordered(runs)):
        gone = ["never retrieved"] if number == 0 else [_LOST[run.stage]]
        if run.stage == "context":
            gone.append("truncated in packing")
        left -= sum(fate in gone for fate in fates)
        steps.append((run.stage, left))
    return Funnel(len(fates), tuple(steps))


def per_question(lost: Sequence[Lost]) -> dict[int, dict[Fate, int]]:
    """Return, for each question, how many of its relevant units met each fate."""
    table: dict[int, dict[Fate, int]] = {}
    for one in lost:
        counts = table.setdefault(one.question, dict.fromkeys(FATES, 0))
        counts[one.fate] += 1
    return table

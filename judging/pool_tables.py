"""What the pool pages and commands show: plain numbers in, rows of tables and JSON documents out. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judging.pool_numbers import PairCounts, PoolNumbers, RunCounts
from pooling.models import Pool, Run
from pooling.rankings import RunToDepth

# Beyond this many runs the overlap table has more cells than anybody reads; the page shows the first ones.
OVERLAP_SHOWN = 24

LABELS = {
    "beyond_budget": (
        "Beyond the budget",
        "Returned, but not among the first of the fused order, or below the last stratum.",
    ),
    "covered": ("Covered before", "In the pool that this one extends, whatever became of them there."),
    "not_drawn": ("Not drawn", "Pooled, and left unjudged on purpose: the lot did not fall on them."),
    "judged": ("Judged", "A person or an imported file graded the text as it is now; grade 0 counts."),
    "cannot_judge": ("Cannot be judged", "An assessor said so, for good. They stay unjudged in every rate."),
    "queued": ("Queued", "In an open batch, waiting for an assessor."),
    "waiting_for_text": (
        "Waiting for text",
        "Known by ID only; nobody can read them before the text is imported.",
    ),
    "remainder": ("Remainder", "Left for people to look at."),
}
COPIES = ("Of them in a judged class", "Another chunk with the same content is judged for the question.")


@dataclass(frozen=True)
class Part:
    """One line of how the union divides up."""

    name: str
    label: str
    meaning: str
    count: int
    share: float | None  # of the union, 0 to 1; None where the union is empty


def waterfall(totals: PairCounts) -> list[Part]:
    """The parts of the union in the order in which they are taken away; parts that can be empty are left out then."""
    always = {"judged", "queued", "remainder"}
    labels = {**LABELS, "in_judged_class": COPIES}
    return [
        Part(name, label, meaning, count, count / totals.union if totals.union else None)
        for name, (label, meaning) in labels.items()
        if (count := getattr(totals, name)) or name in always
    ]


@dataclass(frozen=True)
class RunRow:
    """One run of a pool: what it returned, and what adding it after the runs before it costs."""

    run: Run
    k: int
    counts: RunCounts
    missing: int
    unjudged_rate: float | None
    seconds: float  # that what it adds to the remainder costs


def run_rows(runs: Sequence[RunToDepth], numbers: PoolNumbers) -> list[RunRow]:
    return [
        RunRow(
            run=run,
            k=k,
            counts=counts,
            missing=len(numbers.missing.get(position, [])),
            unjudged_rate=counts.unjudged / counts.returned if counts.returned else None,
            seconds=counts.added_remainder * numbers.seconds_per_judgment,
        )
        for position, ((run, k), counts) in enumerate(zip(runs, numbers.runs, strict=True))
    ]


@dataclass(frozen=True)
class OverlapCell:
    count: int
    share: float | None  # of what the row's run returned; None where it returned nothing
    same: bool


def overlap_rows(
    runs: Sequence[RunToDepth], numbers: PoolNumbers, shown: int = OVERLAP_SHOWN
) -> list[tuple[Run, list[OverlapCell]]]:
    """The overlap matrix of the first runs: in row i and column j, what run i returned and run j as well."""
    return [
        (
            run,
            [
                OverlapCell(count, count / row[i] if row[i] else None, same=i == j)
                for j, count in enumerate(row[:shown])
            ],
        )
        for i, ((run, _), row) in enumerate(zip(runs[:shown], numbers.overlap[:shown], strict=True))
    ]


@dataclass(frozen=True)
class ChainRow:
    """One pool of a chain, and what it added to those before it."""

    pool: Pool
    pairs: int
    largest: int  # pairs of the largest pool of the chain, for the length of a bar
    seconds: float


def chain_rows(
    chain: Sequence[Pool], pairs: Mapping[int, int], seconds_per_judgment: float
) -> list[ChainRow]:
    """The chain as a curve of falling cost; `pairs` maps Pool.id to the pairs of the built pool."""
    counts = [pairs.get(pool.pk, 0) for pool in chain]
    return [
        ChainRow(pool, count, max(counts), count * seconds_per_judgment)
        for pool, count in zip(chain, counts, strict=True)
    ]


def numbers_json(
    runs: Sequence[RunToDepth], numbers: PoolNumbers, question_names: Mapping[int, str]
) -> dict[str, Any]:
    """The document that `build_pool --json` prints; `question_names` maps Question.id to the question's ID."""
    totals = numbers.totals
    return {
        "questions": len(numbers.questions),
        **_counts_json(totals),
        "seconds": numbers.seconds,
        "seconds_per_judgment": numbers.seconds_per_judgment,
        "timed_judgments": numbers.timed_judgments,
        "per_question": [
            {"id": question_names[row.question_id], **_counts_json(row.counts)} for row in numbers.questions
        ],
        "runs": [
            {
                "run": run.name,
                "system": run.system.name,
                "k": k,
                "returned": counts.returned,
                "judged": counts.judged,
                "unjudged": counts.unjudged,
                "unique": counts.unique,
                "added": counts.added,
                "added_remainder": counts.added_remainder,
                "missing_questions": numbers.missing.get(position, []),
            }
            for position, ((run, k), counts) in enumerate(zip(runs, numbers.runs, strict=True))
        ],
        "overlap": numbers.overlap,
        "warnings": numbers.warnings,
    }


def _counts_json(counts: PairCounts) -> dict[str, int]:
    return {
        "union": counts.union,
        "pairs": counts.pairs,
        "judged": counts.judged,
        "cannot_judge": counts.cannot_judge,
        "queued": counts.queued,
        "waiting_for_text": counts.waiting_for_text,
        "remainder": counts.remainder,
        "in_judged_class": counts.in_judged_class,
        "beyond_budget": counts.beyond_budget,
        "covered": counts.covered,
        "not_drawn": counts.not_drawn,
    }

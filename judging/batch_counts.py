"""What all the judgments of a batch come to. Each reads all of them: judging.room_report leaves it to a job where they
are many."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Aggregate, Count, F, FloatField, Max, Q, QuerySet

from judging.models import Batch, Judgment

# Gold pairs are a check: what is said of them is none of the judgments that the batch asks for.
GOLD = Q(pair__gold_grade__isnull=False)
NO_SKIP = ~Q(kind=Judgment.Kind.SKIP) & ~GOLD
COUNTS = NO_SKIP & Q(details__extra__isnull=True)
GOLD_GRADED = GOLD & Q(kind=Judgment.Kind.GRADE)


class Median(Aggregate):
    """The middle value, half-way between two where their number is even; None of no values."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


@dataclass(frozen=True)
class BatchTotals:
    """Of all judgments of a batch: those that came late, those on gold pairs, and the median time of all."""

    extra: int
    gold_judged: int
    median_seconds: float | None


@dataclass(frozen=True)
class AssessorCounts:
    """What an assessor has said in a batch, all in all."""

    judged: int = 0
    extra: int = 0
    skipped: int = 0
    cannot_judge: int = 0
    median_seconds: float | None = None
    last_at: datetime.datetime | None = None
    # Grades on gold pairs: all, those that are the known one, those at most one grade off.
    gold: int = 0
    gold_exact: int = 0
    gold_near: int = 0

    @property
    def gold_exact_rate(self) -> float | None:
        return self.gold_exact / self.gold if self.gold else None

    @property
    def gold_near_rate(self) -> float | None:
        return self.gold_near / self.gold if self.gold else None


@dataclass(frozen=True)
class GradeCount:
    """How often a grade was given; `share` is of all grades, from 0 to 1."""

    grade: int
    name: str
    count: int
    share: float = field(default=0.0)


def batch_judgments(batch: Batch) -> QuerySet[Judgment]:
    """The judgments of the batch as they stand, one a pair and assessor."""
    return Judgment.objects.filter(pair__batch=batch, replaced_by__isnull=True)


def batch_totals(batch: Batch) -> BatchTotals:
    said = batch_judgments(batch).aggregate(
        extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
        gold_judged=Count("pk", filter=GOLD & ~Q(kind=Judgment.Kind.SKIP)),
        median_seconds=Median("seconds"),
    )
    return BatchTotals(**said)


def assessor_counts(batch: Batch) -> dict[int, AssessorCounts]:
    """By `Assessor.id`, of each who has said something in the batch."""
    known = F("pair__gold_grade")
    said = (
        batch_judgments(batch)
        .order_by()
        .values("assessor")
        .annotate(
            judged=Count("pk", filter=COUNTS),
            extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
            skipped=Count("pk", filter=Q(kind=Judgment.Kind.SKIP)),
            cannot_judge=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE) & ~GOLD),
            median_seconds=Median("seconds"),
            last_at=Max("judged_at"),
            gold=Count("pk", filter=GOLD_GRADED),
            gold_exact=Count("pk", filter=GOLD_GRADED & Q(grade=known)),
            gold_near=Count("pk", filter=GOLD_GRADED & Q(grade__gte=known - 1, grade__lte=known + 1)),
        )
    )
    return {assessor: AssessorCounts(**counts) for assessor, counts in by_assessor(said).items()}


def by_assessor(rows: QuerySet[Any, Any]) -> dict[int, dict[str, Any]]:
    """The rows, which have an `assessor`, by that: `Assessor.id`."""
    return {row.pop("assessor"): row for row in rows}


def grade_counts(batch: Batch) -> list[GradeCount]:
    """How often each grade of the rubric was given in the batch, lowest first; gold pairs left out."""
    counts = dict(
        batch_judgments(batch)
        .filter(~GOLD, kind=Judgment.Kind.GRADE)
        .order_by()
        .values_list("grade")
        .annotate(n=Count("pk"))
    )
    total = sum(counts.values())
    return [
        GradeCount(
            item["grade"],
            item["name"],
            counts.get(item["grade"], 0),
            counts.get(item["grade"], 0) / (total or 1),
        )
        for item in batch.rubric.scale
    ]

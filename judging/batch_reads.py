"""What a batch's pages show of it: how far it is, who does what, what was skipped. Reads only."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import (
    Aggregate,
    Count,
    F,
    FloatField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Now
from django.utils import timezone

from judging.desk import with_opening
from judging.models import Assessor, Batch, BatchPair, BatchQuestion, Judgment, Task
from judging.services.pools import seconds_per_judgment

# Pace is counted over so many minutes back: long enough to be steady, short enough to be now. From judgments of a
# shorter span than the least, nothing is foretold.
PACE_MINUTES, PACE_LEAST = 60, 5

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
class BatchFigures:
    """How far a batch is. `done` of `wanted` judgments are made that count; pairs are filled by the last of theirs.

    Gold pairs are counted in the gold figures alone: `gold_judged` of `gold_wanted` judgments on them are made.
    """

    questions: int
    pairs: int
    filled: int
    wanted: int
    done: int
    extra: int
    held: int
    skipped: int
    cannot_judge: int
    judged_lately: int
    seconds_lately: float
    median_seconds: float | None
    seconds_per_judgment: float
    gold_pairs: int
    gold_wanted: int
    gold_judged: int

    @property
    def left(self) -> int:
        return self.wanted - self.done

    @property
    def work_left(self) -> float:
        """Seconds of judging that are left, whoever does it."""
        return self.left * self.seconds_per_judgment

    @property
    def time_left(self) -> float | None:
        """Seconds until the batch is done if the pace since the first judgment of the last hour is kept.

        None while nobody judges, and for the first minutes.
        """
        if self.seconds_lately < PACE_LEAST * 60:
            return None
        return self.left * self.seconds_lately / self.judged_lately


@dataclass(frozen=True)
class AssessorRow:
    assessor: Assessor
    judged: int
    extra: int
    skipped: int
    cannot_judge: int
    held: int
    held_until: datetime.datetime | None
    median_seconds: float | None
    lately: int
    last_at: datetime.datetime | None
    # Grades on gold pairs: all, those that are the known one, those at most one grade off.
    gold: int
    gold_exact: int
    gold_near: int
    held_since: datetime.datetime | None = None
    put_off: int = 0
    # False for somebody who was taken out: their judgments stay.
    in_batch: bool = True

    @property
    def has_begun(self) -> bool:
        return self.last_at is not None or self.held > 0

    @property
    def gold_exact_rate(self) -> float | None:
        return self.gold_exact / self.gold if self.gold else None

    @property
    def gold_near_rate(self) -> float | None:
        return self.gold_near / self.gold if self.gold else None

    @property
    def held_seconds(self) -> float | None:
        """How long what they hold takes at their own pace; None where they hold nothing, or nothing was timed."""
        return self.held * self.median_seconds if self.held and self.median_seconds else None


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


def batch_figures(batch: Batch) -> BatchFigures:
    ordinary, gold = Q(gold_grade__isnull=True), Q(gold_grade__isnull=False)
    pairs = batch.pairs.aggregate(
        all=Count("pk", filter=ordinary),
        filled=Count("filled_at", filter=ordinary),
        judgments=Sum("wanted", filter=ordinary),
        gold=Count("pk", filter=gold),
        gold_judgments=Sum("wanted", filter=gold),
    )
    lately = Now() - datetime.timedelta(minutes=PACE_MINUTES)
    said = batch_judgments(batch).aggregate(
        done=Count("pk", filter=COUNTS),
        extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
        cannot_judge=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE) & ~GOLD),
        lately=Count("pk", filter=COUNTS & Q(judged_at__gt=lately)),
        since=Min("judged_at", filter=COUNTS & Q(judged_at__gt=lately)),
        median=Median("seconds"),
        gold=Count("pk", filter=GOLD & ~Q(kind=Judgment.Kind.SKIP)),
    )
    return BatchFigures(
        questions=batch.batch_questions.count(),
        pairs=pairs["all"],
        filled=pairs["filled"],
        wanted=pairs["judgments"] or 0,
        done=said["done"],
        extra=said["extra"],
        held=live_tasks(batch).count(),
        skipped=open_skips(batch).count(),
        cannot_judge=said["cannot_judge"],
        judged_lately=said["lately"],
        seconds_lately=(timezone.now() - said["since"]).total_seconds() if said["since"] else 0.0,
        median_seconds=said["median"],
        seconds_per_judgment=seconds_per_judgment(batch.evalset)[0],
        gold_pairs=pairs["gold"],
        gold_wanted=pairs["gold_judgments"] or 0,
        gold_judged=said["gold"],
    )


def assessor_rows(batch: Batch) -> list[AssessorRow]:
    """One row for each assessor of the batch, and for each who was taken out of it after judging, by name."""
    lately = Now() - datetime.timedelta(minutes=PACE_MINUTES)
    known = F("pair__gold_grade")
    said = {
        row["assessor"]: row
        for row in batch_judgments(batch)
        .order_by()
        .values("assessor")
        .annotate(
            judged=Count("pk", filter=COUNTS),
            extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
            skipped=Count("pk", filter=Q(kind=Judgment.Kind.SKIP)),
            cannot_judge=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE) & ~GOLD),
            median_seconds=Median("seconds"),
            lately=Count("pk", filter=COUNTS & Q(judged_at__gt=lately)),
            last_at=Max("judged_at"),
            gold=Count("pk", filter=GOLD_GRADED),
            gold_exact=Count("pk", filter=GOLD_GRADED & Q(grade=known)),
            gold_near=Count("pk", filter=GOLD_GRADED & Q(grade__gte=known - 1, grade__lte=known + 1)),
        )
    }
    held = {
        row["assessor"]: row
        for row in live_tasks(batch)
        .order_by()
        .values("assessor")
        .annotate(
            held=Count("pk"),
            put_off=Count("deferred_at"),
            held_since=Min("claimed_at"),
            held_until=Max("leased_until"),
        )
    }
    nothing: dict[str, Any] = dict.fromkeys(("last_at", "median_seconds", "held_until")) | dict.fromkeys(
        ("judged", "extra", "skipped", "cannot_judge", "lately", "gold", "gold_exact", "gold_near", "held"), 0
    )
    people = batch.assessors.all() | Assessor.objects.filter(pk__in=said)
    named = set(batch.assessors.values_list("pk", flat=True))
    rows = []
    for assessor in people.distinct().select_related("user").order_by("name"):
        figures = {**nothing, **said.get(assessor.pk, {}), **held.get(assessor.pk, {})}
        figures["assessor"] = assessor
        rows.append(AssessorRow(**figures, in_batch=assessor.pk in named))
    return rows


def question_rows(batch: Batch) -> QuerySet[BatchQuestion]:
    """The batch's questions in their order, gold pairs left out of each one's counts.

    Each has `pair_count`, `filled_count`, `held_count`, `skip_count`, `cannot_count`, `median_seconds`, and
    `held_by`, the names of those who are at it.
    """
    pairs = BatchPair.objects.ordinary().filter(batch_question=OuterRef("pk")).order_by()
    held = live_tasks(batch).filter(pair__batch_question=OuterRef("pk")).order_by()
    said = batch_judgments(batch).filter(pair__batch_question=OuterRef("pk")).order_by()
    skips = open_skips(batch).filter(pair__batch_question=OuterRef("pk")).order_by()
    cannot = said.filter(~GOLD, kind=Judgment.Kind.CANNOT_JUDGE)

    def of_question(rows: QuerySet[Any], path: str, total: Any) -> Subquery:
        return Subquery(rows.values(path).annotate(total=total).values("total"))

    path = "pair__batch_question"
    return batch.batch_questions.select_related("question__evalset", "assigned_to__user").annotate(
        pair_count=of_question(pairs, "batch_question", Count("pk")),
        filled_count=of_question(pairs, "batch_question", Count("filled_at")),
        held_count=of_question(held, path, Count("pk")),
        held_by=of_question(held, path, StringAgg("assessor__name", ", ", distinct=True)),
        skip_count=of_question(skips, path, Count("pk")),
        cannot_count=of_question(cannot, path, Count("pk")),
        median_seconds=of_question(said, path, Median("seconds")),
    )


def open_skips(batch: Batch) -> QuerySet[Judgment]:
    """Skips of pairs that want a judgment still, the latest first, with the `opening` of what was read."""
    skips = batch_judgments(batch).filter(~GOLD, kind=Judgment.Kind.SKIP, pair__filled_at__isnull=True)
    return _to_read(skips)


def cannot_judge_rows(batch: Batch) -> QuerySet[Judgment]:
    """What was found impossible to judge, the latest first, with the `opening` of what was read."""
    return _to_read(batch_judgments(batch).filter(~GOLD, kind=Judgment.Kind.CANNOT_JUDGE))


def gold_misses(batch: Batch) -> QuerySet[Judgment]:
    """Grades of gold pairs that are not the known one, the latest first, with the `opening` of what was read."""
    misses = batch_judgments(batch).filter(GOLD_GRADED).exclude(grade=F("pair__gold_grade"))
    return _to_read(misses).select_related("pair")


def _to_read(judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    return (
        with_opening(judgments)
        .select_related("question__evalset", "chunk__evalset", "assessor__user")
        .order_by("-pk")
    )


def reason_counts(batch: Batch) -> list[tuple[str, int, int]]:
    """By reason: its words, the open pairs skipped for it, and the pairs found impossible to judge for it."""
    skipped = Q(kind=Judgment.Kind.SKIP, pair__filled_at__isnull=True)
    counts = (
        batch_judgments(batch)
        .filter(~GOLD)
        .order_by()
        .values_list("reason")
        .annotate(
            skips=Count("pk", filter=skipped), cannot=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE))
        )
    )
    labels = dict(Judgment.Reason.choices)
    return sorted((labels[reason], skips, cannot) for reason, skips, cannot in counts if skips or cannot)


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


def live_tasks(batch: Batch) -> QuerySet[Task]:
    """What assessors hold now."""
    return Task.objects.filter(pair__batch=batch, leased_until__gt=Now())

"""What a batch's pages show of it: how far it is, who does what, what was skipped. Reads only.

What reads all judgments of a batch is for judging.room_report, which leaves it to a job where that is much.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db import connection
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
    """How far a batch is at this moment. `left` of `wanted` judgments are to be made; pairs are filled by the last of
    theirs. Gold pairs, and the judgments wanted on them, are counted in the gold figures alone.
    """

    questions: int
    pairs: int
    filled: int
    wanted: int
    left: int
    held: int
    skipped: int
    cannot_judge: int
    judged_lately: int
    seconds_lately: float
    seconds_per_judgment: float
    gold_pairs: int
    gold_wanted: int

    @property
    def done(self) -> int:
        """Judgments made that count."""
        return self.wanted - self.left

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
class Lately:
    """What an assessor has said in the last hour: judgments that count, when the first of them was made, and when
    anything was said last."""

    judged: int = 0
    since: datetime.datetime | None = None
    last_at: datetime.datetime | None = None


@dataclass(frozen=True)
class AssessorRow:
    """An assessor at this moment, and their `counts` (None: they have not been worked out)."""

    assessor: Assessor
    counts: AssessorCounts | None
    lately: Lately
    held: int = 0
    held_since: datetime.datetime | None = None
    held_until: datetime.datetime | None = None
    put_off: int = 0
    # False for somebody who was taken out: their judgments stay.
    in_batch: bool = True

    @property
    def last_at(self) -> datetime.datetime | None:
        """When they last said anything; before the last hour as far as the counts know."""
        return self.lately.last_at or (self.counts.last_at if self.counts else None)

    @property
    def has_begun(self) -> bool:
        return self.last_at is not None or self.held > 0

    @property
    def held_seconds(self) -> float | None:
        """How long what they hold takes at their own pace; None where they hold nothing, or no time is known."""
        pace = self.counts.median_seconds if self.counts else None
        return self.held * pace if self.held and pace else None


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
    """Reads the batch's pairs, and of its judgments those of the last hour and those that are no grades."""
    ordinary, gold = Q(gold_grade__isnull=True), Q(gold_grade__isnull=False)
    pairs = batch.pairs.aggregate(
        all=Count("pk", filter=ordinary),
        filled=Count("filled_at", filter=ordinary),
        judgments=Sum("wanted", filter=ordinary),
        gold=Count("pk", filter=gold),
        gold_judgments=Sum("wanted", filter=gold),
    )
    lately = said_lately(batch.evalset_id, [batch]).values()
    since = min((said.since for said in lately if said.since), default=None)
    return BatchFigures(
        questions=batch.batch_questions.count(),
        pairs=pairs["all"],
        filled=pairs["filled"],
        wanted=pairs["judgments"] or 0,
        left=judgments_left([batch]),
        held=live_tasks(batch).count(),
        skipped=open_skips(batch).count(),
        cannot_judge=cannot_judge_rows(batch).count(),
        judged_lately=sum(said.judged for said in lately),
        seconds_lately=(timezone.now() - since).total_seconds() if since else 0.0,
        seconds_per_judgment=seconds_per_judgment(batch.evalset)[0],
        gold_pairs=pairs["gold"],
        gold_wanted=pairs["gold_judgments"] or 0,
    )


def judgments_left(batches: Sequence[Batch]) -> int:
    """How many judgments the open pairs of these batches want still, gold pairs aside.

    A pair that wants one and is open has none, so that only pairs that want more are looked up among the judgments.
    """
    open_pairs = BatchPair.objects.ordinary().filter(batch__in=batches, filled_at__isnull=True)
    wanted = open_pairs.aggregate(judgments=Sum("wanted"))["judgments"] or 0
    given = Judgment.objects.filter(
        COUNTS,
        pair__batch__in=batches,
        pair__filled_at__isnull=True,
        pair__wanted__gt=1,
        replaced_by__isnull=True,
    )
    return int(wanted) - given.count()


# Each assessor's judgments of the last hour are found first, by an index; OFFSET 0 keeps that apart, so that nothing
# before that hour is read.
_LATELY = """
    SELECT assessor.id, count(*) FILTER (WHERE counts), min(said.judged_at) FILTER (WHERE counts), max(said.judged_at)
    FROM judging_assessor assessor
    CROSS JOIN LATERAL (
        SELECT * FROM judging_judgment j
        WHERE j.assessor_id = assessor.id AND j.judged_at > statement_timestamp() - make_interval(mins => %(minutes)s)
        OFFSET 0
    ) said
    JOIN judging_batchpair p ON p.id = said.pair_id
    CROSS JOIN LATERAL (
        SELECT said.kind <> 'skip' AND said.details -> 'extra' IS NULL AND p.gold_grade IS NULL AS counts
    ) what
    WHERE assessor.evalset_id = %(evalset)s AND assessor.kind = 'person' AND p.batch_id = ANY(%(batches)s)
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = said.id)
    GROUP BY assessor.id
"""


def said_lately(evalset_id: int, batches: Sequence[Batch]) -> dict[int, Lately]:
    """What was said in these batches of the eval set within the last hour, by `Assessor.id`."""
    ids = [batch.pk for batch in batches]
    values: dict[str, Any] = {"evalset": evalset_id, "batches": ids, "minutes": PACE_MINUTES}
    with connection.cursor() as cursor:
        cursor.execute(_LATELY, values)
        return {assessor: Lately(*said) for assessor, *said in cursor.fetchall()}


def batch_totals(batch: Batch) -> BatchTotals:
    """Reads all judgments of the batch."""
    said = batch_judgments(batch).aggregate(
        extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
        gold_judged=Count("pk", filter=GOLD & ~Q(kind=Judgment.Kind.SKIP)),
        median_seconds=Median("seconds"),
    )
    return BatchTotals(**said)


def assessor_counts(batch: Batch) -> dict[int, AssessorCounts]:
    """By `Assessor.id`, of each who has said something in the batch. Reads all its judgments."""
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
    return {assessor: AssessorCounts(**counts) for assessor, counts in _by_assessor(said).items()}


def _by_assessor(rows: QuerySet[Any, Any]) -> dict[int, dict[str, Any]]:
    return {row.pop("assessor"): row for row in rows}


def assessor_rows(batch: Batch, counts: Mapping[int, AssessorCounts] | None) -> list[AssessorRow]:
    """One row for each assessor of the batch, and for each who was taken out of it after judging, by name.

    `counts` are those of `assessor_counts`; without them only who judged lately is seen to have been taken out.
    """
    lately = said_lately(batch.evalset_id, [batch])
    held = _by_assessor(
        live_tasks(batch)
        .order_by()
        .values("assessor")
        .annotate(
            held=Count("pk"),
            put_off=Count("deferred_at"),
            held_since=Min("claimed_at"),
            held_until=Max("leased_until"),
        )
    )
    people = batch.assessors.all() | Assessor.objects.filter(pk__in={*lately, *(counts or ())})
    named = set(batch.assessors.values_list("pk", flat=True))
    return [
        AssessorRow(
            assessor=assessor,
            counts=None if counts is None else counts.get(assessor.pk, AssessorCounts()),
            lately=lately.get(assessor.pk, Lately()),
            in_batch=assessor.pk in named,
            **held.get(assessor.pk, {}),
        )
        for assessor in people.distinct().select_related("user").order_by("name")
    ]


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


def _no_grades(batch: Batch) -> QuerySet[Judgment]:
    """Skips and what cannot be judged, gold pairs aside: few of many, which have an index of their own."""
    return batch_judgments(batch).filter(~GOLD, ~Q(kind=Judgment.Kind.GRADE), evalset=batch.evalset_id)


def open_skips(batch: Batch) -> QuerySet[Judgment]:
    """Skips of pairs that want a judgment still, the latest first, with the `opening` of what was read."""
    return _to_read(_no_grades(batch).filter(kind=Judgment.Kind.SKIP, pair__filled_at__isnull=True))


def cannot_judge_rows(batch: Batch) -> QuerySet[Judgment]:
    """What was found impossible to judge, the latest first, with the `opening` of what was read."""
    return _to_read(_no_grades(batch).filter(kind=Judgment.Kind.CANNOT_JUDGE))


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
        _no_grades(batch)
        .order_by()
        .values_list("reason")
        .annotate(
            skips=Count("pk", filter=skipped), cannot=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE))
        )
    )
    labels = dict(Judgment.Reason.choices)
    return sorted((labels[reason], skips, cannot) for reason, skips, cannot in counts if skips or cannot)


def grade_counts(batch: Batch) -> list[GradeCount]:
    """How often each grade of the rubric was given in the batch, lowest first; gold pairs left out. Reads all its
    judgments."""
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

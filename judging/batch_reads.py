"""What a batch's pages show of it: how far it is, who does what, what was skipped. Reads only."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Aggregate, Count, FloatField, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Now
from django.utils import timezone

from judging.desk import with_opening
from judging.models import Assessor, Batch, BatchPair, BatchQuestion, Judgment, Task
from judging.services.pools import measure_pool, seconds_per_judgment
from pooling.models import Pool

# Pace is counted over so many minutes back: long enough to be steady, short enough to be now. From judgments of a
# shorter span than the least, nothing is foretold.
PACE_MINUTES, PACE_LEAST = 60, 5

NO_SKIP = ~Q(kind=Judgment.Kind.SKIP)
COUNTS = NO_SKIP & Q(details__extra__isnull=True)


class Median(Aggregate):
    """The middle value, half-way between two where their number is even; None of no values."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


@dataclass(frozen=True)
class BatchFigures:
    """How far a batch is. `done` of `wanted` judgments are made that count; pairs are filled by the last of theirs."""

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


@dataclass(frozen=True)
class Cost:
    """What a batch of a pool would cost."""

    pairs: int
    questions: int
    waiting_for_text: int
    queued: int
    # Pairs whose chunk is in a class that is judged for the question: what leaving copies out saves, or has saved.
    copies: int
    judgments: int
    seconds: float
    people: int
    seconds_per_judgment: float
    timed_judgments: int

    @property
    def seconds_each(self) -> float:
        return self.seconds / max(1, self.people)


@dataclass(frozen=True)
class GradeCount:
    """How often a grade was given; `share` is of all grades, from 0 to 1."""

    grade: int
    name: str
    count: int
    share: float = field(default=0.0)


def batch_cost(
    *, pool: Pool, overlap: int, overlap_share: float, people: int, without_copies: bool = False
) -> Cost:
    """The remainder of the pool as it stands, and the hours that judging it takes."""
    numbers = measure_pool(pool)
    copies = numbers.totals.in_judged_class
    pairs = numbers.totals.remainder - (copies if without_copies else 0)
    judgments = pairs + round(overlap_share * pairs) * (overlap - 1)
    return Cost(
        pairs=pairs,
        questions=sum(
            1
            for question in numbers.questions
            if question.counts.remainder > (question.counts.in_judged_class if without_copies else 0)
        ),
        waiting_for_text=numbers.totals.waiting_for_text,
        queued=numbers.totals.queued,
        copies=copies,
        judgments=judgments,
        seconds=judgments * numbers.seconds_per_judgment,
        people=people,
        seconds_per_judgment=numbers.seconds_per_judgment,
        timed_judgments=numbers.timed_judgments,
    )


def batch_judgments(batch: Batch) -> QuerySet[Judgment]:
    """The judgments of the batch as they stand, one a pair and assessor."""
    return Judgment.objects.filter(pair__batch=batch, replaced_by__isnull=True)


def batch_figures(batch: Batch) -> BatchFigures:
    pairs = batch.pairs.aggregate(all=Count("pk"), filled=Count("filled_at"), wanted=Sum("wanted"))
    lately = Now() - datetime.timedelta(minutes=PACE_MINUTES)
    said = batch_judgments(batch).aggregate(
        done=Count("pk", filter=COUNTS),
        extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
        cannot_judge=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE)),
        lately=Count("pk", filter=COUNTS & Q(judged_at__gt=lately)),
        since=Min("judged_at", filter=COUNTS & Q(judged_at__gt=lately)),
        median=Median("seconds"),
    )
    return BatchFigures(
        questions=batch.batch_questions.count(),
        pairs=pairs["all"],
        filled=pairs["filled"],
        wanted=pairs["wanted"] or 0,
        done=said["done"],
        extra=said["extra"],
        held=_live_tasks(batch).count(),
        skipped=open_skips(batch).count(),
        cannot_judge=said["cannot_judge"],
        judged_lately=said["lately"],
        seconds_lately=(timezone.now() - said["since"]).total_seconds() if said["since"] else 0.0,
        median_seconds=said["median"],
        seconds_per_judgment=seconds_per_judgment(batch.evalset)[0],
    )


def assessor_rows(batch: Batch) -> list[AssessorRow]:
    """One row for each assessor of the batch, by name."""
    lately = Now() - datetime.timedelta(minutes=PACE_MINUTES)
    said = {
        row["assessor"]: row
        for row in batch_judgments(batch)
        .order_by()
        .values("assessor")
        .annotate(
            judged=Count("pk", filter=COUNTS),
            extra=Count("pk", filter=NO_SKIP & Q(details__extra__isnull=False)),
            skipped=Count("pk", filter=Q(kind=Judgment.Kind.SKIP)),
            cannot_judge=Count("pk", filter=Q(kind=Judgment.Kind.CANNOT_JUDGE)),
            median_seconds=Median("seconds"),
            lately=Count("pk", filter=COUNTS & Q(judged_at__gt=lately)),
            last_at=Max("judged_at"),
        )
    }
    held = {
        row["assessor"]: row
        for row in _live_tasks(batch)
        .order_by()
        .values("assessor")
        .annotate(count=Count("pk"), until=Max("leased_until"))
    }
    rows = []
    for assessor in batch.assessors.select_related("user").order_by("name"):
        judged: dict[str, Any] = dict(said.get(assessor.pk, {}))
        holds: dict[str, Any] = dict(held.get(assessor.pk, {}))
        rows.append(
            AssessorRow(
                assessor=assessor,
                judged=judged.get("judged", 0),
                extra=judged.get("extra", 0),
                skipped=judged.get("skipped", 0),
                cannot_judge=judged.get("cannot_judge", 0),
                held=holds.get("count", 0),
                held_until=holds.get("until"),
                median_seconds=judged.get("median_seconds"),
                lately=judged.get("lately", 0),
                last_at=judged.get("last_at"),
            )
        )
    return rows


def question_rows(batch: Batch) -> QuerySet[BatchQuestion]:
    """The batch's questions in their order, each with `pair_count`, `filled_count`, `held_count`, `skip_count`."""
    pairs = BatchPair.objects.filter(batch_question=OuterRef("pk")).order_by().values("batch_question")
    held = (
        _live_tasks(batch)
        .filter(pair__batch_question=OuterRef("pk"))
        .order_by()
        .values("pair__batch_question")
    )
    skips = open_skips(batch).filter(pair__batch_question=OuterRef("pk")).order_by()
    return batch.batch_questions.select_related("question", "assigned_to__user").annotate(
        pair_count=Subquery(pairs.annotate(n=Count("pk")).values("n")),
        filled_count=Subquery(pairs.annotate(n=Count("filled_at")).values("n")),
        held_count=Subquery(held.annotate(n=Count("pk")).values("n")),
        skip_count=Subquery(skips.values("pair__batch_question").annotate(n=Count("pk")).values("n")),
    )


def open_skips(batch: Batch) -> QuerySet[Judgment]:
    """Skips of pairs that want a judgment still, the latest first, with the `opening` of what was read."""
    skips = batch_judgments(batch).filter(kind=Judgment.Kind.SKIP, pair__filled_at__isnull=True)
    return with_opening(skips).select_related("question", "chunk", "assessor__user").order_by("-pk")


def grade_counts(batch: Batch) -> list[GradeCount]:
    """How often each grade of the rubric was given in the batch, lowest first."""
    counts = dict(
        batch_judgments(batch)
        .filter(kind=Judgment.Kind.GRADE)
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


def stuck_pairs(batch: Batch) -> int:
    """Open pairs that every assessor of the batch has skipped: nobody gets them until the lead acts."""
    everybody = batch.assessors.count()
    skips = batch_judgments(batch).filter(kind=Judgment.Kind.SKIP, pair__filled_at__isnull=True)
    by_pair = skips.order_by().values("pair").annotate(n=Count("assessor", distinct=True))
    return by_pair.filter(n__gte=everybody).count() if everybody else 0


def _live_tasks(batch: Batch) -> QuerySet[Task]:
    return Task.objects.filter(pair__batch=batch, leased_until__gt=Now())

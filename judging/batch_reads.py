"""What a batch's pages show of it: how far it is, who does what, what was skipped. Reads only.

What needs all judgments of a batch is in judging.batch_counts.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db import connection
from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Now
from django.utils import timezone

from judging.batch_counts import (
    COUNTS,
    GOLD,
    GOLD_GRADED,
    AssessorCounts,
    Median,
    batch_judgments,
    by_assessor,
)
from judging.desk import with_opening
from judging.models import Assessor, Batch, BatchPair, BatchQuestion, Judgment, Task
from judging.services.pools import seconds_per_judgment

# Pace is counted over so many minutes back: long enough to be steady, short enough to be now. From judgments of a
# shorter span than the least, nothing is foretold.
PACE_MINUTES, PACE_LEAST = 60, 5

# Of pairs, not of judgments.
OPEN = Q(filled_at__isnull=True)


@dataclass(frozen=True)
class BatchFigures:
    """How far a batch is at this moment. `left` of `wanted` judgments are to be made; pairs are filled by the last of
    theirs. Gold pairs, and the judgments wanted on them, are counted in the gold figures alone.

    `lately` is what was said in the last hour, by `Assessor.id`; `reasons` are those of `reason_counts`.
    """

    questions: int
    pairs: int
    filled: int
    wanted: int
    left: int
    held: int
    seconds_per_judgment: float
    gold_pairs: int
    gold_wanted: int
    lately: Mapping[int, Lately]
    reasons: Sequence[tuple[str, int, int]]

    @property
    def done(self) -> int:
        """Judgments made that count."""
        return self.wanted - self.left

    @property
    def skipped(self) -> int:
        """Skips of pairs that are open."""
        return sum(skips for _reason, skips, _cannot in self.reasons)

    @property
    def cannot_judge(self) -> int:
        return sum(cannot for _reason, _skips, cannot in self.reasons)

    @property
    def judged_lately(self) -> int:
        return sum(said.judged for said in self.lately.values())

    @property
    def seconds_lately(self) -> float:
        """Since the first judgment of the last hour."""
        since = min((said.since for said in self.lately.values() if said.since), default=None)
        return (timezone.now() - since).total_seconds() if since else 0.0

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


def batch_figures(batch: Batch) -> BatchFigures:
    """Reads the batch's pairs, and of its judgments those of the last hour and those that are no grades."""
    ordinary, gold = Q(gold_grade__isnull=True), Q(gold_grade__isnull=False)
    pairs = batch.pairs.aggregate(
        all=Count("pk", filter=ordinary),
        filled=Count("filled_at", filter=ordinary),
        judgments=Sum("wanted", filter=ordinary),
        judgments_of_open=Sum("wanted", filter=ordinary & OPEN),
        gold=Count("pk", filter=gold),
        gold_judgments=Sum("wanted", filter=gold),
    )
    return BatchFigures(
        questions=batch.batch_questions.count(),
        pairs=pairs["all"],
        filled=pairs["filled"],
        wanted=pairs["judgments"] or 0,
        left=(pairs["judgments_of_open"] or 0) - judgments_of_open([batch]),
        held=live_tasks(batch).count(),
        seconds_per_judgment=seconds_per_judgment(batch.evalset)[0],
        gold_pairs=pairs["gold"],
        gold_wanted=pairs["gold_judgments"] or 0,
        lately=said_lately(batch.evalset_id, [batch]),
        reasons=reason_counts(batch),
    )


def judgments_of_open(batches: Sequence[Batch]) -> int:
    """How many judgments that count the open pairs of these batches have, gold pairs aside.

    A pair that wants one and is open has none, so that only pairs that want more are looked up among the judgments.
    """
    given = Judgment.objects.filter(
        COUNTS,
        pair__batch__in=batches,
        pair__filled_at__isnull=True,
        pair__wanted__gt=1,
        replaced_by__isnull=True,
    )
    return given.count()


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


def assessor_rows(
    batch: Batch, lately: Mapping[int, Lately], counts: Mapping[int, AssessorCounts] | None
) -> list[AssessorRow]:
    """One row for each assessor of the batch, and for each who was taken out of it after judging, by name.

    `lately` is what `said_lately` says and `counts` what `assessor_counts` does; without these only who judged lately
    is seen to have been taken out.
    """
    held = by_assessor(
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


def pairs_left(batch: Batch) -> QuerySet[BatchPair]:
    """The pairs that want a judgment still, gold pairs aside."""
    return BatchPair.objects.ordinary().filter(OPEN, batch=batch)


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


def live_tasks(batch: Batch) -> QuerySet[Task]:
    """What assessors hold now."""
    return Task.objects.filter(pair__batch=batch, leased_until__gt=Now())

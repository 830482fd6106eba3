"""The lead's room: what waits for whom in a batch, who grades strangely fast, and how the grades came in over time.

Reads only. What nobody is at is asked anew every few seconds, from the open pairs. The rest reads all judgments of the
batch, or all its open pairs' ones, and is for judging.room_report, which leaves it to a job where that is much.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Min, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from evalsets.models import EvalSet
from judging.batch_counts import batch_judgments
from judging.batch_reads import OPEN, judgments_of_open, live_tasks, said_lately
from judging.models import Assessor, Batch, BatchPair, BatchQuestion, Judgment, Task

# Fast is said of at least so many timed judgments, of the latest so many.
FAST_FROM, FAST_OF = 20, 100
# ... whose median takes less than this part of what the others' takes,
FAST_SHARE = 1 / 3
# ... while texts go by at more than this many characters a second: about 800 words a minute, faster than people skim.
FAST_CHARACTERS = 80.0

# A picture of the grades has at most so many steps, each of the first width with which that is so.
STEPS = 40
WIDTHS = [
    datetime.timedelta(minutes=5),
    datetime.timedelta(minutes=30),
    datetime.timedelta(hours=2),
    datetime.timedelta(hours=6),
    datetime.timedelta(days=1),
    datetime.timedelta(days=7),
    datetime.timedelta(days=28),
]


@dataclass(frozen=True)
class Waiting:
    """Work of one batch that waits: for an assessor whom the lead named (`assessor` None: for whoever comes)."""

    assessor: Assessor | None
    questions: int
    pairs: int


def waiting(batch: Batch) -> list[Waiting]:
    """Open pairs of questions that nobody is at now, by whom they wait for: whoever comes first, then by name."""
    at_work = live_tasks(batch).values("pair__batch_question")
    counts = (
        _open_pairs(batch)
        .exclude(batch_question__in=at_work)
        .order_by()
        .values("batch_question__assigned_to")
        .annotate(questions=Count("batch_question", distinct=True), pairs=Count("pk"))
    )
    people = Assessor.objects.select_related("user").in_bulk(
        [row["batch_question__assigned_to"] for row in counts if row["batch_question__assigned_to"]]
    )
    found = [
        Waiting(people.get(row["batch_question__assigned_to"]), row["questions"], row["pairs"])
        for row in counts
    ]
    return sorted(found, key=lambda row: row.assessor.name if row.assessor else "")


@dataclass(frozen=True)
class Handover:
    """What a reassignment, or taking somebody out, would move: open pairs, and those among them that people hold now,
    by name; and the judgments that stay."""

    questions: int
    open_pairs: int
    judgments: int
    held: list[tuple[Assessor, int]]

    @property
    def goes_back(self) -> int:
        return sum(count for _assessor, count in self.held)


def handover_of_questions(batch: Batch, questions: Sequence[BatchQuestion], to: Assessor | None) -> Handover:
    """Giving these questions to an assessor, or to whoever comes."""
    tasks = live_tasks(batch).filter(pair__batch_question__in=questions)
    return Handover(
        questions=len(questions),
        open_pairs=_open_pairs(batch).filter(batch_question__in=questions).count(),
        judgments=batch_judgments(batch).filter(pair__batch_question__in=questions).count(),
        held=_by_holder(tasks.exclude(assessor=to) if to else tasks),
    )


def handover_of_assessor(batch: Batch, assessor: Assessor) -> Handover:
    """Taking an assessor out of the batch. `questions` are those that were assigned to them and are not done."""
    theirs = _open_pairs(batch).filter(batch_question__assigned_to=assessor)
    return Handover(
        questions=theirs.order_by().values("batch_question").distinct().count(),
        open_pairs=theirs.count(),
        judgments=batch_judgments(batch).filter(assessor=assessor).count(),
        held=_by_holder(live_tasks(batch).filter(assessor=assessor)),
    )


def _open_pairs(batch: Batch) -> QuerySet[BatchPair]:
    return BatchPair.objects.ordinary().filter(batch=batch, filled_at__isnull=True)


def _by_holder(tasks: QuerySet[Task]) -> list[tuple[Assessor, int]]:
    counts = dict(tasks.order_by().values_list("assessor").annotate(n=Count("pk")))
    people = Assessor.objects.filter(pk__in=counts).select_related("user").order_by("name")
    return [(assessor, counts[assessor.pk]) for assessor in people]


# Open pairs of which every assessor of the batch has said something: here, or in an earlier batch on the same text.
_STUCK = """
    SELECT count(*)
    FROM judging_batchpair p
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT j.assessor_id) AS people
        FROM judging_judgment j
        JOIN judging_batch_assessors seat ON seat.batch_id = p.batch_id AND seat.assessor_id = j.assessor_id
        WHERE j.evalset_id = %(evalset)s AND j.question_id = p.question_id AND j.chunk_id = p.chunk_id
          AND (j.pair_id = p.id OR j.revision = p.revision AND j.kind <> 'skip')
    ) said
    WHERE p.batch_id = %(batch)s AND p.filled_at IS NULL AND p.gold_grade IS NULL
      AND said.people = (SELECT count(*) FROM judging_batch_assessors WHERE batch_id = %(batch)s)
"""


def stuck_pairs(batch: Batch) -> int:
    """Open pairs that nobody is offered any more: everybody in the batch has skipped or judged them. They wait for
    the lead."""
    with connection.cursor() as cursor:
        cursor.execute(_STUCK, {"batch": batch.pk, "evalset": batch.evalset_id})
        return int(cursor.fetchone()[0])


# Bytes of UTF-8 stand for characters: their number is known without reading the text.
_SPEED = """
    WITH said AS (
        SELECT j.assessor_id, j.chunk_id, j.revision, j.seconds,
            row_number() OVER (PARTITION BY j.assessor_id ORDER BY j.judged_at DESC) AS place
        FROM judging_batchpair p JOIN judging_judgment j ON j.pair_id = p.id
        WHERE p.batch_id = %(batch)s AND j.kind = 'grade' AND j.source = 'desk' AND j.seconds > 0
          AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    )
    SELECT said.assessor_id, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY said.seconds),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY octet_length(text.text) / said.seconds)
    FROM said
    JOIN evalsets_chunkrevision text ON text.chunk_id = said.chunk_id AND text.number = said.revision
    WHERE said.place <= %(latest)s
    GROUP BY said.assessor_id
    HAVING count(*) >= %(least)s
"""


@dataclass(frozen=True)
class Speed:
    """How fast an assessor graded of late: the medians of the seconds a grade, and of the characters a second."""

    assessor: int
    judgments: int
    seconds: float
    characters_a_second: float


def speeds(batch: Batch) -> list[Speed]:
    """Of each who has at least 20 timed grades at the desk, the latest 100 of them."""
    with connection.cursor() as cursor:
        cursor.execute(_SPEED, {"batch": batch.pk, "latest": FAST_OF, "least": FAST_FROM})
        return [Speed(*row) for row in cursor.fetchall()]


@dataclass(frozen=True)
class FastHint:
    """That an assessor grades much faster than the others, and than people read. A hint to look, not a verdict."""

    assessor: Assessor
    speed: Speed
    others_seconds: float | None


def fast_hints(speeds: Sequence[Speed]) -> list[FastHint]:
    """Who grades suspiciously fast, by name.

    Their median takes under a third of the median of the others' medians, and the median text goes by at more than 80
    characters a second. Where nobody else has a speed, that of reading alone decides.
    """
    found = {}
    for speed in speeds:
        others = [other.seconds for other in speeds if other is not speed]
        usual = statistics.median(others) if others else None
        reads_fast = speed.characters_a_second > FAST_CHARACTERS
        if reads_fast and (usual is None or speed.seconds < usual * FAST_SHARE):
            found[speed.assessor] = (speed, usual)
    people = Assessor.objects.filter(pk__in=found).select_related("user").order_by("name")
    return [FastHint(assessor, *found[assessor.pk]) for assessor in people]


@dataclass(frozen=True)
class Step:
    """The grades of one step of time, by the rubric's grades from the lowest; `others` were found impossible."""

    start: datetime.datetime
    counts: list[int]
    others: int

    @property
    def total(self) -> int:
        return sum(self.counts) + self.others


@dataclass(frozen=True)
class Timeline:
    """How the batch's judgments came in, by steps of equal width from the first judgment to the last."""

    width: datetime.timedelta
    steps: list[Step]

    @property
    def form(self) -> str:
        """How the beginning of a step is written: by day, by time, or both."""
        if self.width >= datetime.timedelta(days=1):
            return "j M Y"
        days = {timezone.localtime(step.start).date() for step in self.steps}
        return "H:i" if len(days) == 1 else "j M, H:i"


_TIMELINE = """
    SELECT date_bin(make_interval(secs => %(width)s), j.judged_at, %(origin)s), j.grade, count(*)
    FROM judging_judgment j JOIN judging_batchpair p ON p.id = j.pair_id
    WHERE p.batch_id = %(batch)s AND j.kind <> 'skip'
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    GROUP BY 1, 2 ORDER BY 1
"""


def timeline(batch: Batch) -> Timeline:
    """All judgments of the batch as they stand, gold among them: the picture is of people at work."""
    said = Judgment.objects.filter(pair__batch=batch)
    first, last = said.aggregate(first=Min("judged_at"), last=Max("judged_at")).values()
    if first is None:
        return Timeline(WIDTHS[0], [])
    width = next((width for width in WIDTHS if (last - first) / width < STEPS), WIDTHS[-1])
    origin = timezone.localtime(first).replace(hour=0, minute=0, second=0, microsecond=0)
    grades = [item["grade"] for item in batch.rubric.scale]
    counts: dict[datetime.datetime, dict[int | None, int]] = {}
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"batch": batch.pk, "width": width.total_seconds(), "origin": origin}
        cursor.execute(_TIMELINE, values)
        for start, grade, count in cursor.fetchall():
            counts.setdefault(start, {})[grade] = count
    steps, start = [], min(counts, default=last + width)
    while start <= last:
        here = counts.get(start, {})
        steps.append(Step(start, [here.get(grade, 0) for grade in grades], here.get(None, 0)))
        start += width
    return Timeline(width, steps)


@dataclass(frozen=True)
class RoomSummary:
    """An eval set's open batches together. `left` of `wanted` judgments are to be made, gold aside."""

    open: int
    paused: int
    overdue: int
    wanted: int
    left: int
    lately: int
    at_work: int


def room_summary(evalset: EvalSet) -> RoomSummary:
    """Reads the pairs of the open batches, and what was judged in the last hour."""
    batches = list(Batch.objects.open().filter(evalset=evalset))
    pairs = BatchPair.objects.ordinary().filter(batch__in=batches)
    wanted = pairs.aggregate(all=Sum("wanted"), of_open=Sum("wanted", filter=OPEN))
    at_work = Task.objects.filter(pair__batch__in=batches, leased_until__gt=Now())
    return RoomSummary(
        open=sum(batch.hands_out_pairs for batch in batches),
        paused=sum(not batch.hands_out_pairs for batch in batches),
        overdue=sum(batch.is_past_due for batch in batches),
        wanted=wanted["all"] or 0,
        left=(wanted["of_open"] or 0) - judgments_of_open(batches),
        lately=sum(said.judged for said in said_lately(evalset.pk, batches).values()),
        at_work=at_work.values("assessor").distinct().count(),
    )

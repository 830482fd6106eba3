"""What of a batch's room takes reading all its judgments: of this moment in a small batch, else as a job found it."""

from __future__ import annotations

from typing import NamedTuple

from evalsets.models import EvalSet
from judging import batch_counts, batch_room
from judging.batch_counts import AssessorCounts, BatchTotals, GradeCount
from judging.batch_room import Speed, Timeline
from judging.reckoning import Report, is_large_batch


class RoomReport(NamedTuple):
    """`assessors` by `Assessor.id`; `stuck` pairs are offered to nobody any more."""

    totals: BatchTotals
    assessors: dict[int, AssessorCounts]
    speeds: list[Speed]
    stuck: int
    timeline: Timeline
    grades: list[GradeCount]


def room_report(evalset: EvalSet, key: int) -> RoomReport:
    """Of the batch with that key. Raises Batch.DoesNotExist."""
    batch = evalset.batches.select_related("rubric").get(pk=key)
    return RoomReport(
        totals=batch_counts.batch_totals(batch),
        assessors=batch_counts.assessor_counts(batch),
        speeds=batch_room.speeds(batch),
        stuck=batch_room.stuck_pairs(batch),
        timeline=batch_room.timeline(batch),
        grades=batch_counts.grade_counts(batch),
    )


ROOM: Report[RoomReport] = Report("room", room_report, is_large_batch)

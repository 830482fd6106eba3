"""How judging a pool went: relevant pairs found against judgments made; and tables of such curves for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection

from pooling.models import Pool
from pooling.simulation import Curve, found_after

# The pool's pairs that were graded in its batches, in the order of their first grades: whether the last word on each is
# relevant. Gold pairs are known before.
_COURSE = """
    SELECT (array_agg(j.grade ORDER BY j.id DESC))[1] >= %s
    FROM judging_judgment j
    JOIN judging_batchpair p ON p.id = j.pair_id
    JOIN judging_batch b ON b.id = p.batch_id
    WHERE b.pool_id = %s AND j.kind = 'grade' AND p.gold_grade IS NULL
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    GROUP BY p.id
    ORDER BY min(j.judged_at), p.id
"""
STEPS = 10


def course_of(pool: Pool) -> Curve | None:
    """The curve of the pool's own judgments; None before anything relevant is found."""
    with connection.cursor() as cursor:
        cursor.execute(_COURSE, [pool.evalset.threshold, pool.pk])
        found = np.cumsum([0] + [bool(relevant) for (relevant,) in cursor.fetchall()]).tolist()
    return Curve("as judged", list(enumerate(found))) if found[-1] else None


def shuffled(curve: Curve) -> Curve:
    """What the same judgments would have found on average in an order that tells nothing."""
    return Curve("shuffled, on average", [(0, 0), curve.points[-1]])


@dataclass(frozen=True)
class FoundRow:
    """One curve as a line of a table: how many were found after each column's judgments, and which share that is."""

    name: str
    cells: list[tuple[int, float]]


@dataclass(frozen=True)
class FoundTable:
    """Curves side by side; `columns` are numbers of judgments."""

    columns: list[int]
    rows: list[FoundRow]


def found_table(curves: Sequence[Curve], *, relevant: int, steps: int = STEPS) -> FoundTable:
    """The curves at equal steps up to the longest one's end. Shares are of `relevant`."""
    most = max(curve.points[-1][0] for curve in curves)
    columns = sorted({round(most * step / steps) for step in range(steps + 1)})
    return FoundTable(
        columns,
        [
            FoundRow(
                curve.name,
                [
                    (round(found), found / relevant if relevant else 0.0)
                    for found in (found_after(curve, judgments) for judgments in columns)
                ],
            )
            for curve in curves
        ],
    )


@dataclass(frozen=True)
class Line:
    """A curve as a picture draws it: `number` is its place in the table, by which its colour and dashes are told."""

    number: int
    name: str
    points: str


@dataclass(frozen=True)
class LinesPicture:
    """Curves on an area of `width` x `height`, shares of 0 to 1 upwards; `ticks` are places along it, and labels."""

    width: int
    height: int
    lines: list[Line]
    ticks: list[tuple[float, int]]


def lines_picture(
    columns: Sequence[int], rows: Sequence[FoundRow], width: int = 640, height: int = 300
) -> LinesPicture:
    """The picture of a table; the lines that find most in the first quarter of the judgments come first."""
    most = columns[-1] or 1

    def x(judgments: int) -> float:
        return round(width * judgments / most, 1)

    early = max(place for place, judgments in enumerate(columns) if judgments <= most / 4)
    lines = [
        Line(
            number,
            row.name,
            " ".join(
                f"{x(judgments)},{round(height * (1 - share), 1)}"
                for judgments, (_, share) in zip(columns, row.cells, strict=True)
            ),
        )
        for number, row in enumerate(rows)
    ]
    lines.sort(key=lambda line: -rows[line.number].cells[early][1])
    return LinesPicture(
        width,
        height,
        lines,
        [(x(judgments), judgments) for judgments in columns[:: max(1, len(columns) // 5)]],
    )

"""What outside judges said beside what people's judgments settle to: the arrays that judges are measured on.

A judge's grade counts here when it is current and about the chunk's text of today, as a person's does for a label.
Nothing of it counts anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from django.db import connection

from evalsets.models import EvalSet
from judging.models import Assessor
from labels.ratings import Array
from labels.settling import SETTLED, settle_parameters

_GRADES = f"""{SETTLED}
SELECT j.assessor_id, coalesce((j.details->>'repetition')::int, 1), j.question_id, j.chunk_id, j.grade, settled.label
FROM judging_judgment j
JOIN judging_assessor a ON a.id = j.assessor_id AND a.kind = 'model'
JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision
LEFT JOIN settled ON settled.question_id = j.question_id AND settled.chunk_id = j.chunk_id
WHERE j.evalset_id = %(evalset)s AND j.kind = 'grade'
  AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
ORDER BY j.question_id, j.chunk_id"""  # noqa: S608 - no value from outside is in the text


@dataclass(frozen=True)
class JudgeGrades:
    """One judge's grades: a row for each pair of `Graded`, a column for each of `repetitions`; NaN where none."""

    judge: Assessor
    repetitions: list[int]
    grades: Array

    @cached_property
    def settled(self) -> Array:
        """The judge's word on each pair: the median of its repetitions, rounded down, as a release would take it."""
        said = ~np.isnan(self.grades).all(axis=1)
        settled = np.full(len(self.grades), np.nan)
        settled[said] = np.floor(np.nanmedian(self.grades[said], axis=1))
        return settled


@dataclass(frozen=True)
class Graded:
    """The pairs that any outside judge graded, by question, then chunk, with people's label (NaN: none)."""

    questions: Array
    chunks: Array
    people: Array
    judges: list[JudgeGrades]

    def of(self, judge: Assessor) -> JudgeGrades:
        return next(item for item in self.judges if item.judge == judge)


def graded_pairs(evalset: EvalSet) -> Graded:
    """What every outside judge of the eval set said, by name; those whose grades are all of older texts included."""
    with connection.cursor() as cursor:
        cursor.execute(_GRADES, settle_parameters(evalset))
        rows = np.array(
            [[np.nan if value is None else value for value in row] for row in cursor.fetchall()], dtype=float
        ).reshape(-1, 6)
    judge, repetition = rows[:, 0], rows[:, 1].astype(int)
    pairs, first, place = np.unique(rows[:, 2:4], axis=0, return_index=True, return_inverse=True)
    place = place.ravel()
    judges = evalset.assessors.filter(kind=Assessor.Kind.MODEL).order_by("name")
    return Graded(
        questions=pairs[:, 0].astype(int),
        chunks=pairs[:, 1].astype(int),
        people=rows[first, 5],
        judges=[
            JudgeGrades(item, *_by_repetition(place[mine], repetition[mine], rows[mine, 4], len(pairs)))
            for item in judges
            for mine in [judge == item.pk]
        ],
    )


def _by_repetition(place: Array, repetition: Array, grade: Array, pairs: int) -> tuple[list[int], Array]:
    numbers: Sequence[int] = np.unique(repetition).tolist()
    table = np.full((pairs, len(numbers)), np.nan)
    table[place, np.searchsorted(numbers, repetition)] = grade
    return list(numbers), table

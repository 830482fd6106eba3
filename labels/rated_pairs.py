"""The pairs that several people graded, each for themselves: what agreement is measured on.

A grade counts here when it is current, when a person gave it from reading the text, and when at least one other person
graded the same text for the same question so. Adjudications, grades copied from a near copy, labels carried over to
another text, and what files and outside judges say are no independent grades. Gold pairs are left out: they were
chosen and not drawn, and everybody meets them. A grade of an earlier text counts beside others of that text.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.db import connection

from evalsets.models import EvalSet
from judging.models import Assessor, Batch
from labels.ratings import Array

RATED = """
    WITH own AS (
        SELECT DISTINCT ON (j.question_id, j.chunk_id, j.revision, j.assessor_id)
               j.question_id, j.chunk_id, j.revision, j.assessor_id, j.grade, j.judged_at
        FROM judging_judgment j
        JOIN judging_assessor a ON a.id = j.assessor_id AND a.kind = 'person'
        WHERE j.evalset_id = %(evalset)s AND j.kind = 'grade' AND j.source IN ('desk', 'import')
          AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
          AND NOT EXISTS (SELECT FROM judging_batchpair gold WHERE gold.id = j.pair_id AND gold.gold_grade IS NOT NULL)
          AND (%(batch)s::bigint IS NULL
               OR EXISTS (SELECT FROM judging_batchpair p WHERE p.id = j.pair_id AND p.batch_id = %(batch)s))
        ORDER BY j.question_id, j.chunk_id, j.revision, j.assessor_id, j.judged_at DESC, j.id DESC
    ),
    counted AS (
        SELECT *, count(*) OVER (PARTITION BY question_id, chunk_id, revision) AS people FROM own
    )
    SELECT question_id, chunk_id, revision, array_agg(assessor_id ORDER BY assessor_id),
           array_agg(grade ORDER BY assessor_id), max(judged_at) AS complete_at
    FROM counted WHERE people >= 2
    GROUP BY question_id, chunk_id, revision
    ORDER BY complete_at, question_id, chunk_id, revision
"""


class RatedPair(NamedTuple):
    """One text for one question; `complete_at` is when the last of its grades was given."""

    question_id: int
    chunk_id: int
    revision: int
    complete_at: datetime.datetime


@dataclass(frozen=True)
class RatedPairs:
    """`ratings` has a row for each of `pairs`, the first completed first, and a column for each of `assessors`.

    An entry is a grade, or NaN where the assessor gave none.
    """

    pairs: list[RatedPair]
    assessors: list[Assessor]
    ratings: Array

    def between(self, low: int, high: int) -> Iterable[tuple[RatedPair, list[int]]]:
        """The pairs that somebody graded `low` and somebody else `high`, each with all its grades, lowest first."""
        for pair, row in zip(self.pairs, self.ratings, strict=True):
            grades = sorted(int(grade) for grade in row[~np.isnan(row)])
            if low in grades and high in grades and (low != high or grades.count(low) >= 2):
                yield pair, grades


def rated_pairs(evalset: EvalSet, batch: Batch | None = None) -> RatedPairs:
    """The pairs with at least two independent grades by people, in the whole eval set or within one batch."""
    with connection.cursor() as cursor:
        cursor.execute(RATED, {"evalset": evalset.pk, "batch": batch.pk if batch else None})
        rows = cursor.fetchall()
    people = {assessor for row in rows for assessor in row[3]}
    assessors = list(Assessor.objects.filter(pk__in=people).select_related("user").order_by("name"))
    column = {assessor.pk: place for place, assessor in enumerate(assessors)}
    ratings = np.full((len(rows), len(assessors)), np.nan)
    for item, (_, _, _, who, grades, _) in enumerate(rows):
        ratings[item, [column[assessor] for assessor in who]] = grades
    pairs = [RatedPair(question, chunk, revision, at) for question, chunk, revision, _, _, at in rows]
    return RatedPairs(pairs, assessors, ratings)

"""The pairs that several people graded, each for themselves: what agreement is measured on.

A grade counts here when it is current, when a person gave it from reading the text, and when at least one other person
graded the same text for the same question so. Adjudications, grades copied from a near copy, labels carried over to
another text, and what files and outside judges say are no independent grades. Gold pairs are left out: they were
chosen and not drawn, and everybody meets them. A grade of an earlier text counts beside others of that text.
"""

from __future__ import annotations

import datetime
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
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
          {within}
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


_WITHIN_BATCH = "AND j.pair_id IN (SELECT id FROM judging_batchpair WHERE batch_id = %(batch)s)"
# Of the pairs with the same two grades, so many are listed.
LISTED = 1000


class RatedPair(NamedTuple):
    """One text for one question; `complete_at` is when the last of its grades was given."""

    question_id: int
    chunk_id: int
    revision: int
    complete_at: datetime.datetime


@dataclass
class GradedAlike:
    """The pairs with the same two grades: how many, and the first of them with all their grades, lowest first."""

    count: int = 0
    listed: list[tuple[RatedPair, list[int]]] = field(default_factory=list)


@dataclass(frozen=True)
class RatedPairs:
    """`ratings` has a row for each of `pairs`, the first completed first, and a column for each of `assessors`.

    An entry is a grade, or NaN where the assessor gave none.
    """

    pairs: list[RatedPair]
    assessors: list[Assessor]
    ratings: Array

    def by_grades(self) -> dict[tuple[int, int], GradedAlike]:
        """By two grades, the lower one first, the pairs that somebody graded the one and somebody else the other."""
        found: defaultdict[tuple[int, int], GradedAlike] = defaultdict(GradedAlike)
        for pair, row in zip(self.pairs, self.ratings, strict=True):
            grades = sorted(row[~np.isnan(row)].astype(int).tolist())
            for two in set(itertools.combinations(grades, 2)):
                alike = found[two]
                alike.count += 1
                if alike.count <= LISTED:
                    alike.listed.append((pair, grades))
        return dict(found)


def rated_pairs(evalset: EvalSet, batch: Batch | None = None) -> RatedPairs:
    """The pairs with at least two independent grades by people, in the whole eval set or within one batch."""
    with connection.cursor() as cursor:
        sql = RATED.format(within=_WITHIN_BATCH if batch else "")
        cursor.execute(sql, {"evalset": evalset.pk, "batch": batch.pk if batch else None})
        rows = cursor.fetchall()
    people = {assessor for row in rows for assessor in row[3]}
    assessors = list(Assessor.objects.filter(pk__in=people).select_related("user").order_by("name"))
    column = {assessor.pk: place for place, assessor in enumerate(assessors)}
    ratings = np.full((len(rows), len(assessors)), np.nan)
    for item, (_, _, _, who, grades, _) in enumerate(rows):
        ratings[item, [column[assessor] for assessor in who]] = grades
    pairs = [RatedPair(question, chunk, revision, at) for question, chunk, revision, _, _, at in rows]
    return RatedPairs(pairs, assessors, ratings)

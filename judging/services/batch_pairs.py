"""What goes into a batch: its pairs in the order in which assessors meet them, written at once."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import Max

from judging.models import Assessor, Batch, BatchQuestion
from judging.services.gold import KnownAnswer


class PairToJudge(NamedTuple):
    """A pair of a remainder. Pairs come question by question, in the order in which assessors shall meet them."""

    question_id: int
    chunk_id: int
    revision: int
    position: int


class BatchRow(NamedTuple):
    """A pair as it is written into a batch; a gold pair has its known grade."""

    question_id: int
    chunk_id: int
    revision: int
    wanted: int
    gold_grade: int | None = None


def with_overlap(pairs: Sequence[PairToJudge], *, overlap: int, share: float, seed: int) -> list[BatchRow]:
    """The pairs, each wanting one judgment, and `share` of them, drawn by the seed, `overlap`."""
    several = round(share * len(pairs)) if overlap > 1 else 0
    drawn = set(random.Random(seed).sample(range(len(pairs)), several))  # noqa: S311 (a draw, no secret)
    return [BatchRow(*pair[:3], overlap if n in drawn else 1) for n, pair in enumerate(pairs)]


def mixed_with_gold(rows: Sequence[BatchRow], answers: Sequence[KnownAnswer], *, seed: int) -> list[BatchRow]:
    """The rows with each known answer at any place among those of its question, drawn by the seed.

    An answer of a pair that is among the rows takes its place. So neither order nor ID tells a gold pair.
    """
    grades = {answer[:2]: answer.grade for answer in answers}
    by_question: dict[int, list[BatchRow]] = defaultdict(list)
    for row in rows:
        by_question[row.question_id].append(row._replace(gold_grade=grades.pop(row[:2], None)))
    draw = random.Random(f"places {seed}")  # noqa: S311 (a draw, no secret)
    for answer in answers:
        if answer[:2] in grades:
            mixed = by_question[answer.question_id]
            row = BatchRow(answer.question_id, answer.chunk_id, answer.revision, 1, answer.grade)
            mixed.insert(draw.randint(0, len(mixed)), row)
    return [row for mixed in by_question.values() for row in mixed]


def write_rows(batch: Batch, rows: Sequence[BatchRow], people: Sequence[Assessor]) -> None:
    """One row a question that is new, and one a pair, by COPY: a batch may have hundreds of thousands.

    What is added to a batch that has pairs already comes behind them.
    """
    known = dict(batch.batch_questions.values_list("question_id", "pk"))
    asked = [question for question in dict.fromkeys(row.question_id for row in rows) if question not in known]
    deals = batch.sharing == Batch.Sharing.ASSIGNED
    added = BatchQuestion.objects.bulk_create(
        BatchQuestion(
            batch=batch,
            question_id=question_id,
            position=position,
            assigned_to=people[position % len(people)] if deals else None,
        )
        for position, question_id in enumerate(asked, start=len(known))
    )
    known |= {row.question_id: row.pk for row in added}
    last = batch.pairs.aggregate(last=Max("position"))["last"]
    columns = "batch_id, batch_question_id, position, question_id, chunk_id, revision, wanted, gold_grade"
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY judging_batchpair ({columns}) FROM STDIN") as copy,
    ):
        for position, row in enumerate(rows, start=0 if last is None else last + 1):
            copy.write_row((batch.pk, known[row.question_id], position, *row))

"""A built pool's numbers for its pages: of this moment where the pool is small, else kept as a job worked them out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from django.db.models import Sum

from evalsets.models import EvalSet
from judging.pool_course import FoundTable, course_of, found_table, shuffled
from judging.pool_numbers import PairCounts, PoolNumbers, QuestionCounts
from judging.reckoning import Report, more_than
from judging.services.pools import measure_pool
from pooling.models import Pool
from pooling.specifying import PoolSpecification

# A pool that may have more entries of rankings to read than these, or more questions, takes longer than a page may.
ENTRIES_AT_ONCE, QUESTIONS_AT_ONCE = 400_000, 2_000

# What the list of questions can be sorted by.
COLUMNS = ("union", "pairs", "judged", "queued", "remainder")


@dataclass(frozen=True)
class QuestionTable:
    """The numbers of each question as an array, a row a question: of ten thousand a page needs fifty."""

    question_ids: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]  # its columns are the fields of PairCounts
    pairs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Collection[QuestionCounts]) -> QuestionTable:
        width = len(PairCounts.__dataclass_fields__)
        counts = [tuple(vars(row.counts).values()) for row in rows]
        return cls(
            question_ids=np.array([row.question_id for row in rows], dtype=np.int64),
            counts=np.array(counts, dtype=np.int64).reshape(-1, width),
            pairs=np.array([row.counts.pairs for row in rows], dtype=np.int64),
        )

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """One of the numbers of `PairCounts`, or its `pairs`, by question."""
        if name == "pairs":
            return self.pairs
        return np.asarray(self.counts[:, list(PairCounts.__dataclass_fields__).index(name)])

    def places(self, sort: str, only: Collection[int] | None) -> list[int]:
        """The places of the questions in `only` (None: all), as an address asks for by `union` or `-union` and the
        like."""
        found = np.arange(len(self.question_ids))
        if only is not None:
            found = found[np.isin(self.question_ids, list(only))]
        name = sort.removeprefix("-")
        if name in COLUMNS:
            values = self.column(name)[found]
            found = found[np.argsort(-values if sort.startswith("-") else values, kind="stable")]
        return found.tolist()

    def at(self, place: int) -> QuestionCounts:
        return QuestionCounts(int(self.question_ids[place]), PairCounts(*self.counts[place].tolist()))


class PoolReport(NamedTuple):
    """`numbers` without its questions, which are in the table; and how judging the pool went (None: not begun)."""

    numbers: PoolNumbers
    questions: QuestionTable
    course: FoundTable | None


def _report(evalset: EvalSet, key: int) -> PoolReport:
    pool = evalset.pools.select_related("evalset", "extends").get(pk=key)
    numbers, curve = measure_pool(pool), course_of(pool)
    return PoolReport(
        numbers=replace(numbers, questions=[]),
        questions=QuestionTable.of(numbers.questions),
        course=found_table([curve, shuffled(curve)], relevant=curve.points[-1][1]) if curve else None,
    )


def _is_large(evalset: EvalSet, key: int) -> bool:
    pool = Pool(pk=key)
    depths = pool.pool_runs.aggregate(total=Sum("k"))["total"] or 1
    return more_than(min(QUESTIONS_AT_ONCE, ENTRIES_AT_ONCE // depths), pool.pool_questions.all())


def has_much_to_read(specification: PoolSpecification) -> bool:
    """The same of a pool that need not exist."""
    return (
        specification.reads_at_most > ENTRIES_AT_ONCE or len(specification.question_ids) > QUESTIONS_AT_ONCE
    )


POOL: Report[PoolReport] = Report("pool", _report, _is_large)

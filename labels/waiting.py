"""The pairs that wait for a lead's decision.

A pair waits while nobody has decided it and its grades either settle to no label, or lie farther apart than the eval
set's tolerance though they settle to one. Decisions are the work of `judging.services.adjudication`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection

from evalsets.models import EvalSet
from labels.exports.reading import in_batches
from labels.settling import COLUMNS, SETTLED, SettledPair, settle_parameters

# Of a row of `settled`. The spread is asked for only where the policy had to settle differing grades.
WAITS = """(why = 'contested' OR (
    why = %(policy)s AND (SELECT max(grade) - min(grade) FROM unnest(grades) grade) > %(tolerance)s))"""


# So many pairs of each list are kept; a lead who has decided that many has the list made anew.
LISTED = 10_000
# Pairs that are looked at together for one that waits still.
LOOKED_AT_ONCE = 20


class QueueCounts(NamedTuple):
    """How many pairs wait for a decision, and how many nobody could or would judge."""

    waiting: int
    skipped_only: int


class QueuedPair(NamedTuple):
    """A pair by the IDs of question and chunk, which give the order, and by their keys."""

    question: str
    chunk: str
    question_id: int
    chunk_id: int

    @property
    def key(self) -> tuple[int, int]:
        return self.question_id, self.chunk_id


class Queue(NamedTuple):
    """The first `LISTED` pairs that wait, and that were only skipped, by question ID, then chunk ID; and how many there
    are."""

    waiting: list[QueuedPair]
    skipped_only: list[QueuedPair]
    counts: QueueCounts


def read_queue(evalset: EvalSet) -> Queue:
    """What waits in the eval set. Settles all its pairs."""
    sql = f"""{SETTLED},
        listed AS (
            SELECT {WAITS} AS waits, q.external_id AS question, c.external_id AS chunk,
                   q.id AS question_id, c.id AS chunk_id
            FROM settled
            JOIN evalsets_question q ON q.id = settled.question_id
            JOIN evalsets_chunk c ON c.id = settled.chunk_id
            WHERE {WAITS} OR why = 'skipped-only'
        ),
        numbered AS (
            SELECT *, row_number() OVER (PARTITION BY waits ORDER BY question, chunk) AS n,
                   count(*) OVER (PARTITION BY waits) AS total
            FROM listed
        )
        SELECT waits, total, question, chunk, question_id, chunk_id FROM numbered
        WHERE n <= %(listed)s ORDER BY waits, n"""  # noqa: S608 - no value from outside is in the text
    lists: dict[bool, list[QueuedPair]] = {True: [], False: []}
    totals = {True: 0, False: 0}
    with connection.cursor() as cursor:
        cursor.execute(sql, {**_parameters(evalset), "listed": LISTED})
        for waits, total, *pair in cursor:
            lists[waits].append(QueuedPair(*pair))
            totals[waits] = total
    return Queue(lists[True], lists[False], QueueCounts(totals[True], totals[False]))


def waiting_pairs(evalset: EvalSet, *, questions: Iterable[int] | None = None) -> list[SettledPair]:
    """The pairs that wait, of these questions (None: all), by question ID, then chunk ID."""
    sql = f"""{SETTLED}
        SELECT {COLUMNS} FROM settled
        JOIN evalsets_question q ON q.id = settled.question_id
        JOIN evalsets_chunk c ON c.id = settled.chunk_id
        WHERE {WAITS}
        ORDER BY q.external_id, c.external_id"""  # noqa: S608 - no value from outside is in the text
    with connection.cursor() as cursor:
        cursor.execute(sql, _parameters(evalset, questions))
        return [SettledPair(*row) for row in cursor.fetchall()]


def _parameters(evalset: EvalSet, questions: Iterable[int] | None = None) -> dict[str, Any]:
    return {
        **settle_parameters(evalset, questions=questions),
        "tolerance": evalset.adjudication_tolerance,
    }


def next_waiting(
    evalset: EvalSet, waiting: Sequence[QueuedPair], after: tuple[str, str] | None
) -> QueuedPair | None:
    """The first of the listed pairs behind that question and chunk ID, else from the top, that waits at this moment."""
    start = bisect_right(waiting, after, key=lambda pair: (pair.question, pair.chunk)) if after else 0
    for pairs in in_batches([*waiting[start:], *waiting[:start]], LOOKED_AT_ONCE):
        now = waiting_pairs(evalset, questions={pair.question_id for pair in pairs})
        keys = {(pair.question_id, pair.chunk_id) for pair in now}
        for pair in pairs:
            if pair.key in keys:
                return pair
    return None


def why_it_waits(pair: SettledPair, evalset: EvalSet) -> str:
    """Why the pair waits for a decision, in words; empty where it does not."""
    spread = max(pair.grades) - min(pair.grades) if pair.grades else 0
    apart = f"grades differ by {spread}"
    if pair.contested:
        lacks = (
            "no grade has a majority"
            if evalset.settle_policy == "majority"
            else "differing grades settle to none"
        )
        return f"no label ({lacks}); {apart}"
    if pair.why == evalset.settle_policy and spread > evalset.adjudication_tolerance:
        return f"{apart}, though they settle to {pair.label} ({pair.why})"
    return ""

"""The pairs that wait for a lead's decision.

A pair waits while nobody has decided it and its grades either settle to no label, or lie farther apart than the eval
set's tolerance though they settle to one. Decisions are the work of `judging.services.adjudication`.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from evalsets.models import EvalSet
from labels.settling import COLUMNS, SETTLED, SettledPair, settle_parameters

# Of a row of `settled`. The spread is asked for only where the policy had to settle differing grades.
WAITS = """(why = 'contested' OR (
    why = %(policy)s AND (SELECT max(grade) - min(grade) FROM unnest(grades) grade) > %(tolerance)s))"""


class QueueCounts(NamedTuple):
    """How many pairs wait for a decision, and how many nobody could or would judge."""

    waiting: int
    skipped_only: int


def waiting_pairs(
    evalset: EvalSet, *, after: tuple[str, str] | None = None, offset: int = 0, limit: int | None = None
) -> list[SettledPair]:
    """The pairs that wait, by question ID, then chunk ID; with `after`, those behind that question and chunk ID."""
    sql = f"""{SETTLED}
        SELECT {COLUMNS} FROM settled
        JOIN evalsets_question q ON q.id = settled.question_id
        JOIN evalsets_chunk c ON c.id = settled.chunk_id
        WHERE {WAITS}
          AND (%(after_question)s::text IS NULL
               OR (q.external_id, c.external_id) > (%(after_question)s, %(after_chunk)s))
        ORDER BY q.external_id, c.external_id
        OFFSET %(offset)s LIMIT %(limit)s"""  # noqa: S608 - no value from outside is in the text
    after_question, after_chunk = after or (None, None)
    parameters = {
        **settle_parameters(evalset),
        "tolerance": evalset.adjudication_tolerance,
        "after_question": after_question,
        "after_chunk": after_chunk,
        "offset": offset,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [SettledPair(*row) for row in cursor.fetchall()]


def queue_counts(evalset: EvalSet) -> QueueCounts:
    sql = f"""{SETTLED}
        SELECT count(*) FILTER (WHERE {WAITS}), count(*) FILTER (WHERE why = 'skipped-only')
        FROM settled"""  # noqa: S608 - no value from outside is in the text
    with connection.cursor() as cursor:
        cursor.execute(sql, {**settle_parameters(evalset), "tolerance": evalset.adjudication_tolerance})
        return QueueCounts(*cursor.fetchone())


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

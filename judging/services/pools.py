"""What a pool costs: its preview before it is built, and its numbers at any time after."""

from __future__ import annotations

from django.db import connection

from evalsets.models import EvalSet
from judging.pair_states import chunks_without_text, read_pair_states
from judging.pool_numbers import PoolNumbers, Tally
from pooling.models import Pool
from pooling.services.pools import (
    PoolSpecification,
    missing_questions,
    pool_warnings,
    pooled_slices,
    specification_of,
)

# The pace is the median of the latest timed judgments, once there are enough of them.
TIMED_AT_LEAST = 20
TIMED_AT_MOST = 1000


def preview_pool(specification: PoolSpecification) -> PoolNumbers:
    """The numbers of a pool that need not exist, from the rankings and judgments as they stand. Writes nothing."""
    evalset = specification.evalset
    without_text = chunks_without_text(evalset)
    tally = Tally(len(specification.runs))
    for part in pooled_slices(specification):
        tally.add(part, read_pair_states(evalset, part.question_ids), without_text)
    numbers = tally.numbers()
    numbers.missing = missing_questions(specification)
    numbers.warnings = pool_warnings(specification, numbers.missing)
    numbers.seconds_per_judgment, numbers.timed_judgments = seconds_per_judgment(evalset)
    return numbers


def measure_pool(pool: Pool) -> PoolNumbers:
    """The numbers of a built pool as they stand now, computed anew from its runs."""
    return preview_pool(specification_of(pool))


_PACE = """
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM (
        SELECT seconds FROM judging_judgment
        WHERE evalset_id = %s AND kind = 'grade' AND source = 'desk' AND seconds > 0
        ORDER BY id DESC LIMIT %s
    ) AS latest
"""


def seconds_per_judgment(evalset: EvalSet) -> tuple[float, int]:
    """Seconds that a judgment takes here, and how many timed ones that is the median of.

    The median of the latest 1,000 grades given at the desk; the eval set's stated default, and 0, below 20 of them.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PACE, [evalset.pk, TIMED_AT_MOST])
        timed, median = cursor.fetchone()
    if timed < TIMED_AT_LEAST:
        return float(evalset.seconds_per_judgment), 0
    return float(median), timed

"""How much of what a run returned has been judged, rank by rank."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from labels.settling import JUDGED
from pooling.models import Run


class RankShare(NamedTuple):
    """How many rankings of a run have a chunk at this rank (from 1), and how many of those chunks are judged."""

    rank: int
    returned: int
    judged: int

    @property
    def unjudged(self) -> int:
        return self.returned - self.judged

    @property
    def unjudged_rate(self) -> float:
        """From 0 to 1; a rank at which nothing was returned is not listed."""
        return self.unjudged / self.returned


def judged_by_rank(run: Run, depth: int) -> list[RankShare]:
    """One row for each rank down to `depth` at which the run returned something, the first rank first."""
    sql = f"""
        WITH judged AS ({JUDGED})
        SELECT c.rank, count(*), count(judged.chunk_id)
        FROM pooling_ranking r
        CROSS JOIN LATERAL unnest(r.chunk_ids[1:%(depth)s]) WITH ORDINALITY AS c (chunk_id, rank)
        LEFT JOIN judged ON judged.question_id = r.question_id AND judged.chunk_id = c.chunk_id
        WHERE r.run_id = %(run)s
        GROUP BY c.rank
        ORDER BY c.rank"""  # noqa: S608 - no value from outside is in the text
    with connection.cursor() as cursor:
        cursor.execute(sql, {"evalset": run.evalset_id, "run": run.pk, "depth": depth})
        return [RankShare(*row) for row in cursor.fetchall()]

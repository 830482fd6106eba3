"""How much of what the runs returned has been judged, rank by rank."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from evalsets.models import EvalSet
from labels.settling import JUDGED

# So deep is looked.
DEPTH = 20


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


class UnjudgedCount(NamedTuple):
    """How many chunks a run returned within a depth over all its questions, and how many of these are unjudged."""

    returned: int
    unjudged: int

    @property
    def rate(self) -> float | None:
        """unjudged / returned, from 0 to 1; None where nothing was returned."""
        return self.unjudged / self.returned if self.returned else None


class RunCoverage(NamedTuple):
    """A run's rankings, how many of them are empty, and for how many questions it has none.

    `by_rank` has a row for each rank at which it returned something.
    """

    ranked: int
    empty: int
    missing: int
    by_rank: list[RankShare]

    def unjudged(self, k: int) -> UnjudgedCount:
        """What of the run within `k`, at most `DEPTH`, is unjudged."""
        within = [share for share in self.by_rank if share.rank <= k]
        return UnjudgedCount(sum(share.returned for share in within), sum(share.unjudged for share in within))


# Of a run that returned nothing.
NOTHING = RunCoverage(0, 0, 0, [])

_RANKINGS = """
SELECT r.run_id, count(*), count(*) FILTER (WHERE r.chunk_ids = '{}'),
       (SELECT count(*) FROM evalsets_question WHERE evalset_id = %(evalset)s) - count(*)
FROM pooling_ranking r JOIN pooling_run run ON run.id = r.run_id
WHERE run.evalset_id = %(evalset)s
GROUP BY r.run_id"""

_BY_RANK = f"""
WITH judged AS ({JUDGED})
SELECT r.run_id, c.rank, count(*), count(judged.chunk_id)
FROM pooling_run run
JOIN pooling_ranking r ON r.run_id = run.id
CROSS JOIN LATERAL unnest(r.chunk_ids[1:{DEPTH}]) WITH ORDINALITY AS c (chunk_id, rank)
LEFT JOIN judged ON judged.question_id = r.question_id AND judged.chunk_id = c.chunk_id
WHERE run.evalset_id = %(evalset)s
GROUP BY r.run_id, c.rank
ORDER BY r.run_id, c.rank"""  # noqa: S608 - no value from outside is in the text


def coverage_of_runs(evalset: EvalSet) -> dict[int, RunCoverage]:
    """How far each run of the eval set that has rankings is judged, by Run.id.

    Classes play no part here: an unlabelled copy of a judged chunk is unjudged.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RANKINGS, {"evalset": evalset.pk})
        found = {
            run: RunCoverage(ranked, empty, missing, []) for run, ranked, empty, missing in cursor.fetchall()
        }
        cursor.execute(_BY_RANK, {"evalset": evalset.pk})
        for run, *share in cursor.fetchall():
            found[run].by_rank.append(RankShare(*share))
    return found

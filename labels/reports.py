"""The figures of an eval set that cannot be had without reading all of it: see judging.reckoning.

Here stands what they are; each is worked out by the module it comes from.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from evalsets.models import EvalSet
from judging.reckoning import Report, is_large
from labels.coverage import RunCoverage, coverage_of_runs
from labels.differences import ChangedCounts, changes_since
from labels.services.freezing import latest_release
from labels.settling import JudgeLabels, SettledCounts, labels_of_judges, settled_counts
from labels.waiting import Queue, read_queue
from pooling.models import Ranking

# Beyond so many rankings the coverage of the runs is left to a job.
RANKINGS_AT_ONCE = 10_000


class Standing(NamedTuple):
    """How much there is in an eval set, and how its pairs stand."""

    questions: int
    chunks: int
    chunks_without_text: int
    pairs: SettledCounts


def _standing(evalset: EvalSet, _key: int) -> Standing:
    return Standing(
        questions=evalset.questions.count(),
        chunks=evalset.chunks.count(),
        chunks_without_text=evalset.chunks.filter(has_text=False).count(),
        pairs=settled_counts(evalset),
    )


def _changes(evalset: EvalSet, _key: int) -> ChangedCounts:
    """Since the latest release; none where there is no release."""
    latest = latest_release(evalset)
    return changes_since(latest, evalset) if latest else ChangedCounts(0, 0, Counter())


def _has_many_rankings(evalset: EvalSet, key: int) -> bool:
    rankings = Ranking.objects.filter(run__evalset=evalset)[RANKINGS_AT_ONCE : RANKINGS_AT_ONCE + 1]
    return is_large(evalset, key) or rankings.exists()


STANDING: Report[Standing] = Report("standing", _standing)
QUEUE: Report[Queue] = Report("queue", lambda evalset, _key: read_queue(evalset))
COVERAGE: Report[dict[int, RunCoverage]] = Report(
    "coverage", lambda evalset, _key: coverage_of_runs(evalset), _has_many_rankings
)
CHANGES: Report[ChangedCounts] = Report("changes", _changes)
LABELS_OF_JUDGES: Report[JudgeLabels] = Report(
    "labels-of-judges", lambda evalset, _key: labels_of_judges(evalset)
)

REPORTS: dict[str, Report[Any]] = {
    report.name: report for report in (STANDING, QUEUE, COVERAGE, CHANGES, LABELS_OF_JUDGES)
}

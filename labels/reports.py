"""The figures of an eval set that cannot be had without reading all of it: see judging.reckoning.

Here stands what they are; each is worked out by the module it comes from.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from evalsets.models import EvalSet
from judging.models import Assessor, Batch
from judging.pool_report import POOL
from judging.reckoning import Reckoned, Report, is_large, is_large_batch, more_than
from judging.room_report import ROOM
from labels.agreement import Coefficient
from labels.agreement_report import AgreementReport, report_agreement
from labels.conflicts import LabelConflict, label_conflicts
from labels.coverage import NOTHING, RunCoverage, coverage_of_runs
from labels.differences import ChangedCounts, changes_since
from labels.judge_grades import graded_pairs
from labels.judge_report import JudgeReport, JudgeSummary, among_people, report_on, summarise
from labels.models import DuplicateCandidate
from labels.rated_pairs import GradedAlike, rated_pairs
from labels.services.carrying import RulePlan, plan_by_rule
from labels.services.freezing import latest_release
from labels.settling import JudgeLabels, SettledCounts, labels_of_judges, settled_counts
from labels.waiting import Queue, read_queue
from pooling.models import Ranking, Run

# Beyond so many rankings the coverage of the runs is left to a job.
RANKINGS_AT_ONCE = 10_000
CONFLICTS_SHOWN = 50


class Standing(NamedTuple):
    """How much there is in an eval set, and how its pairs stand."""

    questions: int
    chunks: int
    chunks_without_text: int
    pairs: SettledCounts


def _standing(evalset: EvalSet, _key: int) -> Standing:
    return Standing(
        questions=evalset.questions.count(),
        chunks=evalset.chunks.whole().count(),
        chunks_without_text=evalset.chunks.filter(has_text=False).count(),
        pairs=settled_counts(evalset),
    )


def _changes(evalset: EvalSet, _key: int) -> ChangedCounts:
    """Since the latest release; none where there is no release."""
    latest = latest_release(evalset)
    return changes_since(latest, evalset) if latest else ChangedCounts(0, 0, Counter())


def _has_many_rankings(evalset: EvalSet, key: int) -> bool:
    return is_large(evalset, key) or more_than(RANKINGS_AT_ONCE, Ranking.objects.filter(run__evalset=evalset))


def coverage_of(coverage: Reckoned[dict[int, RunCoverage]], run: Run) -> RunCoverage | None:
    """What `COVERAGE` says of a run; None where it was worked out before the run came in, or never."""
    if coverage.value is None:
        return None
    return coverage.value.get(run.pk, NOTHING if coverage.at is None else None)


def _of_batch(evalset: EvalSet, key: int) -> Batch | None:
    return evalset.batches.get(pk=key) if key else None


def _has_much_overlap(evalset: EvalSet, key: int) -> bool:
    """Of a batch where there is a key, else of the eval set."""
    return is_large_batch(evalset, key) if key else is_large(evalset)


class JudgePage(NamedTuple):
    """A judge beside people, and people among themselves by the same coefficient (None: too few pairs)."""

    report: JudgeReport
    among_people: Coefficient | None


def _judges(evalset: EvalSet, _key: int) -> list[JudgeSummary]:
    graded = graded_pairs(evalset)
    return [
        summarise(graded, said, grades=evalset.grades, threshold=evalset.threshold, resamples=0)
        for said in graded.judges
    ]


def _judge(evalset: EvalSet, key: int) -> JudgePage:
    graded = graded_pairs(evalset)
    report = report_on(
        graded,
        graded.of(evalset.assessors.get(pk=key, kind=Assessor.Kind.MODEL)),
        grades=evalset.grades,
        threshold=evalset.threshold,
        slices=dict(evalset.questions.values_list("pk", "slices")),
    )
    return JudgePage(report, among_people(evalset, report.summary.verdict.read))


class Copies(NamedTuple):
    """Candidates that wait for a decision, equal and near ones, and those that their periods keep `apart`.

    `conflicts` are the first labels that disagree within a class, and there are so many `more_conflicts`.
    """

    equal: int
    near: int
    apart: int
    conflicts: list[LabelConflict]
    more_conflicts: int


def _copies(evalset: EvalSet, _key: int) -> Copies:
    undecided = DuplicateCandidate.objects.filter(evalset=evalset).open()
    conflicts = label_conflicts(evalset)
    return Copies(
        equal=undecided.filter(equal=True).count(),
        near=undecided.filter(equal=False).count(),
        apart=evalset.duplicate_candidates.apart_by_period().count(),
        conflicts=conflicts[:CONFLICTS_SHOWN],
        more_conflicts=max(0, len(conflicts) - CONFLICTS_SHOWN),
    )


STANDING: Report[Standing] = Report("standing", _standing)
QUEUE: Report[Queue] = Report("queue", lambda evalset, _key: read_queue(evalset))
COVERAGE: Report[dict[int, RunCoverage]] = Report(
    "coverage", lambda evalset, _key: coverage_of_runs(evalset), _has_many_rankings
)
CHANGES: Report[ChangedCounts] = Report("changes", _changes)
LABELS_OF_JUDGES: Report[JudgeLabels] = Report(
    "labels-of-judges", lambda evalset, _key: labels_of_judges(evalset)
)

AGREEMENT: Report[AgreementReport] = Report(
    "agreement", lambda evalset, key: report_agreement(evalset, _of_batch(evalset, key)), _has_much_overlap
)
RATED: Report[dict[tuple[int, int], GradedAlike]] = Report(
    "rated-pairs",
    lambda evalset, key: rated_pairs(evalset, _of_batch(evalset, key)).by_grades(),
    _has_much_overlap,
)
JUDGES: Report[list[JudgeSummary]] = Report("judges", _judges)
JUDGE: Report[JudgePage] = Report("judge", _judge)
COPIES: Report[Copies] = Report("copies", _copies)
PLAN: Report[RulePlan] = Report("carrying", lambda evalset, _key: plan_by_rule(evalset))

REPORTS: dict[str, Report[Any]] = {
    report.name: report
    for report in (
        STANDING,
        QUEUE,
        COVERAGE,
        CHANGES,
        LABELS_OF_JUDGES,
        AGREEMENT,
        RATED,
        JUDGES,
        JUDGE,
        COPIES,
        PLAN,
        POOL,
        ROOM,
    )
}

"""Scoring a run: which questions count, their values, the averages and their unjudged rates."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scoring.classes import BoolArray, FloatArray, IntArray, Rankings, Truth
from scoring.matching import Graded, match, select
from scoring.measures import Gain, Measure
from scoring.policies import (
    Policy,
    Unjudged,
    apply_policy,
    count_inadmissible_at,
    count_unjudged_at,
    unjudged_by_depth,
)
from scoring.values import question_values, rbp_residual

#: Stored with every result; rises when the same input would give other numbers.
CODE_VERSION = 2
#: How deep the curve of unjudged rates goes.
CURVE_DEPTH = 100


class Questions(NamedTuple):
    """The questions of the release, by number: their ids, whether they can be answered, their slices."""

    ids: tuple[str, ...]
    answerable: BoolArray
    slices: tuple[tuple[str, ...], ...]


class Rules(NamedTuple):
    """How relevance is counted: the threshold for binary measures, the gain for nDCG, the policy."""

    threshold: int = 1
    gain: Gain = "exponential"
    policy: Policy = "raw"


class Skipped(NamedTuple):
    """A question that is not in the averages, and why."""

    question: int
    why: str


class Plan(NamedTuple):
    """The questions to score, the same for all runs, and those left out with the reason.

    ``considered`` are all the questions that were asked about (None: all of the release): unjudged rates are
    over those of them that have labels.
    """

    scored: IntArray
    skipped: tuple[Skipped, ...]
    considered: IntArray | None = None


class MissingRankings(ValueError):
    """Runs have no ranking for questions that are to be scored; ``missing`` maps run -> question ids."""

    def __init__(self, missing: Mapping[str, Sequence[str]]) -> None:
        self.missing = {run: tuple(ids) for run, ids in missing.items()}
        parts = [f"run “{run}” has no ranking for {_some(ids)}" for run, ids in self.missing.items()]
        super().__init__(
            "; ".join(parts) + ". A missing ranking is not an empty one: import it, declare it empty, "
            "or score the common questions."
        )


def _some(ids: Sequence[str], most: int = 20) -> str:
    named = ", ".join(ids[:most]) + (", …" if len(ids) > most else "")
    return f"{len(ids)} question{'s' if len(ids) > 1 else ''} ({named})"


class RunScores(NamedTuple):
    """The scores of one run on one release.

    ``questions`` are the numbers of the scored questions, ``values`` their values (questions x measures) and
    ``means`` the macro averages (NaN where no question could be scored). ``ranked`` are the questions that
    the run ranks and the release has labels for; ``unjudged`` and ``inadmissible`` hold, for each depth ("5",
    "all"), counts with one number for each of these. ``unjudged_scored`` is the rate over the scored
    questions alone. ``curve`` is the unjudged rate at k = 1, 2, … to the longest ranking, at most
    CURVE_DEPTH. ``residuals`` holds RBP's residual for each scored question, by the measure's name.
    """

    measures: tuple[Measure, ...]
    questions: IntArray
    values: FloatArray
    means: FloatArray
    skipped: tuple[Skipped, ...]
    ranked: IntArray
    unjudged: dict[str, Unjudged]
    unjudged_scored: dict[str, float]
    inadmissible: dict[str, IntArray]
    residuals: dict[str, FloatArray]
    curve: FloatArray

    def column(self, measure: Measure) -> FloatArray:
        """Return the values of one measure, one a scored question."""
        return self.values[:, self.measures.index(measure)]


def plan_questions(
    truth: Truth,
    questions: Questions,
    measures: Sequence[Measure],
    rules: Rules,
    ranked: Mapping[str, IntArray],
    *,
    common: bool = False,
    considered: IntArray | None = None,
) -> Plan:
    """Return which questions are scored for all the runs; ``ranked`` maps each run to the questions it ranks.

    Left out and listed: unanswerable questions (a slice of their own), questions without a relevant label (at
    the highest threshold that a measure asks for), and with ``common`` those that a run does not rank.
    ``considered`` narrows the questions (to a split, say); the others are neither scored nor listed.
    Raises MissingRankings where a run lacks a question to be scored and ``common`` is false.
    """
    threshold = max([rules.threshold, *(measure.rel or 0 for measure in measures)])
    relevant = truth.rows_with_relevant(threshold)
    labelled = np.diff(truth.first)
    skipped: list[Skipped] = []
    candidates: list[int] = []
    for number in range(len(questions.ids)) if considered is None else considered.tolist():
        if not questions.answerable[number]:
            skipped.append(Skipped(number, "unanswerable: a slice of its own"))
        elif not labelled[number]:
            skipped.append(Skipped(number, "no label"))
        elif not relevant[number]:
            skipped.append(
                Skipped(number, f"no relevant label (none of {labelled[number]} at {threshold} or above)")
            )
        else:
            candidates.append(number)
    wanted = np.array(candidates, dtype=np.int64)
    missing = {run: np.setdiff1d(wanted, have) for run, have in ranked.items()}
    missing = {run: numbers for run, numbers in missing.items() if len(numbers)}
    if missing and not common:
        raise MissingRankings({run: [questions.ids[n] for n in numbers] for run, numbers in missing.items()})
    for run, numbers in missing.items():
        skipped += [
            Skipped(int(number), f"no ranking in run “{run}”") for number in np.intersect1d(wanted, numbers)
        ]
        wanted = np.setdiff1d(wanted, numbers)
    return Plan(wanted, tuple(sorted(skipped)), considered)


def score_run(
    truth: Truth,
    plan: Plan,
    rankings: Rankings,
    measures: Sequence[Measure],
    rules: Rules,
    *,
    inadmissible: BoolArray | None = None,
    truncated: BoolArray | None = None,
) -> RunScores:
    """Return the scores of one run on the planned questions. Raises UnjudgedError under the strict policy."""
    return score_graded(truth, plan, match(truth, rankings, inadmissible, truncated), measures, rules)


def score_graded(
    truth: Truth, plan: Plan, graded: Graded, measures: Sequence[Measure], rules: Rules
) -> RunScores:
    """Return the scores of a run that has already been matched; see `score_run`."""
    asked = tuple(measures)
    at = select(graded, _rows_of(graded.question, plan.scored))
    depth = None if any(m.k is None for m in asked) else max(m.k for m in asked if m.k is not None)
    ready = apply_policy(at, rules.policy, depth)
    values = question_values(truth, ready, asked, threshold=rules.threshold, gain=rules.gain, returned=at)
    labelled = np.diff(truth.first) > 0
    if plan.considered is not None:
        labelled &= np.isin(np.arange(len(labelled)), plan.considered)
    known = select(graded, np.flatnonzero(labelled[graded.question]))
    depths = {m.depth: m.k for m in asked}
    unjudged = count_unjudged_at(known, depths)
    return RunScores(
        measures=asked,
        questions=plan.scored,
        values=values,
        means=_means(values, asked, unjudged),
        skipped=plan.skipped,
        ranked=known.question,
        unjudged=unjudged,
        unjudged_scored={name: counts.rate for name, counts in count_unjudged_at(at, depths).items()},
        inadmissible=count_inadmissible_at(known, depths),
        curve=unjudged_by_depth(known, min(CURVE_DEPTH, int(np.diff(known.start).max(initial=0)))),
        residuals={m.name: rbp_residual(ready, m) for m in asked if m.family == "RBP"},
    )


def _means(values: FloatArray, measures: Sequence[Measure], unjudged: Mapping[str, Unjudged]) -> FloatArray:
    """Return the macro averages; Judged@k alone is counted over all chunks, like the unjudged rate."""
    if len(values) == 0:
        return np.full(len(measures), np.nan)
    means = values.mean(axis=0)
    for column, measure in enumerate(measures):
        if measure.family == "Judged":
            means[column] = 1.0 - unjudged[measure.depth].rate
    return means


def _rows_of(ranked: IntArray, wanted: IntArray) -> IntArray:
    """Return where each wanted question stands among the ranked ones. Raises KeyError if one is missing."""
    order = np.argsort(ranked, kind="stable")
    at = np.searchsorted(ranked[order], wanted)
    if len(wanted) and (at.max(initial=0) >= len(ranked) or (ranked[order][at] != wanted).any()):
        raise KeyError("a planned question has no ranking in this run")
    return order[at] if len(wanted) else np.empty(0, np.int64)

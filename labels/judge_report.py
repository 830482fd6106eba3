"""How an outside judge grades beside people: the figures, and in words how far it may stand in for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evalsets.models import EvalSet
from judging.models import Assessor
from labels.agreement import (
    RESAMPLES,
    Agreement,
    Coefficient,
    cohen_kappa,
    confusion_matrix,
    gwet_ac,
    krippendorff_alpha,
    measure_agreement,
    raw_agreement,
)
from labels.agreement_report import FEWEST, RELIABLE, TENTATIVE, Level, Verdict, percent, to_read
from labels.judge_grades import Graded, JudgeGrades
from labels.judge_measures import Bias, Flips, Relevance, bias_of, flips_of, relevance_of
from labels.rated_pairs import rated_pairs
from labels.ratings import Array

# What is said of a judge of each level, after its name.
IN_WORDS: dict[Level, str] = {
    "good": "grades much as people do.",
    "tentative": "grades roughly as people do: a second look, not a substitute.",
    "poor": "does not grade as people do; its grades cannot stand in for theirs.",
}
# A mean difference below this is not spoken of as a habit.
SLIGHT = 0.1
FURTHEST_SHOWN = 25


class RepetitionRow(NamedTuple):
    number: int
    graded: int
    kappa: Coefficient
    bias: Bias


class SliceRow(NamedTuple):
    name: str
    bias: Bias
    kappa: Coefficient


class GradeRow(NamedTuple):
    """The pairs of one grade: of people's, or of the judge's."""

    grade: int
    bias: Bias


class OtherJudge(NamedTuple):
    """Another judge over the pairs that both judges graded; the bias is this judge's grades less the other's."""

    judge: Assessor
    raw: Coefficient
    kappa: Coefficient
    bias: Bias


class FarPair(NamedTuple):
    question_id: int
    chunk_id: int
    judge: int
    people: int


@dataclass(frozen=True)
class JudgeSummary:
    """A judge at a glance: `graded` pairs, of which people labelled `bias.pairs`."""

    judge: Assessor
    repetitions: list[int]
    graded: int
    agreement: Agreement
    bias: Bias
    flips: Flips
    verdict: Verdict

    @property
    def in_words(self) -> str:
        """The verdict without the judge's name."""
        return (
            IN_WORDS.get(self.verdict.level, "too few pairs in common with people to say")
            .rstrip(".")
            .capitalize()
        )

    def as_json(self) -> dict[str, Any]:
        bias = self.bias
        return {
            "judge": self.judge.name,
            "repetitions": self.repetitions,
            "graded": self.graded,
            "graded_by_people_too": bias.pairs,
            "verdict": self.verdict.headline,
            "why": self.verdict.why,
            "read": self.verdict.read.as_json(),
            "coefficients": [item.as_json() for item in self.agreement.coefficients],
            "bias": {"mean": bias.mean, "too_high": bias.too_high, "too_low": bias.too_low},
            "flips": {
                "pairs": self.flips.pairs,
                "flipped": self.flips.flipped,
                "rate": self.flips.rate,
                "mean_size": self.flips.mean_size,
                "across_threshold": self.flips.across_threshold,
            },
        }


@dataclass(frozen=True)
class JudgeReport:
    """All that is said of a judge; `confusion` has a row a grade of the judge and a column a grade of people."""

    summary: JudgeSummary
    confusion: Array
    relevance: Relevance
    by_people_grade: list[GradeRow]
    by_own_grade: list[GradeRow]
    slices: list[SliceRow]
    repetitions: list[RepetitionRow]
    others: list[OtherJudge]
    furthest: list[FarPair]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.summary.as_json(),
            "confusion": self.confusion.tolist(),
            "relevant": {
                **self.relevance._asdict(),
                "precision": self.relevance.precision,
                "recall": self.relevance.recall,
            },
            "by_peoples_grade": [{"grade": row.grade, **row.bias._asdict()} for row in self.by_people_grade],
            "by_judges_grade": [{"grade": row.grade, **row.bias._asdict()} for row in self.by_own_grade],
            "slices": [
                {"slice": row.name, **row.bias._asdict(), "kappa": row.kappa.value} for row in self.slices
            ],
            "by_repetition": [
                {
                    "repetition": row.number,
                    "graded": row.graded,
                    **row.bias._asdict(),
                    "kappa": row.kappa.value,
                }
                for row in self.repetitions
            ],
            "other_judges": [
                {
                    "judge": row.judge.name,
                    **row.bias._asdict(),
                    "raw": row.raw.value,
                    "kappa": row.kappa.value,
                }
                for row in self.others
            ],
        }


def summarise(
    graded: Graded, said: JudgeGrades, *, grades: Sequence[int], threshold: int, resamples: int = RESAMPLES
) -> JudgeSummary:
    """The judge's figures over the pairs that people labelled too."""
    own = said.settled
    both = ~np.isnan(own) & ~np.isnan(graded.people)
    agreement = measure_agreement(
        np.column_stack([own[both], graded.people[both]]), grades, threshold, resamples
    )
    bias, flips = bias_of(own, graded.people), flips_of(said.grades, threshold)
    return JudgeSummary(
        judge=said.judge,
        repetitions=said.repetitions,
        graded=int((~np.isnan(own)).sum()),
        agreement=agreement,
        bias=bias,
        flips=flips,
        verdict=verdict_on(
            said.judge.name, agreement, bias, flips, relevance_of(own, graded.people, threshold)
        ),
    )


def report_on(
    graded: Graded,
    said: JudgeGrades,
    *,
    grades: Sequence[int],
    threshold: int,
    slices: Mapping[int, Sequence[str]],
) -> JudgeReport:
    """All figures of one judge. `slices` names those of each question, by Question.id."""
    own, people = said.settled, graded.people
    return JudgeReport(
        summary=summarise(graded, said, grades=grades, threshold=threshold),
        confusion=confusion_matrix(own, people, grades),
        relevance=relevance_of(own, people, threshold),
        by_people_grade=[
            GradeRow(grade, bias_of(own[people == grade], people[people == grade])) for grade in grades
        ],
        by_own_grade=[GradeRow(grade, bias_of(own[own == grade], people[own == grade])) for grade in grades],
        slices=_by_slice(graded, own, grades, slices),
        repetitions=[
            RepetitionRow(
                number,
                int((~np.isnan(column)).sum()),
                cohen_kappa(column, people, grades, "linear", resamples=0),
                bias_of(column, people),
            )
            for number, column in zip(said.repetitions, said.grades.T, strict=True)
        ],
        others=[
            OtherJudge(
                other.judge,
                raw_agreement(np.column_stack([own, theirs]), grades, resamples=0),
                cohen_kappa(own, theirs, grades, "linear", resamples=0),
                bias_of(own, theirs),
            )
            for other in graded.judges
            if other.judge != said.judge
            for theirs in [other.settled]
        ],
        furthest=_furthest(graded, own),
    )


def among_people(evalset: EvalSet, read: Coefficient) -> Coefficient | None:
    """The same coefficient of the people of the eval set among themselves; None below `FEWEST` pairs that two graded.

    No judge can be asked to agree with people more than people do.
    """
    rated = rated_pairs(evalset)
    if len(rated.pairs) < FEWEST:
        return None
    if read.name.startswith("Gwet"):
        return gwet_ac(rated.ratings, evalset.grades, "linear", resamples=0)
    return krippendorff_alpha(rated.ratings, evalset.grades, "ordinal", resamples=0)


def _by_slice(
    graded: Graded, own: Array, grades: Sequence[int], slices: Mapping[int, Sequence[str]]
) -> list[SliceRow]:
    """The slices with a pair that both graded, the one in which the judge is furthest off first."""
    rows = []
    for name in sorted({name for names in slices.values() for name in names}):
        within = np.isin(graded.questions, [pk for pk, names in slices.items() if name in names])
        bias = bias_of(own[within], graded.people[within])
        if bias.pairs:
            rows.append(
                SliceRow(
                    name, bias, cohen_kappa(own[within], graded.people[within], grades, "linear", resamples=0)
                )
            )
    return sorted(rows, key=lambda row: -abs(row.bias.mean or 0))


def _furthest(graded: Graded, own: Array) -> list[FarPair]:
    apart = np.nan_to_num(np.abs(own - graded.people))
    order = np.argsort(-apart, kind="stable")[:FURTHEST_SHOWN]
    return [
        FarPair(int(graded.questions[at]), int(graded.chunks[at]), int(own[at]), int(graded.people[at]))
        for at in order
        if apart[at] > 0
    ]


def verdict_on(name: str, agreement: Agreement, bias: Bias, flips: Flips, relevance: Relevance) -> Verdict:
    """Whether a judge that agrees with people like this may stand in for them, by the measure that fits their grades.

    The demands are those that people's agreement is held to.
    """
    read = to_read(agreement)
    value = read.value or 0.0
    if bias.pairs < FEWEST:
        few = f"{bias.pairs} pair{'' if bias.pairs == 1 else 's'}" if bias.pairs else "No pair"
        headline = f"Too early to say: {few} that both {name} and people have graded."
        why = [f"From {FEWEST} pairs on a verdict is given; let people judge a sample of what it graded."]
        return Verdict("unknown", headline, read, why + _of_flips(flips))
    level: Level = "good" if value >= RELIABLE else "tentative" if value >= TENTATIVE else "poor"
    why = [*_of_bias(bias), *_of_relevance(relevance), *_of_flips(flips)]
    return Verdict(level, f"{name} {IN_WORDS[level]}", read, why)


def _of_bias(bias: Bias) -> list[str]:
    if bias.mean is None or bias.right is None or bias.too_high is None or bias.too_low is None:
        return []
    habit = (
        "is neither stricter nor milder than people on average"
        if abs(bias.mean) < SLIGHT
        else f"is {'milder' if bias.mean > 0 else 'stricter'}: {abs(bias.mean):.2f} of a grade "
        f"{'above' if bias.mean > 0 else 'below'} people on average"
    )
    return [
        f"It {habit}; the same grade for {percent(bias.right)} of the pairs, too high for {percent(bias.too_high)}, "
        f"too low for {percent(bias.too_low)}."
    ]


def _of_relevance(relevance: Relevance) -> list[str]:
    said = []
    if relevance.precision is not None:
        called = relevance.both + relevance.judge_only
        said.append(
            f"Of the {called:,} pairs that it calls relevant, people find {percent(relevance.precision)} so."
        )
    if relevance.recall is not None:
        found = relevance.both + relevance.people_only
        said.append(f"Of the {found:,} that people find relevant, it misses {percent(1 - relevance.recall)}.")
    return said


def _of_flips(flips: Flips) -> list[str]:
    if flips.rate is None:
        return ["It was run once, so how often it changes its mind is not known."]
    if not flips.flipped:
        return [f"Run again, it gave the same grade to all {flips.pairs:,} pairs."]
    return [
        f"Run again, it changes its mind on {flips.flipped:,} of {flips.pairs:,} pairs ({flips.rate:.1%}), by "
        f"{flips.mean_size:.1f} grades on average; on {flips.across_threshold:,} of them about whether the chunk is "
        "relevant at all."
    ]

"""What is said of the agreement in an eval set or a batch: the figures, and in words what they allow one to believe."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from evalsets.models import EvalSet
from judging.models import Assessor, Batch
from labels.agreement import (
    Agreement,
    Coefficient,
    cohen_kappa,
    confusion_matrix,
    confusion_of_all,
    gwet_ac,
    measure_agreement,
    raw_agreement,
)
from labels.rated_pairs import RatedPairs, rated_pairs
from labels.ratings import Array

# Krippendorff's usual demands: from the first on conclusions may be drawn, from the second on tentative ones.
RELIABLE, TENTATIVE = 0.8, 2 / 3
# With fewer pairs the interval is too wide to say anything.
FEWEST = 30
# From this share of one grade on, kappa and alpha say more of that grade's share than of the people.
SKEWED = 0.8
# Where fewer of the pairs that anybody found relevant are so for all, what is relevant is in dispute; said from so many
# such pairs on.
DISPUTED, FEWEST_RELEVANT = 0.4, 10
# Parts in which drift is shown: so many at most, none smaller than the second.
PARTS, SMALLEST_PART = 10, 20
# Of two assessors each; beyond this the ones who share the most pairs.
TWOS_SHOWN = 30

Level = Literal["unknown", "good", "tentative", "poor"]


@dataclass(frozen=True)
class Verdict:
    """Can the judgments be trusted? `read` is the coefficient to read, `why` says why that one and what to mind."""

    level: Level
    headline: str
    read: Coefficient
    why: list[str]


@dataclass(frozen=True)
class AgainstRest:
    """One assessor beside all others who graded the same pairs; a two is one grade of theirs and one of another's.

    `higher` is by how much their grade is above the others' on average.
    """

    assessor: Assessor
    pairs: int
    twos: int
    raw: Coefficient
    ac2: Coefficient
    higher: float

    @property
    def higher_signed(self) -> str:
        return f"{self.higher:+.2f}".replace("-", "−")


@dataclass(frozen=True)
class Two:
    """Two assessors over the pairs that both graded."""

    first: Assessor
    second: Assessor
    pairs: int
    raw: Coefficient
    kappa: Coefficient
    weighted: Coefficient
    ac2: Coefficient


@dataclass(frozen=True)
class Part:
    """A stretch of time: the pairs whose last grade came in then."""

    begins: datetime.datetime
    ends: datetime.datetime
    pairs: int
    raw: Coefficient
    ac2: Coefficient


@dataclass(frozen=True)
class AgreementReport:
    """`confusion` has a row and a column a grade: of two assessors the first's and the second's; of more, each two
    grades of a pair stand in the row of the lower and the column of the higher one."""

    evalset: EvalSet
    batch: Batch | None
    rated: RatedPairs
    agreement: Agreement
    verdict: Verdict | None
    confusion: Array
    against_rest: list[AgainstRest]

    def __getstate__(self) -> dict[str, Any]:
        """A report that is kept has everything worked out, and leaves the pairs themselves behind."""
        worked_out = {"_most_shared": self._most_shared, "parts": self.parts}
        return {**self.__dict__, **worked_out, "rated": None}

    @property
    def twos(self) -> list[Two]:
        """The two assessors each who share the most pairs; none where there are only two, who are all there is."""
        return self._most_shared[0]

    @property
    def twos_left_out(self) -> int:
        """How many more such twos there are."""
        return self._most_shared[1]

    @cached_property
    def _most_shared(self) -> tuple[list[Two], int]:
        return ([], 0) if len(self.rated.assessors) == 2 else _twos(self.rated, self.evalset.grades)

    @cached_property
    def parts(self) -> list[Part]:
        """Earlier pairs and later ones."""
        return _parts(self.rated, self.evalset.grades)

    def as_json(self) -> dict[str, Any]:
        said, verdict = self.agreement, self.verdict
        return {
            "evalset": self.evalset.slug,
            "batch": self.batch.name if self.batch else None,
            "pairs": said.items,
            "judgments": said.ratings,
            "assessors": said.raters,
            "given": list(said.given),
            "reading": verdict.level if verdict else None,
            "verdict": verdict.headline if verdict else None,
            "why": verdict.why if verdict else [],
            "read": verdict.read.name if verdict else None,
            "coefficients": [coefficient.as_json() for coefficient in said.coefficients],
            "relevant_overlap": {
                "all": said.overlap.all_of,
                "any": said.overlap.any_of,
                "share": said.overlap.share,
                "threshold": self.evalset.threshold,
            },
            "confusion": self.confusion.tolist(),
            "against_rest": [
                {
                    "assessor": row.assessor.name,
                    "pairs": row.pairs,
                    "raw": row.raw.value,
                    "ac2": row.ac2.value,
                    "higher": row.higher,
                }
                for row in self.against_rest
            ],
            "drift": [
                {
                    "begins": part.begins.isoformat(),
                    "ends": part.ends.isoformat(),
                    "pairs": part.pairs,
                    "raw": part.raw.value,
                    "ac2": part.ac2.value,
                }
                for part in self.parts
            ],
        }


def report_agreement(evalset: EvalSet, batch: Batch | None = None) -> AgreementReport:
    """Measure the agreement of the people of an eval set, or within one batch."""
    rated = rated_pairs(evalset, batch)
    said = measure_agreement(rated.ratings, evalset.grades, evalset.threshold)
    two = len(rated.assessors) == 2
    confusion = (
        confusion_matrix(rated.ratings[:, 0], rated.ratings[:, 1], evalset.grades)
        if two
        else confusion_of_all(rated.ratings, evalset.grades)
    )
    return AgreementReport(
        evalset=evalset,
        batch=batch,
        rated=rated,
        agreement=said,
        verdict=verdict_on(said, evalset) if rated.pairs else None,
        confusion=confusion,
        against_rest=_against_rest(rated, evalset.grades),
    )


def is_skewed(said: Agreement) -> bool:
    """Whether one grade prevails so far that kappa and alpha collapse."""
    return (said.commonest_share or 0.0) >= SKEWED


def to_read(said: Agreement) -> Coefficient:
    """The coefficient that fits how the grades are spread."""
    return said.ac2 if is_skewed(said) or said.alpha.value is None else said.alpha


def verdict_on(said: Agreement, evalset: EvalSet) -> Verdict:
    """Whether judgments that agree like this can be trusted, and which coefficient says so."""
    share = said.commonest_share or 0.0
    skewed = is_skewed(said)
    read = to_read(said)
    value = read.value or 0.0
    why = [_why_this_one(said, read, share, skewed)]
    level: Level
    if said.items < FEWEST:
        level, headline = "unknown", f"Too few pairs to say: {said.items} with two judgments or more."
        why.append(f"From {FEWEST} pairs on a verdict is given; a hundred make a useful one.")
        return Verdict(level, headline, read, why)
    overlap = said.overlap.share
    disputed = overlap is not None and overlap < DISPUTED and said.overlap.any_of >= FEWEST_RELEVANT
    if value >= TENTATIVE and skewed and disputed:
        level = "tentative"
        headline = "What is not relevant can be trusted; what is relevant is in dispute."
    elif value >= RELIABLE:
        level, headline = "good", "The judgments can be trusted."
    elif value >= TENTATIVE:
        level, headline = "tentative", "The judgments carry careful conclusions only."
    else:
        level, headline = "poor", "The judgments cannot be trusted as they are."
        why.append("Read pairs that differ together, sharpen the rubric where they do, and judge again.")
    if read.low is not None and level in ("good", "tentative"):
        least = RELIABLE if value >= RELIABLE else TENTATIVE
        if read.low < least:
            why.append(
                f"The interval reaches down to {read.low:.2f}: more pairs judged twice would make it sure."
            )
    why.append(_of_relevant(said, evalset))
    return Verdict(level, headline, read, why)


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _why_this_one(said: Agreement, read: Coefficient, share: float, skewed: bool) -> str:
    grade = said.given.index(max(said.given))
    if said.alpha.value is None:
        return (
            f"Every judgment is grade {grade}, so kappa and alpha are undefined. AC2 is the one to read; but "
            "that people tell grades apart alike is not shown."
        )
    if skewed:
        kappa = said.cohen if said.cohen.value is not None else said.fleiss
        so = "holds all the same" if (kappa.value or 0) >= RELIABLE else "collapses over a few differences"
        return (
            f"{percent(share)} of the judgments are grade {grade}, and people agree in "
            f"{percent(said.raw.value or 0)}. As kappa takes chance, that alone would agree in "
            f"{percent(kappa.chance or 0)}, and kappa {so} (it is {kappa.value or 0:.2f}). AC1 and AC2 stand "
            f"such a share: AC2, which also counts near misses, is the one to read: {read.value or 0:.2f}."
        )
    return (
        f"No grade prevails (the commonest, {grade}, is {percent(share)} of the judgments), so Krippendorff's "
        f"ordinal alpha is the one to read: {read.value or 0:.2f}."
    )


def _of_relevant(said: Agreement, evalset: EvalSet) -> str:
    overlap = said.overlap
    if overlap.share is None:
        return f"Nobody found any of these pairs relevant (grade {evalset.threshold} or more)."
    little = " That is little to go by." if overlap.any_of < FEWEST_RELEVANT else ""
    return (
        f"Of the {overlap.any_of} pairs that anybody found relevant (grade {evalset.threshold} or more), all "
        f"who graded them did in {overlap.all_of} ({percent(overlap.share)}).{little} Among TREC "
        "assessors this overlap was 42 to 49 %, and the order of systems held all the same (Voorhees 2000)."
    )


def _against_rest(rated: RatedPairs, grades: range) -> list[AgainstRest]:
    rows = []
    for place, assessor in enumerate(rated.assessors):
        graded = rated.ratings[~np.isnan(rated.ratings[:, place])]
        others = np.delete(graded, place, axis=1)
        mine = np.broadcast_to(graded[:, [place]], others.shape)
        both = ~np.isnan(others)
        twos = np.column_stack([mine[both], others[both]])
        rows.append(
            AgainstRest(
                assessor=assessor,
                pairs=len(graded),
                twos=len(twos),
                raw=raw_agreement(twos, grades, resamples=0),
                ac2=gwet_ac(twos, grades, "linear"),
                higher=float((twos[:, 0] - twos[:, 1]).mean()),
            )
        )
    return rows


def _twos(rated: RatedPairs, grades: range) -> tuple[list[Two], int]:
    """The two assessors each who share the most pairs, and how many more there are."""
    given = ~np.isnan(rated.ratings)
    shared = given.T.astype(int) @ given.astype(int)
    places = itertools.combinations(range(len(rated.assessors)), 2)
    found = sorted((place for place in places if shared[place]), key=lambda place: -shared[place])
    rows = []
    for first, second in found[:TWOS_SHOWN]:
        columns = rated.ratings[:, [first, second]]
        rows.append(
            Two(
                first=rated.assessors[first],
                second=rated.assessors[second],
                pairs=int(shared[first, second]),
                raw=raw_agreement(columns, grades, resamples=0),
                kappa=cohen_kappa(columns[:, 0], columns[:, 1], grades, resamples=0),
                weighted=cohen_kappa(columns[:, 0], columns[:, 1], grades, "linear", resamples=0),
                ac2=gwet_ac(columns, grades, "linear", resamples=0),
            )
        )
    return rows, len(found) - len(rows)


def _parts(rated: RatedPairs, grades: range) -> list[Part]:
    """The pairs in equal parts, in the order in which their last grades came in; none where there are too few."""
    number = min(PARTS, len(rated.pairs) // SMALLEST_PART)
    if number < 2:
        return []
    rows = []
    for places in np.array_split(np.arange(len(rated.pairs)), number):
        rows.append(
            Part(
                begins=rated.pairs[places[0]].complete_at,
                ends=rated.pairs[places[-1]].complete_at,
                pairs=len(places),
                raw=raw_agreement(rated.ratings[places], grades, resamples=0),
                ac2=gwet_ac(rated.ratings[places], grades, "linear"),
            )
        )
    return rows

"""Required-fact coverage and abstention: numbers of their own beside recall, each with its denominator."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scoring.classes import NO_GROUPS, BoolArray, Groups, Rankings


class Coverage(NamedTuple):
    """Which of a question's required facts the final list supports."""

    question: int
    supported: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def required(self) -> int:
        return len(self.supported) + len(self.missing)

    @property
    def share(self) -> float:
        return len(self.supported) / self.required


def fact_coverage(
    facts: Mapping[int, Sequence[str]],
    support: Mapping[tuple[int, int], Iterable[str]],
    rankings: Rankings,
    *,
    k: int | None = None,
    classes: Groups = NO_GROUPS,
    excluded: BoolArray | None = None,
) -> list[Coverage]:
    """Return the coverage of each question that requires facts, in the order of the numbers.

    ``facts`` maps a question to its required facts, ``support`` a question/chunk pair to the facts that the
    chunk supports. A fact is supported by one chunk of the first k (None: all), or by any copy of it in the
    chunk's class. ``excluded`` flags entries that support nothing (truncated, inadmissible).
    A question without required facts is left out; one whose ranking is missing raises
    KeyError.
    """
    by_unit: dict[tuple[int, int], set[str]] = {}
    units_of = classes.of(np.array([chunk for _, chunk in support], dtype=np.int64)).tolist()
    for (question, _), unit, found in zip(support, units_of, support.values(), strict=True):
        by_unit.setdefault((question, unit), set()).update(found)
    result = []
    for question in sorted(facts):
        required = list(dict.fromkeys(facts[question]))
        if not required:
            continue
        entries = rankings.slice_of(question)
        chunks = rankings.chunk[entries][:k]
        if excluded is not None:
            chunks = chunks[~excluded[entries][:k]]
        units = set(classes.of(chunks).tolist())
        held = set().union(*(by_unit.get((question, unit), set()) for unit in units))
        result.append(
            Coverage(
                question,
                tuple(fact for fact in required if fact in held),
                tuple(fact for fact in required if fact not in held),
            )
        )
    return result


def mean_coverage(coverage: Sequence[Coverage]) -> float | None:
    """Return the mean share over the questions that require facts; None where none does."""
    return sum(one.share for one in coverage) / len(coverage) if coverage else None


class Abstention(NamedTuple):
    """How often a system abstained, on unanswerable questions (rightly) and on answerable ones (wrongly).

    Only questions for which the run reports it are counted. An empty ranking is not abstention.
    """

    unanswerable: int
    abstained: int
    answerable: int
    wrongly_abstained: int

    @property
    def rate(self) -> float | None:
        """Return the share of unanswerable questions on which it abstained; None where there is none."""
        return self.abstained / self.unanswerable if self.unanswerable else None

    @property
    def wrong_rate(self) -> float | None:
        """Return the share of answerable questions on which it abstained; None where there is none."""
        return self.wrongly_abstained / self.answerable if self.answerable else None


def abstention(answerable: Sequence[bool], abstained: Mapping[int, bool]) -> Abstention:
    """Return the counts; ``abstained`` maps each question for which the run reports it to what it reports."""
    on_unanswerable = [said for question, said in abstained.items() if not answerable[question]]
    on_answerable = [said for question, said in abstained.items() if answerable[question]]
    return Abstention(len(on_unanswerable), sum(on_unanswerable), len(on_answerable), sum(on_answerable))


class UnanswerableSlice(NamedTuple):
    """What a run returned for the unanswerable questions, where recall and nDCG say nothing."""

    n: int
    returned_nothing: int
    mean_returned: float


def unanswerable_slice(
    answerable: Sequence[bool], rankings: Rankings, k: int | None = None, only: Container[int] | None = None
) -> UnanswerableSlice:
    """Return how many chunks (within k) the run returned for each unanswerable question (of `only`) that it ranks."""
    lengths = [
        int(length) if k is None else min(int(length), k)
        for question, length in zip(rankings.question.tolist(), rankings.lengths.tolist(), strict=True)
        if not answerable[question] and (only is None or question in only)
    ]
    n = len(lengths)
    return UnanswerableSlice(n, sum(length == 0 for length in lengths), sum(lengths) / n if n else 0.0)

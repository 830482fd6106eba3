"""Comparing two runs: whether that may be done, what moved, and one sentence that says it.

Differences are always "B less A": positive where B is better.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from scoring.classes import FloatArray, IntArray, Rankings
from scoring.resampling import RESAMPLES, SEED, bootstrap_interval, randomisation_p
from scoring.scores import Questions

ReadingWord = Literal["meaningful", "uninterpretable", "relabel"]

#: Unjudged rates up to this are low.
LOW_RATE = 0.10
#: A rate this many times the other makes the runs unequal even where both are high.
SEVERAL_TIMES = 3.0
#: Below these, a slice's mean says little about anything, or about modest effects.
FEW_QUESTIONS = 50
ENOUGH_QUESTIONS = 300
#: What must be the same in two runs for their difference to be the retriever's.
FROZEN = ("corpus_snapshot", "chunker", "permission_scope", "k")

# Differences below this are rounding in the last digits of a mean, not a win.
_TIE = 1e-12


class ComparisonRefused(ValueError):
    """The two runs cannot be compared at all: one did not run, or both are one."""


class Reading(NamedTuple):
    """Whether the difference may be read, the reasons, each a sentence, and what has to be done first ("": nothing)."""

    word: ReadingWord
    why: tuple[str, ...]
    remedy: str = ""


class Missing(NamedTuple):
    """How many different pairs two runs return within the depth that are unjudged; how many of these are contested."""

    pairs: int = 0
    contested: int = 0

    @property
    def only_contested(self) -> bool:
        """Whether people have judged all of it, and only differ."""
        return 0 < self.pairs == self.contested

    @property
    def remedy(self) -> str:
        """What has to be done before such a comparison may be read, as a sentence."""
        pairs = f"{self.contested:,} contested pair{'s' if self.contested > 1 else ''}"
        if self.only_contested:
            return f"Settle the {pairs} first."
        if self.contested:
            return f"Judge the remainder and settle the {pairs} first."
        return "Judge the remainder first."


NOTHING_KNOWN = Missing()


class PoolMembership(NamedTuple):
    """How deep a run was pooled for the release; None: it was in none of its pools."""

    run: str
    depth: int | None


class Paired(NamedTuple):
    """The paired comparison of one measure; ``difference`` is the mean of B less A over ``n`` questions."""

    n: int
    wins: int
    losses: int
    ties: int
    difference: float
    interval: tuple[float, float]
    p: float
    seed: int
    resamples: int

    @property
    def straddles_zero(self) -> bool:
        return self.interval[0] <= 0.0 <= self.interval[1]


class Change(NamedTuple):
    """One question's value under A and under B."""

    question: int
    a: float
    b: float


class SliceChange(NamedTuple):
    """The comparison within one slice; ``warning`` is empty where n is large enough."""

    name: str
    paired: Paired
    warning: str


def refuse_if_not_run(name_a: str, a: Rankings, name_b: str, b: Rankings) -> None:
    """Raise ComparisonRefused where a run returned nothing at all or is identical to the other."""
    for name, run in ((name_a, a), (name_b, b)):
        if len(run.chunk) == 0:
            raise ComparisonRefused(f"run “{name}” returned nothing for any question: it did not run")
    if identical(a, b):
        raise ComparisonRefused(
            f"runs “{name_a}” and “{name_b}” hold the same rankings, chunk for chunk: one of them did not run"
        )


def identical(a: Rankings, b: Rankings) -> bool:
    """Return whether two runs rank the same questions with the same chunks in the same order."""
    if len(a.question) != len(b.question) or len(a.chunk) != len(b.chunk):
        return False
    order_a, order_b = np.argsort(a.question), np.argsort(b.question)
    if not np.array_equal(a.question[order_a], b.question[order_b]):
        return False
    if not np.array_equal(a.lengths[order_a], b.lengths[order_b]):
        return False
    if np.array_equal(order_a, order_b):
        return bool(np.array_equal(a.chunk, b.chunk))
    return all(np.array_equal(a.of(q), b.of(q)) for q in a.question.tolist())


def read(
    rate_a: float,
    rate_b: float,
    *,
    depth: str,
    missing: Missing = NOTHING_KNOWN,
    pooled: Sequence[PoolMembership] = (),
    differences: Sequence[str] = (),
    low: float = LOW_RATE,
) -> Reading:
    """Return whether the difference may be read, from the two unjudged rates at the depth ("5" or "all").

    Both low: meaningful. One low and the other high, or one several times the other: uninterpretable. Both
    high: relabel. `missing` tells what has to be done then. Which pools the runs were in and what their
    configurations differ in is told, not decided on.
    """
    at = "unjudged" if depth == "all" else f"unjudged@{depth}"
    rates = f"{at} is {percent(rate_a)} for A and {percent(rate_b)} for B"
    smaller, larger = sorted((rate_a, rate_b))
    word: ReadingWord
    if larger <= low:
        word, cause = "meaningful", f"both are low (at most {percent(low)})."
    elif smaller <= low or larger >= SEVERAL_TIMES * smaller:
        outside = "B" if rate_b > rate_a else "A"
        word = "uninterpretable"
        cause = (
            f"{outside} stands largely outside what was judged. It was not evaluated but penalised "
            "for being different."
        )
    else:
        word = "relabel"
        cause = "both are high. The pool is too small or the corpus changed."
    remedy = "" if word == "meaningful" else missing.remedy
    if remedy and missing.only_contested:
        cause = "people differ on all of these pairs, and a contested pair has no label."
    why = f"{rates}: {cause} {remedy}".rstrip()
    return Reading(word, (why, *_pool_notes(pooled, depth), *differences), remedy)


def _pool_notes(pooled: Sequence[PoolMembership], depth: str) -> list[str]:
    notes = []
    for run, pooled_to in pooled:
        if pooled_to is None:
            notes.append(f"Run “{run}” is in no pool of this release.")
        elif depth == "all":
            notes.append(
                f"Run “{run}” was pooled to depth {pooled_to}, and the measure looks at the whole ranking."
            )
        elif pooled_to < int(depth):
            notes.append(
                f"Run “{run}” was pooled only to depth {pooled_to}, less than the measure's {depth}."
            )
    return notes


def configuration_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each recorded setting that must be frozen and is not the same in both runs."""
    sentences = []
    for key in FROZEN:
        if a.get(key) != b.get(key):
            sentences.append(
                f"{key.replace('_', ' ')} differs: {_setting(a, key)} for A, {_setting(b, key)} for B."
            )
    return sentences


def _setting(config: Mapping[str, Any], key: str) -> str:
    return "not recorded" if config.get(key) is None else f"“{config[key]}”"


def pair_by_question(
    ids_a: Sequence[str], values_a: Sequence[float], ids_b: Sequence[str], values_b: Sequence[float]
) -> tuple[list[str], FloatArray, FloatArray]:
    """Return the ids that both have, in A's order, and both values of each: pairs are joined by id, never by
    row.

    Raises ValueError where an id comes twice.
    """
    of_b = dict(zip(ids_b, values_b, strict=True))
    of_a = dict(zip(ids_a, values_a, strict=True))
    if len(of_a) != len(ids_a) or len(of_b) != len(ids_b):
        raise ValueError("a question id comes twice in one list of scores")
    both = [question for question in ids_a if question in of_b]
    return both, np.array([of_a[q] for q in both]), np.array([of_b[q] for q in both])


def paired(a: FloatArray, b: FloatArray, *, seed: int = SEED, resamples: int = RESAMPLES) -> Paired:
    """Return the comparison of two equally long arrays of per-question values, paired by place.

    Raises ValueError where there is no question.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values of A and {len(b)} of B are not pairs")
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    differences[np.abs(differences) < _TIE] = 0.0
    low, high = bootstrap_interval(differences, seed=seed, resamples=resamples)
    return Paired(
        n=len(differences),
        wins=int((differences > 0).sum()),
        losses=int((differences < 0).sum()),
        ties=int((differences == 0).sum()),
        difference=float(differences.mean()),
        interval=(low, high),
        p=randomisation_p(differences, seed=seed, resamples=resamples),
        seed=seed,
        resamples=resamples,
    )


def regressions(questions: IntArray, a: FloatArray, b: FloatArray) -> list[Change]:
    """Return the questions that got worse, the largest loss first (then by number)."""
    changes = [Change(*row) for row in zip(questions.tolist(), a.tolist(), b.tolist(), strict=True)]
    worse = [change for change in changes if change.a - change.b > _TIE]
    return sorted(worse, key=lambda change: (change.b - change.a, change.question))


def by_slice(
    questions: Questions,
    scored: IntArray,
    a: FloatArray,
    b: FloatArray,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> list[SliceChange]:
    """Return the comparison within each slice that has a scored question, by the slice's name."""
    members: dict[str, list[int]] = {}
    for place, number in enumerate(scored.tolist()):
        for name in questions.slices[number]:
            members.setdefault(name, []).append(place)
    result = []
    for name in sorted(members):
        at = np.array(members[name])
        within = paired(a[at], b[at], seed=seed, resamples=resamples)
        result.append(SliceChange(name, within, few_questions(within.n)))
    return result


def few_questions(n: int) -> str:
    """Return the warning that n questions deserve, or nothing."""
    if n < FEW_QUESTIONS:
        return f"only {n} question{'s' if n > 1 else ''}: few for any conclusion (below {FEW_QUESTIONS})"
    if n < ENOUGH_QUESTIONS:
        return f"{n} questions: too few to see modest effects (below {ENOUGH_QUESTIONS})"
    return ""


def notes(result: Paired) -> list[str]:
    """Return what must be said about the numbers so that nobody reads more into them."""
    said = []
    if result.straddles_zero:
        said.append(
            "The interval straddles zero: the difference is indistinguishable from noise on this set."
        )
    moved = result.wins + result.losses
    if moved and not result.straddles_zero and abs(result.wins - result.losses) <= max(1, 0.1 * moved):
        said.append("Wins and losses are about equal, yet the mean moved: few questions moved it.")
    return said


def regression_shown(result: Paired, margin: float = 0.0) -> bool:
    """Return whether B is worse than A by more than the margin: the whole interval lies below -margin."""
    return result.interval[1] < -margin


def resolution(interval: Sequence[float]) -> float:
    """Return half the width of the interval (low, high) between two runs of one unchanged system.

    Changes smaller than this are invisible on this set of questions.
    """
    low, high = interval
    return (high - low) / 2


def sentence(
    measure: str,
    depth: str,
    result: Paired,
    rates: tuple[float, float],
    reading: Reading,
    worse: Sequence[Change],
    questions: Questions,
) -> str:
    """Return the one sentence that may be pasted into a report; it says so where nothing may be concluded."""
    at = "unjudged" if depth == "all" else f"unjudged@{depth}"
    text = (
        f"{measure} improved on {result.wins} of {result.n} questions and regressed on {result.losses}; "
        f"bootstrapped 95 % interval on the paired difference {signed(result.interval[0])} to "
        f"{signed(result.interval[1])}; {at} {percent(rates[0])} and {percent(rates[1])}"
    )
    text += _where(worse, questions) + "."
    if reading.word == "uninterpretable":
        return f"Not to be read as a difference in quality: {text} {reading.remedy}"
    if reading.word == "relabel":
        return (
            f"Not to be read at all: {text} Too much of what both runs return is unjudged. {reading.remedy}"
        )
    return text


def _where(worse: Sequence[Change], questions: Questions) -> str:
    """Name the slice that holds most of the regressions, where one holds more than half."""
    counts: dict[str, int] = {}
    for change in worse:
        for name in questions.slices[change.question]:
            counts[name] = counts.get(name, 0) + 1
    if not counts:
        return ""
    name = min(counts, key=lambda slice_name: (-counts[slice_name], slice_name))
    if 2 * counts[name] <= len(worse):
        return ""
    if len(worse) == 1:
        return f"; the one regression is in slice {name}"
    if counts[name] == len(worse):
        return f"; all {len(worse)} regressions are in slice {name}"
    return f"; {counts[name]} of the {len(worse)} regressions are in slice {name}"


def percent(rate: float) -> str:
    """Return a rate as a percentage: one decimal where a whole number would hide it, never a false 0 or 100."""
    if 0 < rate < 0.0005:
        return "under 0.1 %"
    if 0.9995 < rate < 1:
        return "over 99.9 %"
    return f"{100 * rate:.1f}".removesuffix(".0") + " %"


def signed(value: float) -> str:
    """Return a difference with its sign, to two decimals, or three where two would show nothing."""
    text = f"{value:+.2f}" if abs(value) >= 0.005 or value == 0 else f"{value:+.3f}"
    return "0.00" if float(text) == 0 else text

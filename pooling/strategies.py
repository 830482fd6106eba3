"""Strategies: which pairs of a union of rankings are pooled, and in which order. Pure arithmetic over arrays.

A strategy is a function `(Pairs, parameters, lots) -> Selection`. It sees what the runs returned, and one lot a pair to
draw by, and nothing else, so the same rankings give the same pool for ever; what is judged already is subtracted
afterwards. `STRATEGIES` names them all. Those that go by the grades while people judge pool the whole union here; the
order they give is in `pooling.adaptive`. Questions of a slice are numbered from 0, runs by their position in the pool,
ranks from 1, chunks by `Chunk.id`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pooling.adaptive import ADAPTIVE

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

# A returned chunk is packed into one 64-bit number: question, chunk, and its place among all that was returned.
# A plain sort of such numbers is several times faster than an argsort of three columns.
_PLACE_BITS = 22
_CHUNK_BITS = 31
MAX_RETURNS = 2**_PLACE_BITS
MAX_QUESTIONS = 2 ** (64 - _CHUNK_BITS - _PLACE_BITS)

# Fused scores are whole numbers of this unit: sums of floats would depend on the order of the runs.
_UNIT = 2**40
RRF_CONSTANT = 60


@dataclass(frozen=True)
class Returns:
    """What several runs returned for a slice of questions: one entry a chunk, for each question by rising run.

    They are united in less time where all of one question come together, by rising question.
    """

    question: npt.NDArray[np.integer]
    chunk: npt.NDArray[np.integer]
    run: npt.NDArray[np.integer]
    rank: npt.NDArray[np.integer]
    score: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Pairs:
    """The union: each question/chunk pair once, by question and chunk, with who returned it.

    The returns of pair i are the entries `starts[i]:starts[i + 1]` of `run` (rising), `rank` and `score`.
    """

    key: Keys  # question and chunk in one number, rising; see `pair_keys`
    starts: Ints
    run: npt.NDArray[np.integer]
    rank: npt.NDArray[np.integer]
    score: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.key)

    @property
    def question(self) -> Ints:
        return split_keys(self.key)[0].astype(np.int64)

    @property
    def chunk(self) -> Ints:
        return split_keys(self.key)[1].astype(np.int64)

    @property
    def return_counts(self) -> Ints:
        """How many runs returned each pair."""
        return np.diff(self.starts)

    @property
    def first_run(self) -> npt.NDArray[np.integer]:
        """The first run, by position, that returned each pair."""
        return self.run[self.starts[:-1]]

    @property
    def best_rank(self) -> Ints:
        """The highest place, from 1, at which any run returned each pair."""
        best = np.minimum.reduceat(self.rank, self.starts[:-1]) if len(self) else self.rank
        return best.astype(np.int64)


@dataclass(frozen=True)
class Selection:
    """What a strategy decides, by pair: whether it is pooled, and how early it is to be judged.

    `priority` None: the order says nothing, so assessors meet the pairs shuffled. Otherwise the highest comes first.
    `chance` None: nothing was drawn by lot. Otherwise the probability, 0 to 1, with which each pair was to be taken; a
    pair of some chance that was not taken is pooled and stays unjudged on purpose.
    """

    taken: Flags
    priority: Ints | None = None
    chance: Floats | None = None

    @property
    def unsampled(self) -> Flags:
        """Which pairs are pooled, but were not drawn."""
        return np.zeros_like(self.taken) if self.chance is None else ~self.taken & (self.chance > 0)


def pair_keys(question: npt.ArrayLike, chunk: npt.ArrayLike) -> Keys:
    """One number a pair, ordered by question, then chunk."""
    questions = np.asarray(question).astype(np.uint64)
    return (questions << np.uint64(_CHUNK_BITS)) | np.asarray(chunk).astype(np.uint64)


def split_keys(keys: Keys) -> tuple[Keys, Keys]:
    """Question and chunk of each of `pair_keys`."""
    return keys >> np.uint64(_CHUNK_BITS), keys & np.uint64(2**_CHUNK_BITS - 1)


def union(returns: Returns) -> Pairs:
    """The distinct pairs of what was returned.

    Raises ValueError for more than `MAX_RETURNS` entries or `MAX_QUESTIONS` questions: work in slices of questions.
    """
    count = len(returns.chunk)
    if count > MAX_RETURNS:
        raise ValueError(f"{count:,} returned chunks in one slice; at most {MAX_RETURNS:,} fit")
    if count and int(returns.question.max()) >= MAX_QUESTIONS:
        raise ValueError(f"more than {MAX_QUESTIONS:,} questions in one slice")
    packed = pair_keys(returns.question, returns.chunk) << np.uint64(_PLACE_BITS)
    packed |= np.arange(count, dtype=np.uint64)
    steps = np.diff(returns.question)
    if (steps >= 0).all():
        # Many short sorts take half the time of a long one.
        for of_question in np.split(packed, np.flatnonzero(steps) + 1):
            of_question.sort()
    else:
        packed.sort()
    place = (packed & np.uint64(MAX_RETURNS - 1)).astype(np.intp)
    packed >>= np.uint64(_PLACE_BITS)
    is_first = np.ones(count, dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    return Pairs(
        key=packed[starts],
        starts=np.append(starts, count).astype(np.int64),
        run=returns.run[place],
        rank=returns.rank[place],
        score=None if returns.score is None else returns.score[place],
    )


def is_among(keys: Keys, others: Keys) -> Flags:
    """Which of `keys` occur in `others`; both sorted."""
    if not len(others):
        return np.zeros(len(keys), dtype=bool)
    at = np.searchsorted(others, keys)
    at[at == len(others)] = 0
    return others[at] == keys


# Strategies


def depth(pairs: Pairs, parameters: Mapping[str, Any], lots: Keys) -> Selection:
    """Everything in the union of the top k: the pool of TREC.

    Source: K. Spärck Jones and C. J. van Rijsbergen, Report on the need for and provision of an "ideal" information
    retrieval test collection, 1975.
    """
    return Selection(taken=np.ones(len(pairs), dtype=bool))


def budget(pairs: Pairs, parameters: Mapping[str, Any], lots: Keys) -> Selection:
    """At most `budget` pairs a question: the first ones in fused order.

    `fusion` names the order (`FUSIONS`). Pairs of equal fused score are taken by their best rank, then by a fixed
    mixing of the chunk's number: the number itself rises with the time of import, so it would favour the older run.
    `order` "fused" hands the pairs out in that order too; "shuffled", the default, reveals nothing to assessors.

    Source: G. V. Cormack, C. R. Palmer and C. L. A. Clarke, Efficient construction of large test collections, SIGIR
    1998 (fixed budgets); fusion for pooling: A. Moffat, W. Webber and J. Zobel, Strategic system comparisons via
    targeted relevance judgments, SIGIR 2007.
    """
    fused = FUSIONS[parameters["fusion"]](pairs)
    question = pairs.question
    order = np.lexsort((mixed(pairs.chunk.astype(np.uint64), seed=0), pairs.best_rank, -fused, question))
    place = np.empty(len(pairs), dtype=np.int64)
    place[order] = np.arange(len(pairs))
    place -= np.searchsorted(question, question)  # from 0 within the question
    return Selection(
        taken=place < parameters["budget"], priority=-place if parameters["order"] == "fused" else None
    )


class Stratum(NamedTuple):
    """Pairs whose best rank is from `first` to `last`, each drawn with probability `rate`."""

    first: int
    last: int
    rate: float

    def __str__(self) -> str:
        return f"{self.first}-{self.last}:{self.rate:.10g}"


def stratified(pairs: Pairs, parameters: Mapping[str, Any], lots: Keys) -> Selection:
    """A sample: each pair is drawn by itself, with the rate of the stratum that its best rank falls into.

    `strata` says ranks and rates, as in "1-10:1,11-50:0.2"; see `parse_strata`. Below the last stratum nothing is
    pooled. That pairs are drawn one by one, and not a fixed number a stratum, makes the chance of a pair the rate
    itself, and that of two pairs the product of theirs, which is what the estimates of `scoring.inferred` rest on.

    Source: E. Yilmaz, E. Kanoulas and J. A. Aslam, A simple and efficient sampling method for estimating AP and NDCG,
    SIGIR 2008 (strata by rank); drawing one by one: J. Hájek, Sampling from a finite population, 1981 (Poisson
    sampling).
    """
    strata = parse_strata(parameters["strata"])
    rates = np.array([*(stratum.rate for stratum in strata), 0.0])
    chance = rates[np.searchsorted([stratum.last for stratum in strata], pairs.best_rank)]
    drawn = (lots >> np.uint64(11)).astype(np.float64) / 2.0**53  # from 0 to below 1
    return Selection(taken=drawn < chance, chance=chance)


def parse_strata(text: str) -> list[Stratum]:
    """The strata that a text like "1-10:1.0, 11-50:0.2" says: from rank 1 without a gap, rates above 0 up to 1.

    Raises ValueError that says what is wrong and what would be right.
    """
    strata: list[Stratum] = []
    for part in str(text or "").split(","):
        ranks, _, rate = part.strip().partition(":")
        first, _, last = ranks.partition("-")
        try:
            stratum = Stratum(int(first), int(last), float(rate))
        except ValueError:
            raise ValueError(
                f"A stratum is written as ranks and rate, like 11-50:0.2; got {part.strip()!r}."
            ) from None
        due = strata[-1].last + 1 if strata else 1
        if stratum.first != due or stratum.last < stratum.first:
            raise ValueError(
                f"Strata follow each other from rank 1 without a gap; after "
                f"{strata[-1] if strata else 'the beginning'} comes {due}-…, not {ranks}."
            )
        if not 0 < stratum.rate <= 1:
            raise ValueError(f"A rate is above 0 and at most 1; stratum {ranks} has {rate}.")
        strata.append(stratum)
    return strata


def best_rank_first(pairs: Pairs, parameters: Mapping[str, Any], lots: Keys) -> Selection:
    """Everything in the union of the top k, the best ranks first: where the strategies that go by the grades begin.

    Before the first grade every run is as good as any other, so they all take from each in turn.
    """
    return Selection(taken=np.ones(len(pairs), dtype=bool), priority=-pairs.best_rank)


def reciprocal_rank_fusion(pairs: Pairs) -> Ints:
    """The sum over runs of 1 / (60 + rank), in units of 2^-40.

    Source: G. V. Cormack, C. L. A. Clarke and S. Büttcher, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, SIGIR 2009.
    """
    return _summed(pairs, 1 / (RRF_CONSTANT + pairs.rank.astype(np.float64)))


def comb_sum(pairs: Pairs) -> Ints:
    """The sum over runs of the score, scaled to [0, 1] within each ranking; in units of 2^-40.

    A ranking whose scores are all equal gives each chunk 1. Raises ValueError where there are no scores.

    Sources: E. A. Fox and J. A. Shaw, Combination of multiple searches, TREC-2, 1994; scaling: J. H. Lee, Analyses of
    multiple evidence combination, SIGIR 1997.
    """
    return _summed(pairs, _scaled_scores(pairs))


def comb_mnz(pairs: Pairs) -> Ints:
    """CombSUM times the number of runs that returned the chunk. Source: as for `comb_sum`."""
    return comb_sum(pairs) * pairs.return_counts


def votes(pairs: Pairs) -> Ints:
    """The number of runs that returned the chunk; the best rank decides between equals.

    Source: C. Macdonald and I. Ounis, Voting for candidates, CIKM 2006 (there called "Votes").
    """
    return pairs.return_counts


FUSIONS: dict[str, Callable[[Pairs], Ints]] = {
    "rrf": reciprocal_rank_fusion,
    "combsum": comb_sum,
    "combmnz": comb_mnz,
    "votes": votes,
}
FUSIONS_OVER_SCORES = frozenset({"combsum", "combmnz"})


def _summed(pairs: Pairs, value: npt.NDArray[np.float64]) -> Ints:
    if not len(pairs):
        return np.zeros(0, dtype=np.int64)
    whole: Ints = np.rint(value * _UNIT).astype(np.int64)
    return np.add.reduceat(whole, pairs.starts[:-1])


def _scaled_scores(pairs: Pairs) -> npt.NDArray[np.float64]:
    if pairs.score is None:
        raise ValueError("This fusion adds up scores, and the runs have none.")
    if not len(pairs):
        return pairs.score
    # Number each ranking, and look up its lowest and highest score.
    question = np.repeat(pairs.question, pairs.return_counts)
    ranking = question * (int(pairs.run.max()) + 1) + pairs.run
    lowest = np.full(int(ranking.max()) + 1, np.inf)
    highest = np.full(len(lowest), -np.inf)
    np.minimum.at(lowest, ranking, pairs.score)
    np.maximum.at(highest, ranking, pairs.score)
    spread = (highest - lowest)[ranking]
    scaled = np.ones(len(pairs.score))
    np.divide(pairs.score - lowest[ranking], spread, out=scaled, where=spread > 0)
    return scaled


@dataclass(frozen=True)
class Strategy:
    """A strategy by name, and the parameters it takes with their defaults; a default of None must be given."""

    select: Callable[[Pairs, Mapping[str, Any], Keys], Selection]
    defaults: Mapping[str, Any]


STRATEGIES: dict[str, Strategy] = {
    "depth": Strategy(depth, {}),
    "budget": Strategy(budget, {"budget": None, "fusion": "rrf", "order": "shuffled"}),
    "stratified": Strategy(stratified, {"strata": None}),
    **{name: Strategy(best_rank_first, {}) for name in ADAPTIVE},
}


def complete_parameters(strategy: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The strategy's parameters with defaults filled in. Raises ValueError that says what is wrong."""
    if strategy not in STRATEGIES:
        raise ValueError(f"There is no strategy {strategy!r}; choose from {', '.join(STRATEGIES)}.")
    defaults = STRATEGIES[strategy].defaults
    unknown = sorted(given.keys() - defaults.keys())
    if unknown:
        takes = ", ".join(defaults) or "no parameters"
        raise ValueError(f"Strategy {strategy} takes {takes}; it knows no {', '.join(unknown)}.")
    parameters = {**defaults, **given}
    if "budget" in parameters:
        number = parameters["budget"]
        if type(number) is not int or number < 1:
            raise ValueError(f"The budget is a whole number of pairs a question, at least 1; got {number!r}.")
        if parameters["fusion"] not in FUSIONS:
            raise ValueError(
                f"There is no fusion {parameters['fusion']!r}; choose from {', '.join(FUSIONS)}."
            )
        if parameters["order"] not in ("shuffled", "fused"):
            raise ValueError(f"The order is shuffled or fused; got {parameters['order']!r}.")
    if "strata" in parameters:
        parameters["strata"] = ",".join(map(str, parse_strata(parameters["strata"])))
    return parameters


def needs_scores(parameters: Mapping[str, Any]) -> bool:
    """Whether completed parameters ask for the runs' scores, not only their ranks."""
    return parameters.get("fusion") in FUSIONS_OVER_SCORES


# Order of reading


def mixed(numbers: Keys, *, seed: int) -> Keys:
    """Numbers that look random and depend on `numbers` and `seed` alone.

    Source: the output function of SplitMix64; G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom
    number generators, OOPSLA 2014.
    """
    with np.errstate(over="ignore"):
        z = numbers + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def reading_order(
    question: Ints, identity: Keys, priority: Ints | None, *, seed: int
) -> npt.NDArray[np.intp]:
    """Indices of pairs in the order in which assessors meet them, question by question.

    By falling `priority` where there is one; shuffled by `seed` otherwise, and among equals. `identity` is a number
    of each pair that never changes, so that the shuffle does not depend on how the work was sliced.
    """
    shuffle = mixed(identity, seed=seed)
    keys = (shuffle, question) if priority is None else (shuffle, -priority, question)
    return np.lexsort(keys)

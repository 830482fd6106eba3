"""The value of each measure for each question.

trec_eval (through pytrec_eval-terrier, the library under ir_measures) computes every measure it has. It is
never given ids and scores of a run, which is where its traps are: each ranking is laid out as positions "0",
"1", "2", … with strictly falling scores, and the labels as the gains at these positions, plus one name for
each labelled unit that the ranking does not hold. So the stored order is the only order, ties and duplicate
ids cannot occur, a class or document is counted once, and rankings of one length share one dictionary. All
measures of a call see one map of gains: exponential gain is handed over as grades 2^grade - 1, with the
threshold mapped alike, which moves no grade across the threshold.

What the library lacks is computed here: the cut-off of RR@k, Judged@k, RBP and its residual; and in
`scoring.inferred` what holds where a pool was sampled at several rates, which trec_eval's infAP does not know, and
nDCG where a cut passage has less to give than its unit, which stands in the ideal with its own grade.
"""

from collections.abc import Sequence
from itertools import islice, product
from typing import NamedTuple

import numpy as np
import pytrec_eval

from scoring.classes import UNJUDGED, BoolArray, FloatArray, Truth
from scoring.inferred import inferred_ap, inferred_ndcg, ndcg
from scoring.matching import Graded
from scoring.measures import MAX_EXPONENTIAL_GRADE, Gain, Measure, gain_of
from scoring.policies import count_unjudged

# Our family -> trec_eval's name; with a cut-off it is "name.5" going in and "name_5" coming out.
_CUT = {"Recall": "recall", "P": "P", "Success": "success", "AP": "map_cut", "nDCG": "ndcg_cut"}
_UNCUT = {"RR": "recip_rank", "AP": "map", "nDCG": "ndcg", "Bpref": "bpref", "infAP": "infAP"}


class _Layout(NamedTuple):
    """Rankings and labels as trec_eval reads them; ``rows`` are the rankings that hold any labelled unit."""

    rows: list[int]
    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]


# Names of positions are short and rise in the order of the ranking, which is what trec_eval sorts fastest.
# Names of
# units that a ranking does not hold begin with a character that no position's name has.
_ALPHABET = "".join(map(chr, range(ord("0"), ord("z") + 1)))
_ABSENT = "~"


class _Positions:
    """Names for positions, and dictionaries of falling scores shared by all rankings of like length."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._absent: list[str] = []
        self._scores: dict[int, dict[str, float]] = {}

    def grow(self, length: int) -> list[str]:
        """Return names for at least ``length`` positions."""
        if len(self.names) < length:
            width = 2
            while len(_ALPHABET) ** width < length:
                width += 1
            self.names = ["".join(letters) for letters in islice(product(_ALPHABET, repeat=width), length)]
            self._scores.clear()
        return self.names

    def absent(self, count: int) -> list[str]:
        """Return names for at least ``count`` units that a ranking does not hold."""
        self._absent.extend(f"{_ABSENT}{number}" for number in range(len(self._absent), count))
        return self._absent

    def scores(self, length: int) -> dict[str, float]:
        """Return falling scores for ``length`` positions or a few more.

        Rounding up is harmless: positions behind the last label change no measure.
        """
        step = max(1, 1 << max(0, length.bit_length() - 4))
        rounded = min(-(-length // step) * step, len(self.names))
        if rounded not in self._scores:
            falling = map(float, range(rounded, 0, -1))
            self._scores[rounded] = dict(zip(self.names[:rounded], falling, strict=True))
        return self._scores[rounded]


def question_values(
    truth: Truth, graded: Graded, measures: Sequence[Measure], *, threshold: int, gain: Gain, returned: Graded
) -> FloatArray:
    """Return the values, one row a ranking of ``graded`` and one column a measure, unrounded.

    An empty ranking scores 0. Every question must have a relevant unit at the measure's threshold; the caller
    leaves the others out (see `scoring.scores`). ``graded`` has been through the policy; ``returned`` are the
    same rankings before it, for Judged@k is a fact about what was returned, whatever the policy then removes.
    Raises ValueError for a threshold below 1 and for grades too high for exponential gain.
    """
    if threshold < 1:
        raise ValueError(f"threshold {threshold}: at a threshold below 1 everything judged would be relevant")
    if not any(measure.family in ("nDCG", "infNDCG") for measure in measures):
        gain = "linear"  # nothing else looks at gains, and grades of any height may then be scored
    _check_gain(truth, gain)
    values = np.zeros((len(graded.question), len(measures)))
    by_threshold: dict[int, list[int]] = {}
    for column, measure in enumerate(measures):
        if measure.family == "RBP":
            values[:, column] = rbp(graded, measure, threshold=measure.rel or threshold)
        elif measure.family == "Judged":
            values[:, column] = 1.0 - count_unjudged(returned, measure.k).rates
        elif measure.family == "infNDCG":
            values[:, column] = inferred_ndcg(truth, graded, k=measure.k, gain=gain)
        elif measure.family == "infAP" and truth.chance is not None:
            values[:, column] = inferred_ap(truth, graded, threshold=measure.rel or threshold)
        else:
            by_threshold.setdefault(measure.rel or threshold, []).append(column)
    positions = _Positions()
    lowered = _lowered(truth, graded)
    layouts: dict[tuple[int | None, int], _Layout] = {}
    for level, columns in by_threshold.items():
        asked = [measures[column] for column in columns]
        key = _deepest(asked), level if lowered.any() else 0
        if key not in layouts:
            layouts[key] = _lay_out(truth, graded, *key, gain, positions)
        _fill(values, layouts[key], asked, columns, gain_of(level, gain))
    if lowered.any():
        for column, measure in enumerate(measures):
            if measure.family == "nDCG":
                exact = ndcg(truth, graded, k=measure.k, gain=gain)
                values[lowered, column] = exact[lowered]
    return values


def _lowered(truth: Truth, graded: Graded) -> BoolArray:
    """Return which rankings hold a unit by a cut passage whose grade is below the unit's."""
    lowered = np.zeros(len(graded.question), dtype=bool)
    if truth.cut is not None:
        counted = np.flatnonzero(graded.counts)
        below = counted[graded.grade[counted] < truth.grade[graded.row[counted]]]
        lowered[np.searchsorted(graded.start, below, side="right") - 1] = True
    return lowered


def _check_gain(truth: Truth, gain: Gain) -> None:
    highest = int(truth.grade.max()) if len(truth.grade) else 0
    if gain == "exponential" and highest > MAX_EXPONENTIAL_GRADE:
        raise ValueError(
            f"grade {highest} is too high for exponential gain, 2^grade - 1 "
            f"(at most {MAX_EXPONENTIAL_GRADE}): use linear gain"
        )


def _deepest(measures: Sequence[Measure]) -> int | None:
    """Return the depth that all the measures need, None where one looks at the whole ranking."""
    # RR@k is cut here, from the uncut reciprocal rank, but nothing behind k matters to it either.
    cutoffs = [measure.k for measure in measures]
    return None if None in cutoffs else max(k for k in cutoffs if k is not None)


def _lay_out(
    truth: Truth, graded: Graded, depth: int | None, level: int, gain: Gain, positions: _Positions
) -> _Layout:
    """Return the rankings as positions and the labels as gains at positions.

    A unit at or above the ``level`` that only a cut passage below it stands for is missed all the same.
    """
    by_grade = np.array([gain_of(g, gain) for g in range(int(truth.grade.max(initial=0)) + 1)])
    gains = by_grade[truth.grade]
    rank = graded.rank
    within = np.ones(len(rank), dtype=bool) if depth is None else rank <= depth
    counted = np.flatnonzero(graded.counts & within)
    pooled = np.flatnonzero(graded.pooled & within)
    seen = np.zeros(len(truth.key), dtype=bool)
    seen[graded.row[counted]] = (graded.grade[counted] >= level) | (truth.grade[graded.row[counted]] < level)
    bounds = np.searchsorted(counted, graded.start).tolist()
    pooled_bounds = np.searchsorted(pooled, graded.start).tolist()
    place = (rank[counted] - 1).tolist()
    gain_there = by_grade[graded.grade[counted]].tolist()
    pooled_place = (rank[pooled] - 1).tolist()
    names = positions.grow(int(rank.max(initial=0)))
    layout = _Layout([], {}, {})
    for row, question in enumerate(graded.question.tolist()):
        low, high = bounds[row], bounds[row + 1]
        if low == high:
            continue  # nothing labelled was returned: every measure is 0
        known = dict(zip([names[p] for p in place[low:high]], gain_there[low:high], strict=True))
        a, b = truth.first[question], truth.first[question + 1]
        missed = gains[a:b][~seen[a:b]].tolist()
        known.update(zip(positions.absent(len(missed)), missed, strict=False))
        known.update((names[p], -1) for p in pooled_place[pooled_bounds[row] : pooled_bounds[row + 1]])
        key = str(row)
        layout.rows.append(row)
        layout.qrels[key] = known
        last = max(place[high - 1], max(pooled_place[pooled_bounds[row] : pooled_bounds[row + 1]], default=0))
        layout.run[key] = positions.scores(last + 1)
    return layout


def _fill(
    values: FloatArray, layout: _Layout, measures: Sequence[Measure], columns: Sequence[int], level: int
) -> None:
    """Let trec_eval compute the measures at one relevance level and put them into their columns."""
    if not layout.rows:
        return
    asked = {_ask(measure) for measure in measures}
    evaluator = pytrec_eval.RelevanceEvaluator(layout.qrels, asked, relevance_level=level)
    answers = evaluator.evaluate(layout.run)
    rows = [answers[str(row)] for row in layout.rows]
    for column, measure in zip(columns, measures, strict=True):
        name = _ask(measure).replace(".", "_")
        computed = np.array([answer[name] for answer in rows])
        if measure.family == "RR" and measure.k is not None:
            # The reciprocal of a whole number is exact enough to be turned back into the rank.
            computed = np.where(computed * measure.k > 1 - 1e-9, computed, 0.0)
        values[layout.rows, column] = computed


def _ask(measure: Measure) -> str:
    if measure.family == "RR" or measure.k is None:
        return _UNCUT[measure.family]
    return f"{_CUT[measure.family]}.{measure.k}"


def rbp(graded: Graded, measure: Measure, *, threshold: int) -> FloatArray:
    """Return rank-biased precision, ``(1 - p) * sum of p^(rank - 1)`` over relevant entries (to k, if given).

    Source: Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness", TOIS 2008.
    """
    return _rbp_weight(graded, measure, graded.counts & (graded.grade >= threshold))


def rbp_residual(graded: Graded, measure: Measure) -> FloatArray:
    """Return how much RBP could still rise: the weight of unjudged entries and of all behind the last.

    That is all the weight there is, 1, less that of the judged entries (to k, if given).
    """
    judged = _rbp_weight(graded, measure, graded.grade != UNJUDGED)
    return np.maximum(1.0 - judged, 0.0)  # the sum of a full ranking may be a rounding error above 1


def _rbp_weight(graded: Graded, measure: Measure, which: BoolArray) -> FloatArray:
    p = _persistence(measure)
    entries = np.flatnonzero(which)
    ranking = np.searchsorted(graded.start, entries, side="right") - 1
    place = entries - graded.start[ranking]
    by_place = (1 - p) * np.power(p, np.arange(place.max(initial=0) + 1, dtype=np.float64))
    if measure.k is not None:
        by_place[measure.k :] = 0.0
    weight = by_place[place]
    return np.bincount(ranking, weights=weight, minlength=len(graded.question)).astype(np.float64)


def _persistence(measure: Measure) -> float:
    assert measure.p is not None
    return measure.p

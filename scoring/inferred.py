"""Measures inferred from a sampled pool: each label stands for 1/chance pairs like it.

Every sum over labelled units is weighted by the inverse of the unit's chance to be sampled (Horvitz and
Thompson, 1952). infAP after Aslam and Pavlu, "A practical sampling strategy for efficient retrieval
evaluation", 2007; inferred nDCG after Yilmaz, Kanoulas and Aslam, "A simple and efficient sampling method for
estimating AP and NDCG", SIGIR 2008. Estimates are held within what they estimate: a precision, like nDCG, is
at most 1. Where every pair was sampled, the values are those of AP and nDCG. A label of chance 0 was found by
another way than the sample: it stands for nothing but itself, and counts in no estimate.
"""

from __future__ import annotations

import numpy as np

from scoring.classes import FloatArray, IntArray, Truth
from scoring.matching import Graded
from scoring.measures import Gain, gain_of


def inferred_ap(truth: Truth, graded: Graded, *, threshold: int) -> FloatArray:
    """Return the estimate of average precision, one a ranking."""
    weight = _weights(truth)
    relevant = np.flatnonzero(graded.counts & (graded.grade >= threshold))
    own = weight[graded.row[relevant]]
    ranking, rank = _places(graded, relevant)
    # What stands above: the running sum of the weights, less all that belongs to earlier rankings.
    running = np.cumsum(own) - own
    begins = np.searchsorted(ranking, np.arange(len(graded.question)))
    padded = np.append(running, own.sum() if len(own) else 0.0)
    above = running - padded[begins][ranking]
    precision = np.minimum(1.0, (1.0 + above) / rank)
    total = np.bincount(ranking, weights=own * precision, minlength=len(graded.question))
    known = np.where(truth.grade >= threshold, weight, 0.0)
    estimated = np.bincount(truth.question, weights=known, minlength=truth.questions)[graded.question]
    result: FloatArray = np.divide(total, estimated, out=np.zeros(len(total)), where=estimated > 0)
    return result


def inferred_ndcg(truth: Truth, graded: Graded, *, k: int | None, gain: Gain) -> FloatArray:
    """Return the estimate of nDCG (at k, if given), one a ranking."""
    return _weighted_ndcg(truth, graded, _weights(truth), k=k, gain=gain)


def ndcg(truth: Truth, graded: Graded, *, k: int | None, gain: Gain) -> FloatArray:
    """Return nDCG (at k, if given), one a ranking: entries at their own grades, the ideal at those of the units."""
    return _weighted_ndcg(truth, graded, np.ones(len(truth.key)), k=k, gain=gain)


def _weighted_ndcg(
    truth: Truth, graded: Graded, weight: FloatArray, *, k: int | None, gain: Gain
) -> FloatArray:
    gains = np.array([gain_of(g, gain) for g in range(int(truth.grade.max(initial=0)) + 1)], dtype=np.float64)
    entries = np.flatnonzero(graded.counts & (graded.grade > 0))
    ranking, rank = _places(graded, entries)
    worth = gains[graded.grade[entries]] * weight[graded.row[entries]] / np.log2(rank + 1.0)
    if k is not None:
        worth = np.where(rank <= k, worth, 0.0)
    got = np.bincount(ranking, weights=worth, minlength=len(graded.question))
    ideal = np.array([_ideal(truth, weight, gains, q, k) for q in graded.question.tolist()])
    ratio: FloatArray = np.divide(got, ideal, out=np.zeros(len(got)), where=ideal > 0)
    return np.minimum(1.0, ratio)


def _weights(truth: Truth) -> FloatArray:
    if truth.chance is None:
        return np.ones(len(truth.key))
    weights: FloatArray = np.divide(1.0, truth.chance, out=np.zeros(len(truth.key)), where=truth.chance > 0)
    return weights


def _places(graded: Graded, entries: IntArray) -> tuple[IntArray, IntArray]:
    """Return the place of each entry's ranking among the rankings, and its rank."""
    ranking = np.searchsorted(graded.start, entries, side="right") - 1
    return ranking, entries - graded.start[ranking] + 1


def _ideal(truth: Truth, weight: FloatArray, gains: FloatArray, question: int, k: int | None) -> float:
    """Return the best possible gain: as many chunks of each grade as the sample says there are, the best first."""
    rows = slice(int(truth.first[question]), int(truth.first[question + 1]))
    order = np.argsort(-truth.grade[rows], kind="stable")
    count, worth = weight[rows][order], gains[truth.grade[rows][order]]
    filled = np.concatenate([[0.0], np.cumsum(count)])
    collected = np.concatenate([[0.0], np.cumsum(count * worth)])
    depth = int(np.ceil(filled[-1] - 1e-9)) if k is None else k
    ranks = np.arange(depth + 1, dtype=np.float64)
    gained = np.diff(np.interp(ranks, filled, collected))
    return float((gained / np.log2(ranks[1:] + 1.0)).sum())

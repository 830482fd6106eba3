"""What chance alone could do to a paired difference: bootstrap, randomisation test, Holm's adjustment."""

from collections.abc import Sequence

import numpy as np

from scoring.classes import FloatArray

RESAMPLES = 10_000
SEED = 20_260_101
#: Up to this many questions that differ, all sign patterns are counted instead of drawn.
EXACT_UP_TO = 13
# Random numbers held at once; fixed, because it is part of what a seed means.
_AT_ONCE = 2_000_000


def bootstrap_interval(
    differences: FloatArray, *, seed: int = SEED, resamples: int = RESAMPLES, level: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of the mean difference, resampling whole questions with replacement.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", chapter 13. Memory stays below about 40
    MB. Raises ValueError where there is no question.
    """
    means = bootstrap_means(differences, seed=seed, resamples=resamples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_means(differences: FloatArray, *, seed: int = SEED, resamples: int = RESAMPLES) -> FloatArray:
    """Return the means of ``resamples`` samples, each as large as ``differences`` and drawn from it."""
    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n == 0:
        raise ValueError("no question is common to both runs: there is nothing to resample")
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // n)
    means = np.empty(resamples)
    for begin in range(0, resamples, rows):
        size = min(rows, resamples - begin)
        drawn = rng.integers(0, n, size=(size, n), dtype=np.int32)
        means[begin : begin + size] = np.take(values, drawn).mean(axis=1)
    return means


def randomisation_p(differences: FloatArray, *, seed: int = SEED, resamples: int = RESAMPLES) -> float:
    """Return the two-sided p of the paired randomisation test (Fisher-Pitman, signs flipped at random).

    Exact where few questions differ; else ``(1 + as extreme) / (1 + resamples)``. Identical systems have p =
    1. Source: Smucker, Allan and Carterette, "A comparison of statistical significance tests for IR", CIKM
    2007.
    """
    values = np.asarray(differences, dtype=np.float64)
    values = values[values != 0.0]
    n = len(values)
    if n == 0:
        return 1.0
    # Sums of the same numbers in another order differ in their last digits; those count as equally extreme.
    limit = abs(values.sum()) * (1 - 1e-9) - 1e-12
    if n <= EXACT_UP_TO:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float(np.mean(np.abs((2.0 * patterns - 1.0) @ values) >= limit))
    rng = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // n)
    extreme = 0
    for begin in range(0, resamples, rows):
        size = min(rows, resamples - begin)
        bits = np.frombuffer(rng.bytes(size * ((n + 7) // 8)), dtype=np.uint8).reshape(size, -1)
        signs = np.unpackbits(bits, axis=1, count=n).astype(np.float64)
        sums = 2.0 * (signs @ values) - values.sum()
        extreme += int(np.count_nonzero(np.abs(sums) >= limit))
    return (1 + extreme) / (1 + resamples)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for how many there are, in the order given.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian J. of Statistics
    1979.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = highest
    return adjusted

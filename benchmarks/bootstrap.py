"""10,000 bootstrap resamples of 1,000 questions, against numpy's time for drawing the random indices alone.

    .venv/bin/python benchmarks/bootstrap.py [--questions 1000] [--resamples 10000] [--rounds 5] [--json]

The bar is a ratio of 20. The randomisation test of the same differences is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from scoring.resampling import bootstrap_interval, randomisation_p

BAR = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()

    differences = np.random.default_rng(1).normal(0.02, 0.3, options.questions)
    size = (options.resamples, options.questions)
    drawing, bootstrap, randomisation = [], [], []
    for _ in range(options.rounds):
        drawing.append(timed(lambda: np.random.default_rng(2).integers(0, options.questions, size=size)))
        bootstrap.append(timed(lambda: bootstrap_interval(differences, resamples=options.resamples)))
        randomisation.append(timed(lambda: randomisation_p(differences, resamples=options.resamples)))
    reference = statistics.median(drawing)
    result = {
        "bootstrap_seconds": statistics.median(bootstrap),
        "randomisation_seconds": statistics.median(randomisation),
        "drawing_seconds": reference,
        "ratio": statistics.median(bootstrap) / reference,
        "bar": BAR,
    }
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{options.resamples:,} resamples of {options.questions:,} questions: {result['bootstrap_seconds']:.3f} s, "
        f"drawing the indices {reference:.3f} s, ratio {result['ratio']:.2f} (bar {BAR:g}); "
        f"randomisation test {result['randomisation_seconds']:.3f} s"
    )


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()

"""trectools pooling the same runs: its TrecPoolMaker, less the judged pairs. Runs in an environment that has it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def trectools(venv: Path, folder: Path, k: int) -> dict[str, float]:
    """`seconds` that the trectools in `venv` takes for the pool of `runs.npy` less `judged.npy`, and pairs `left`.

    The columns of runs.npy are run, question, rank and chunk, in this order and sorted by it; those of judged.npy are
    question and chunk. Making its run objects is not counted.
    """
    python = venv / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{venv} is no virtual environment with trectools in it.")
    command = [str(python.absolute()), __file__, str(folder), str(k)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"trectools failed:\n{done.stderr[-3000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(folder: Path, k: int) -> dict[str, float]:
    import pandas as pd
    from trectools import TrecPool, TrecPoolMaker, TrecRun

    entries = np.load(folder / "runs.npy")
    runs = []
    for number in np.unique(entries[:, 0]):
        _run, question, rank, chunk = entries[entries[:, 0] == number].T
        run = TrecRun()
        columns = {
            "query": question,
            "q0": "Q0",
            "docid": chunk,
            "rank": rank,
            "score": -rank,
            "system": str(number),
        }
        run.load_run_from_dataframe(pd.DataFrame(columns))
        runs.append(run)
    judged: dict[str, set[str]] = {str(question): set() for question in np.unique(entries[:, 1])}
    for question, chunk in np.load(folder / "judged.npy"):
        judged[str(question)].add(str(chunk))

    start = time.perf_counter()
    pool = TrecPoolMaker().make_pool(runs, strategy="topX", topX=k)
    # it subtracts pools whose questions come in one order
    left = pool.minus(TrecPool({question: judged[question] for question in pool.pool}))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "left": int(left.get_total_pool_size())}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))

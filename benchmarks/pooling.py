"""Preview and build of a depth-100 pool of 100 runs x 200 questions, against polars and a bare COPY.

    .venv/bin/python benchmarks/pooling.py [--runs 100] [--questions 200] [--depth 1000] [--k 100] [--judged 100000]
                                           [--rounds 5] [--large] [--trectools VENV] [--json]

- The preview counts the union, what is judged, queued and left, all per question and per run, and the overlap of all
  runs. Its reference is polars doing only the union and the anti-join with the judged pairs, from Parquet files that
  hold the same entries: once all that is stored, where ours begins too, and once cut at k already. The bar, a ratio
  of 5, is on the former.
- The build's reference is that, and a COPY of the resulting pairs with their provenance, one row each, into a bare
  table. The bar is a ratio of 3.
- `--trectools` names a virtual environment with trectools in it (python -m venv VENV; VENV/bin/pip install trectools).
  It makes the pool of some runs (10, or `--trectools-runs`; each takes it seconds) from run objects already loaded,
  and subtracts the judged pairs. Ours builds the pool of the same runs, to the committed rows. The ratio has to be 20.
- `--large` adds a preview of 10 runs x 7,000 questions x depth 1,000, for its time and the peak of memory.

All are measured in turns in the same run. A database of its own is made and dropped.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

import numpy as np
import polars as pl
from django.db import connection, transaction

from benchmarks.database import own_database
from benchmarks.trectools_reference import trectools
from evalsets.models import EvalSet, Question
from judging.models import Assessor
from judging.services.pools import preview_pool
from pooling.models import PoolQuestion, Run, System
from pooling.pgcopy import ArrayColumn, bigint_field, binary_copy, write_rows
from pooling.services.pools import build_specified_pool
from pooling.specifying import specify_pool

PREVIEW_BAR, BUILD_BAR, TRECTOOLS_BAR = 5.0, 3.0, 20.0
CANDIDATES = 8000  # chunks that any run may find for a question


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--depth", type=int, default=1000, help="How deep the runs are stored.")
    parser.add_argument("--k", type=int, default=100, help="How deep they are pooled.")
    parser.add_argument("--judged", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--trectools", type=Path, metavar="VENV")
    parser.add_argument("--trectools-runs", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    with own_database(), tempfile.TemporaryDirectory() as folder:
        result = measure(options, Path(folder))
        if options.large:
            result |= measure_large()
    if options.json:
        print(json.dumps(result))
        return
    print(in_words(result))


def in_words(result: dict[str, float]) -> str:
    lines = [
        f"{result['stored']:,} entries stored, {result['pooled']:,} pooled, union {result['union']:,}, "
        f"left {result['left']:,}",
        f"preview {result['preview']:.3f} s; polars {result['polars']:.3f} s from entries cut at k, "
        f"{result['polars_stored']:.3f} s from all, as stored: ratios {result['preview_ratio_cut']:.1f} and "
        f"{result['preview_ratio']:.1f} (bar {PREVIEW_BAR:g}, from all)",
        f"build {result['build']:.3f} s; polars and COPY {result['polars'] + result['copy']:.3f} s: "
        f"ratio {result['build_ratio']:.1f} (bar {BUILD_BAR:g})",
    ]
    if "trectools" in result:
        lines.append(
            f"{result['trectools_runs']} of the runs, left {result['trectools_left']:,}: build "
            f"{result['build_for_trectools']:.3f} s; trectools {result['trectools']:.1f} s: "
            f"{result['trectools_ratio']:.0f} times as fast (bar {TRECTOOLS_BAR:g})"
        )
    if "large_preview" in result:
        lines.append(
            f"10 runs x 7,000 questions x depth 1,000: preview {result['large_preview']:.1f} s, "
            f"union {result['large_union']:,}, peak memory {result['peak_megabytes']} MB"
        )
    return "\n".join(lines)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    evalset, runs = fill(options, folder, "bench", options.runs, options.questions)
    judge(evalset, options, folder)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    specification = specify_pool(evalset=evalset, runs=[(run, options.k) for run in runs])
    times: dict[str, list[float]] = {
        name: [] for name in ("preview", "polars", "polars_stored", "build", "copy")
    }
    left = 0
    for turn in range(options.rounds):
        seconds, numbers = timed(lambda: preview_pool(specification))
        times["preview"].append(seconds)
        seconds, left = timed(lambda: polars_remainder(folder / "cut.parquet", folder / "judged.parquet"))
        times["polars"].append(seconds)
        seconds, _ = timed(
            lambda: polars_remainder(folder / "stored.parquet", folder / "judged.parquet", options.k)
        )
        times["polars_stored"].append(seconds)
        assert left == numbers.totals.remainder, "the two disagree"
        with_seed = specify_pool(evalset=evalset, runs=specification.runs, seed=turn)
        name = f"turn {turn}"
        seconds, _ = timed(lambda: build_specified_pool(specification=with_seed, name=name, by=None))  # noqa: B023
        times["build"].append(seconds)
    rows = provenance_rows()
    times["copy"] = [timed(lambda: copy_rows(rows))[0] for _ in range(options.rounds)]
    result: dict[str, float] = {name: statistics.median(values) for name, values in times.items()}
    if options.trectools:
        result |= against_trectools(options, folder, evalset, runs[: options.trectools_runs])
    return result | {
        "preview_ratio": result["preview"] / result["polars_stored"],
        "preview_ratio_cut": result["preview"] / result["polars"],
        "build_ratio": result["build"] / (result["polars"] + result["copy"]),
        "stored": options.runs * options.questions * options.depth,
        "pooled": sum(counts.returned for counts in numbers.runs),
        "union": numbers.totals.union,
        "left": left,
    }


def against_trectools(
    options: argparse.Namespace, folder: Path, evalset: EvalSet, runs: list[Run]
) -> dict[str, float]:
    """Both pool the first `runs`, in turns."""
    entries = pl.scan_parquet(folder / "stored.parquet").filter(pl.col("run") < len(runs))
    np.save(folder / "runs.npy", entries.select("run", "question", "rank", "chunk").collect().to_numpy())
    np.save(folder / "judged.npy", pl.read_parquet(folder / "judged.parquet").to_numpy())
    chosen = [(run, options.k) for run in runs]
    left = preview_pool(specify_pool(evalset=evalset, runs=chosen)).totals.remainder
    times = []
    for turn in range(options.rounds):
        specification = specify_pool(evalset=evalset, runs=chosen, seed=turn)
        seconds, _ = timed(
            lambda: build_specified_pool(specification=specification, name=f"few {turn}", by=None)  # noqa: B023
        )
        times.append(seconds)
    theirs = trectools(options.trectools, folder, options.k)
    assert theirs["left"] == left, "trectools and we disagree"
    ours = statistics.median(times)
    return {
        "trectools_runs": len(runs),
        "trectools_left": left,
        "trectools": theirs["seconds"],
        "build_for_trectools": ours,
        "trectools_ratio": theirs["seconds"] / ours,
    }


def timed(work: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def fill(
    options: argparse.Namespace, folder: Path, slug: str, run_count: int, question_count: int
) -> tuple[EvalSet, list[Run]]:
    """Runs that find the same candidates of a question in more or less the same order."""
    rng = np.random.default_rng(1)
    evalset = EvalSet.objects.create(slug=slug, name=slug)
    corpus = max(2 * CANDIDATES, 2500 * min(question_count, 200))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evalsets_question (evalset_id, external_id, text, narrative, slices, split, answerable, "
            '"group", scope, facts) '
            "SELECT %s, 'q' || n, 'q', '', '{}', '', true, '', '', '[]' FROM generate_series(1, %s) n",
            [evalset.pk, question_count],
        )
        cursor.execute(
            "INSERT INTO evalsets_chunk (evalset_id, external_id, has_text) SELECT %s, 'c' || n, true "
            "FROM generate_series(1, %s) n",
            [evalset.pk, corpus],
        )
        cursor.execute("SELECT min(id) FROM evalsets_chunk WHERE evalset_id = %s", [evalset.pk])
        first_chunk = cursor.fetchone()[0]
    runs = []
    for number in range(run_count):
        system = System.objects.create(evalset=evalset, name=f"s{number}")
        runs.append(
            Run.objects.create(
                evalset=evalset, system=system, name=f"s{number}", date="2026-01-01", content_hash=str(number)
            )
        )
    question_ids = list(Question.objects.filter(evalset=evalset).order_by("pk").values_list("pk", flat=True))
    likely = np.log(np.arange(1, CANDIDATES + 1))
    kept: list[pl.DataFrame] = []
    for question_id in question_ids:
        candidates = first_chunk + rng.choice(corpus, CANDIDATES, replace=False)
        noisy = likely + rng.normal(0, 1.5, (run_count, CANDIDATES))
        best = np.argpartition(noisy, options.depth, axis=1)[:, : options.depth]
        order = np.argsort(np.take_along_axis(noisy, best, axis=1), axis=1)
        chunks = candidates[np.take_along_axis(best, order, axis=1)]
        write_rankings(question_id, runs, chunks)
        if slug == "bench":
            kept.append(
                pl.DataFrame(
                    {
                        "run": np.repeat(np.arange(run_count, dtype=np.int16), options.depth),
                        "question": np.full(chunks.size, question_id, dtype=np.int32),
                        "rank": np.tile(np.arange(1, options.depth + 1, dtype=np.int32), run_count),
                        "chunk": chunks.ravel().astype(np.int32),
                    }
                )
            )
    if kept:
        entries = pl.concat(kept).sort("run", "question", "rank")
        entries.write_parquet(folder / "stored.parquet")
        entries.filter(pl.col("rank") <= options.k).write_parquet(folder / "cut.parquet")
    return evalset, runs


def write_rankings(question_id: int, runs: list[Run], chunks: np.ndarray) -> None:
    depth = chunks.shape[1]
    ids = ArrayColumn(chunks.ravel(), "int4")
    scores = ArrayColumn(np.tile(np.linspace(1, 0, depth), len(runs)), "float8")
    with binary_copy("pooling_ranking", ["run_id", "question_id", "chunk_ids", "scores"]) as copy:
        write_rows(
            copy,
            (
                (
                    bigint_field(run.pk),
                    bigint_field(question_id),
                    ids.field(i * depth, (i + 1) * depth),
                    scores.field(i * depth, (i + 1) * depth),
                )
                for i, run in enumerate(runs)
            ),
        )


def judge(evalset: EvalSet, options: argparse.Namespace, folder: Path) -> None:
    """Judge a random sample of the union, question by question, as people do."""
    pairs = pl.read_parquet(folder / "cut.parquet").select("question", "chunk").unique()
    pairs = pairs.sample(min(options.judged, len(pairs)), seed=1).sort("question", "chunk")
    pairs.write_parquet(folder / "judged.parquet")
    assessor = Assessor.objects.create(evalset=evalset, kind=Assessor.Kind.FILE, name="file")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, "
            "reason, source, note, spans, facts, details) "
            "SELECT %s, q, c, 1, %s, 'grade', c %% 4, '', 'import', '', '[]', '{}', '{}' "
            "FROM unnest(%s::bigint[], %s::int[]) AS t (q, c)",
            [evalset.pk, assessor.pk, pairs["question"].to_list(), pairs["chunk"].to_list()],
        )


def polars_remainder(entries: Path, judged: Path, k: int | None = None) -> int:
    rows = pl.scan_parquet(entries)
    if k is not None:
        rows = rows.filter(pl.col("rank") <= k)
    pairs = rows.select("question", "chunk").unique()
    left = pairs.join(pl.scan_parquet(judged), on=["question", "chunk"], how="anti")
    return len(left.collect())


def provenance_rows() -> list[str]:
    """The last built pool, one line of COPY text a pair: question, chunk, who returned it, at which rank."""
    lines = []
    for row in PoolQuestion.objects.filter(pool=PoolQuestion.objects.latest("pk").pool_id):
        at = 0
        for chunk, count in zip(row.chunk_ids, row.return_counts, strict=True):
            by = ",".join(map(str, row.returned_by[at : at + count]))
            ranks = ",".join(map(str, row.returned_rank[at : at + count]))
            lines.append(f"{row.question_id}\t{chunk}\t{{{by}}}\t{{{ranks}}}\n")
            at += count
    return lines


def copy_rows(lines: list[str]) -> None:
    data = "".join(lines)
    with connection.cursor() as cursor:
        cursor.execute(
            "DROP TABLE IF EXISTS bare; CREATE TABLE bare (q bigint, c int, returned_by int2[], ranks int[])"
        )
        with transaction.atomic(), cursor.copy("COPY bare FROM STDIN") as copy:
            copy.write(data)


def measure_large() -> dict[str, float]:
    options = argparse.Namespace(depth=1000, k=1000)
    evalset, runs = fill(options, Path(), "large", 10, 7000)
    specification = specify_pool(evalset=evalset, runs=[(run, 1000) for run in runs])
    seconds, numbers = timed(lambda: preview_pool(specification))
    return {
        "large_preview": seconds,
        "large_union": numbers.totals.union,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    main()

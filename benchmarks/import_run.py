"""Import of a run of a million lines, from text file to committed rankings, against COPY of the same entries.

    .venv/bin/python benchmarks/import_run.py [--questions 1000] [--depth 1000] [--corpus 100000] [--rounds 3] [--json]

The reference is what Postgres needs to COPY the same entries, one row each and already parsed, into a bare table and
commit. Both are measured in turns in the same run. The bar is a ratio of 3. A database of its own is made and dropped.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.db import connection, transaction

from benchmarks.database import own_database
from evalsets.models import EvalSet
from pooling.formats import read_run
from pooling.services.importing import import_run

BAR = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument(
        "--corpus", type=int, default=100_000, help="Chunks in the eval set; at least the depth."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()

    with own_database(), tempfile.TemporaryDirectory() as folder:
        result = measure(options, Path(folder))
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{result['lines']:,} lines, {result['megabytes']:.0f} MB: import {result['import_seconds']:.2f} s "
        f"(of it reading {result['read_seconds']:.2f} s), COPY {result['copy_seconds']:.2f} s, "
        f"ratio {result['ratio']:.2f} (bar {BAR:g}), peak memory {result['peak_megabytes']} MB"
    )


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    path, entries = folder / "run.txt", folder / "entries.tsv"
    write_files(path, entries, options)
    evalset = make_evalset(options)
    imports, copies, reads = [], [], []
    for turn in range(options.rounds):
        copies.append(timed(lambda: copy_entries(entries)))
        reads.append(timed(lambda: read_run(path)))
        imports.append(
            timed(lambda turn=turn: import_run(evalset=evalset, source=path, by=None, run=f"turn {turn}"))
        )
    check(evalset, options)
    seconds = statistics.median(imports)
    reference = statistics.median(copies)
    return {
        "lines": options.questions * options.depth,
        "megabytes": path.stat().st_size / 1e6,
        "import_seconds": seconds,
        "read_seconds": statistics.median(reads),
        "copy_seconds": reference,
        "ratio": seconds / reference,
        "bar": BAR,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def write_files(path: Path, entries: Path, options: argparse.Namespace) -> None:
    """The run as a system writes it, and the same entries as COPY wants them."""
    choose = random.Random(1)
    with path.open("w") as run, entries.open("w") as rows:
        for question in range(options.questions):
            score = 30.0
            for rank, chunk in enumerate(choose.sample(range(options.corpus), options.depth), 1):
                score -= choose.random() / 50
                run.write(f"question-{question} Q0 doc-{chunk:08}#{chunk % 7} {rank} {score:.6f} system\n")
                rows.write(f"1\t{question}\t{chunk}\t{rank}\t{score:.6f}\n")


def make_evalset(options: argparse.Namespace) -> EvalSet:
    evalset = EvalSet.objects.create(slug="benchmark", name="Benchmark")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evalsets_question (evalset_id, external_id, text, narrative, slices, split, answerable, "
            "\"group\", scope, facts) SELECT %s, 'question-' || n, 'text', '', '{}', '', true, '', '', '[]' "
            "FROM generate_series(0, %s) n",
            [evalset.pk, options.questions - 1],
        )
        cursor.execute(
            "INSERT INTO evalsets_chunk (evalset_id, external_id, has_text) "
            "SELECT %s, 'doc-' || lpad(n::text, 8, '0') || '#' || n %% 7, true FROM generate_series(0, %s) n",
            [evalset.pk, options.corpus - 1],
        )
        cursor.execute("ANALYZE evalsets_question, evalsets_chunk")
        cursor.execute("CREATE TABLE bare (run int, question int, chunk int, rank int, score float8)")
    return evalset


def copy_entries(entries: Path) -> None:
    content = entries.read_bytes()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE bare")
        with cursor.copy("COPY bare FROM STDIN") as copy:
            for start in range(0, len(content), 2**20):
                copy.write(content[start : start + 2**20])


def check(evalset: EvalSet, options: argparse.Namespace) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), sum(cardinality(chunk_ids)) FROM pooling_ranking GROUP BY run_id",
        )
        wanted = (options.questions, options.questions * options.depth)
        assert set(cursor.fetchall()) == {wanted}, "the import stored something else"


def timed(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

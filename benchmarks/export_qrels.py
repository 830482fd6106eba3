"""Export of a release of a million labels as qrels, against COPY TO of the same rows from a bare table.

    .venv/bin/python benchmarks/export_qrels.py [--questions 1000] [--labels 1000] [--rounds 3] [--json]

Both write a file and are measured in turns in the same run. The bar is a ratio of 2, and memory that does not grow with
the release. A database of its own is made and dropped.
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
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.db import connection

from benchmarks.database import own_database
from evalsets.models import EvalSet
from judging.models import Assessor
from labels.exports.trec import qrels
from labels.services.publishing import publish_release

BAR = 2.0

FILL = """
INSERT INTO evalsets_question
    (evalset_id, external_id, text, narrative, slices, split, answerable, "group", scope, facts)
SELECT %(evalset)s, 'question-' || n, 'What is ' || n || '?', '', '{}', '', true, '', '', '[]'
FROM generate_series(1, %(questions)s) n;
INSERT INTO evalsets_chunk (evalset_id, external_id) SELECT %(evalset)s, 'handbook/chapter-' || n %% 97 || '#' || n
FROM generate_series(1, %(labels)s) n;
INSERT INTO judging_judgment
    (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source, note, spans, facts, details)
SELECT %(evalset)s, q.id, c.id, 1, %(assessor)s, 'grade', (q.id * 7 + c.id * 13) %% 4,
       '', 'import', '', '[]', '{}', '{}'
FROM evalsets_question q CROSS JOIN evalsets_chunk c;
CREATE TABLE bare AS
SELECT q.external_id AS question, 0 AS iteration, c.external_id AS chunk, j.grade
FROM judging_judgment j JOIN evalsets_question q ON q.id = j.question_id JOIN evalsets_chunk c ON c.id = j.chunk_id
ORDER BY q.external_id, c.external_id;
ANALYZE;
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=1000, help="For each question.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    with own_database():
        result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{result['labels']:,} labels: export {result['export_seconds']:.2f} s, "
        f"COPY TO {result['copy_seconds']:.2f} s, ratio {result['ratio']:.2f} (bar {BAR:g}); "
        f"memory grew by {result['grown_megabytes']:.0f} MB while exporting; "
        f"publishing took {result['publish_seconds']:.1f} s"
    )


def measure(options: argparse.Namespace) -> dict[str, float]:
    evalset = EvalSet.objects.create(slug="benchmark", name="Benchmark")
    assessor = Assessor.objects.create(evalset=evalset, kind="file", name="qrels")
    with connection.cursor() as cursor:
        sizes = {"questions": options.questions, "labels": options.labels}
        cursor.execute(FILL, {"evalset": evalset.pk, "assessor": assessor.pk, **sizes})
    begun = time.perf_counter()
    release = publish_release(evalset=evalset, by=None).release
    publish_seconds = time.perf_counter() - begun

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.txt"), Path(folder, "theirs.txt")
        write(ours, qrels(release))  # warms the cache for both
        exports, copies = [], []
        before = peak_megabytes()
        for _ in range(options.rounds):
            exports.append(timed(lambda: write(ours, qrels(release))))
        grown = peak_megabytes() - before
        for _ in range(options.rounds):
            copies.append(timed(lambda: write(theirs, copied())))
            exports.append(timed(lambda: write(ours, qrels(release))))
        assert ours.read_bytes() == theirs.read_bytes()
    export, copy = statistics.median(exports), statistics.median(copies)
    return {
        "labels": release.counts["labels"],
        "export_seconds": export,
        "copy_seconds": copy,
        "ratio": export / copy,
        "bar": BAR,
        "grown_megabytes": grown,
        "publish_seconds": publish_seconds,
    }


def copied() -> Iterable[bytes]:
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY bare TO STDOUT (FORMAT csv, DELIMITER ' ')") as copy,
    ):
        yield from copy


def write(path: Path, blocks: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        for block in blocks:
            file.write(block)


def timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

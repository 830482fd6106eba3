"""Scoring 10 runs of 1,000 questions to depth 1,000 by all measures, against pytrec_eval on data in memory.

    .venv/bin/python benchmarks/score_runs.py [--runs 10] [--questions 1000] [--depth 1000] [--labels 100]
    [--json]

Ours reads release and rankings from the database, scores, and stores every question's values. The reference
is pytrec_eval alone, on dictionaries that are there already, with the measures that it has. Both are measured
in turns in the same run. The bar is a ratio of 1.5. A database of its own is made and dropped.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import datetime
import json
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

import numpy as np
import pytrec_eval

from benchmarks.database import own_database
from evalsets.models import EvalSet, Question
from labels.models import Release, ReleaseQuestion
from pooling.models import Run, System
from pooling.pgcopy import ArrayColumn, bigint_field, binary_copy, write_rows
from scoring.measures import gain_of
from scoring.services.scoring import resolve, score_runs

BAR = 1.5
MEASURES = [
    *("Recall@5", "Recall@10", "Recall@100", "RR@10", "RR", "P@5", "P@10", "Success@1", "Success@5"),
    *("AP@10", "AP", "nDCG@5", "nDCG@10", "nDCG", "Judged@10", "Bpref", "RBP(p=0.8)", "infAP"),
]
REFERENCE = {
    *("recall.5,10,100", "recip_rank", "P.5,10", "success.1,5", "map_cut.10", "map"),
    *("ndcg_cut.5,10", "ndcg", "bpref", "infAP"),
}
RELATED = 5  # times the depth: the chunks among which a question's rankings and labels are drawn


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=100, help="Labels a question.")
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()

    with own_database():
        result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"{result['entries']:,} entries, {len(MEASURES)} measures: scored in {result['score_seconds']:.2f} s, "
        f"pytrec_eval alone {result['reference_seconds']:.2f} s, ratio {result['ratio']:.2f} (bar {BAR:g}), "
        f"peak memory {result['peak_megabytes']} MB"
    )


def measure(options: argparse.Namespace) -> dict[str, float]:
    rng = np.random.default_rng(1)
    release, grades = make_release(options, rng)
    qrels = {
        str(q): {str(chunk): gain_of(grade, "exponential") for chunk, grade in known.items()}
        for q, known in enumerate(grades)
    }
    asked = resolve(release, measures=MEASURES)
    made = [make_run(release.evalset, number, options, rng) for number in range(options.runs)]
    begin = time.perf_counter()
    results = score_runs(release=release, runs=[run for run, _ in made], asked=asked).results
    scored = time.perf_counter() - begin
    falling = [float(options.depth - rank) for rank in range(options.depth)]
    reference = 0.0
    for (_, rankings), result in zip(made, results, strict=True):
        ours = {
            str(q): dict(zip(map(str, chunks), falling, strict=True))
            for q, chunks in enumerate(rankings.tolist())
        }
        begin = time.perf_counter()
        theirs = pytrec_eval.RelevanceEvaluator(qrels, REFERENCE).evaluate(ours)
        reference += time.perf_counter() - begin
        mean = np.mean([values["ndcg_cut_10"] for values in theirs.values()])
        assert abs(mean - result.document["measures"]["nDCG@10"]) < 1e-9, "the two do not agree"
    return {
        "entries": options.runs * options.questions * options.depth,
        "score_seconds": scored,
        "reference_seconds": reference,
        "ratio": scored / reference,
        "bar": BAR,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def make_release(
    options: argparse.Namespace, rng: np.random.Generator
) -> tuple[Release, list[dict[int, int]]]:
    """A release with as many labels as asked for, of chunks that need no rows of their own."""
    evalset = EvalSet.objects.create(slug="benchmark", name="Benchmark")
    questions = Question.objects.bulk_create(
        Question(evalset=evalset, external_id=f"q{n:06}", text="text") for n in range(options.questions)
    )
    release = Release.objects.create(
        evalset=evalset,
        number=1,
        content_hash="0" * 64,
        scale=evalset.scale,
        threshold=1,
        gain="exponential",
        settle_policy="majority",
        counts={},
        provenance={"pools": [], "runs": [], "born_from": {}},
    )
    grades = []
    rows = []
    for number, question in enumerate(questions):
        chunks = sorted(rng.permutation(RELATED * options.depth)[: options.labels].tolist())
        known = dict(zip(chunks, rng.integers(0, 4, len(chunks)).tolist(), strict=True))
        known[chunks[0]] = 3  # every question has a relevant label
        grades.append(known)
        rows.append(
            ReleaseQuestion(
                release=release,
                question=question,
                position=number,
                external_id=question.external_id,
                details=question.as_json(),
                chunk_ids=chunks,
                external_ids=[str(chunk) for chunk in chunks],
                revisions=[1] * len(chunks),
                grades=list(known.values()),
                why=["unanimous"] * len(chunks),
                judgment_counts=[1] * len(chunks),
            )
        )
    ReleaseQuestion.objects.bulk_create(rows)
    return release, grades


def make_run(
    evalset: EvalSet, number: int, options: argparse.Namespace, rng: np.random.Generator
) -> tuple[Run, np.ndarray]:
    """A run whose rankings are drawn at random, and they themselves, one row a question."""
    run = Run.objects.create(
        evalset=evalset,
        system=System.objects.create(evalset=evalset, name=f"system {number}"),
        name=f"run {number}",
        date=datetime.date(2026, 1, 1),
        content_hash=f"{number:064x}",
    )
    rankings = np.array(
        [rng.permutation(RELATED * options.depth)[: options.depth] for _ in range(options.questions)]
    )
    ids = list(Question.objects.filter(evalset=evalset).order_by("external_id").values_list("pk", flat=True))
    column = ArrayColumn(rankings.ravel(), "int4")
    with binary_copy("pooling_ranking", ["run_id", "question_id", "chunk_ids"]) as copy:
        write_rows(
            copy,
            (
                (
                    bigint_field(run.pk),
                    bigint_field(question),
                    column.field(place * options.depth, (place + 1) * options.depth),
                )
                for place, question in enumerate(ids)
            ),
        )
    return run, rankings


if __name__ == "__main__":
    main()

"""Comparing two runs on a release: read, pair, resample, log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.db import transaction

from evalsets.errors import BadInput
from evalsets.models import User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from labels.models import Release, labels_of_models_in_words
from pooling.models import Run
from scoring.comparison import (
    ComparisonRefused,
    Missing,
    Paired,
    PoolMembership,
    by_slice,
    configuration_differences,
    notes,
    paired,
    read,
    refuse_if_not_run,
    regressions,
    sentence,
)
from scoring.matching import match
from scoring.measures import Measure
from scoring.models import Comparison, ScoreResult, rate_beside
from scoring.reading import Known
from scoring.resampling import RESAMPLES, SEED, holm
from scoring.scores import CODE_VERSION, Plan, Questions
from scoring.services.scoring import Asked, Prepared, Scored, digest, score_prepared


def compare_runs(
    *,
    release: Release,
    run_a: Run,
    run_b: Run,
    asked: Asked,
    seed: int = SEED,
    by: User | None = None,
    progress: Progress = silent,
) -> list[Comparison]:
    """Compare run B with run A by each measure, log each comparison, and return them in the order of the
    measures.

    The policy of `asked` plays no part: raw and judged-only are always shown side by side, and the pairing is
    raw. A comparison made before is found again and not counted anew. BadInput where the two cannot be
    compared at all: a run that returned nothing, two identical runs, missing rankings, no question in common.
    """
    if run_a.pk == run_b.pk:
        raise BadInput(f"“{run_a.name}” cannot be compared with itself: name two runs.")
    prepared = Prepared(release, [run_a, run_b], asked)
    _refuse(prepared, run_a, run_b)
    raw, condensed = (
        score_prepared(
            prepared,
            asked=replace(asked, rules=asked.rules._replace(policy=policy)),
            by=by,
            progress=progress,
        )
        for policy in ("raw", "judged-only")
    )
    if not len(raw.plan.scored):
        raise BadInput(
            f"No question could be scored on release {release.number}: none has a label at "
            f"{asked.rules.threshold} or above and a ranking in both runs."
        )
    return [_compare(prepared, raw, condensed, measure, asked, seed, by) for measure in asked.measures]


def _refuse(prepared: Prepared, run_a: Run, run_b: Run) -> None:
    """Raise BadInput where a run did not run."""
    try:
        refuse_if_not_run(
            run_a.name, prepared.load(run_a).rankings, run_b.name, prepared.load(run_b).rankings
        )
    except ComparisonRefused as error:
        raise BadInput(f"Not compared: {error}.") from None


@transaction.atomic
def _compare(
    prepared: Prepared,
    raw: Scored,
    condensed: Scored,
    measure: Measure,
    asked: Asked,
    seed: int,
    by: User | None,
) -> Comparison:
    raw_a, raw_b = raw.results
    release = raw.known.release
    low = release.evalset.low_unjudged_rate
    key = digest(raw_a.key, raw_b.key, measure.name, seed, RESAMPLES, low, CODE_VERSION)
    found = Comparison.objects.filter(key=key).first()
    if found is not None:
        return found
    comparison, made = Comparison.objects.get_or_create(
        key=key,
        defaults={
            "evalset": release.evalset,
            "release": release,
            "run_a": raw_a.run,
            "run_b": raw_b.run,
            "measure": measure.name,
            "split": asked.split,
            "uses_holdout": _uses_holdout(raw.known, raw.plan),
            "seed": seed,
            "raw_a": raw_a,
            "raw_b": raw_b,
            "document": comparison_document(prepared, raw, condensed, measure, asked, seed),
            "created_by": by,
        },
    )
    if made:
        record_event(
            evalset=release.evalset,
            by=by,
            verb="runs-compared",
            summary=f"Compared {raw_b.run.name} with {raw_a.run.name} by {measure.name} on release {release.number}.",
            details={"comparison": comparison.pk, "release": release.number, "measure": measure.name},
        )
    return comparison


def comparison_document(
    prepared: Prepared, raw: Scored, condensed: Scored, measure: Measure, asked: Asked, seed: int
) -> dict[str, Any]:
    """What `compare --json` says of one measure, but for the number of comparisons made so far."""
    (doc_a, doc_b), name = (raw.results[0].document, raw.results[1].document), measure.name
    rates = (rate_beside(doc_a, name), rate_beside(doc_b, name))
    unjudged = (_unjudged_by_question(doc_a, name), _unjudged_by_question(doc_b, name))
    a, b = values_of(doc_a, name), values_of(doc_b, name)
    result = paired(a, b, seed=seed)
    questions, scored = raw.known.questions, raw.plan.scored
    worse = regressions(scored, a, b)
    run_a, run_b = raw.results[0].run, raw.results[1].run
    differences = configuration_differences(config_of(run_a), config_of(run_b))
    low = raw.known.release.evalset.low_unjudged_rate
    missing = missing_pairs(prepared, measure) if max(rates) > low else Missing()
    reading = read(
        *rates,
        depth=measure.depth,
        missing=missing,
        pooled=[pool_membership(raw.known.release, run) for run in (run_a, run_b)],
        differences=differences,
        low=low,
    )
    claim = sentence(name, measure.depth, result, rates, reading, worse, questions)
    of_models = labels_of_models_in_words(raw.known.release.of_models)
    return {
        "reading": reading.word,
        "why": list(reading.why),
        "remedy": reading.remedy or None,
        "only_contested": missing.only_contested,
        "measure": name,
        "release": raw.known.release.number,
        "hash": raw.known.release.content_hash,
        **raw.known.release.of_models,
        "threshold": asked.rules.threshold,
        "gain": asked.rules.gain,
        "unit": asked.unit.value,
        "split": asked.split or None,
        "a": side(raw.results[0], condensed.results[0], name),
        "b": side(raw.results[1], condensed.results[1], name),
        **_numbers(result),
        "notes": notes(result),
        "regressions": _changes(questions, worse, unjudged),
        "improvements": _changes(questions, regressions(scored, -a, -b), unjudged, sign=-1.0),
        "slices": [
            {"slice": one.name, **_numbers(one.paired), "warning": one.warning or None}
            for one in by_slice(questions, scored, a, b, seed=seed)
        ],
        "configuration_differences": differences,
        "skipped": doc_a["skipped"],
        "sentence": " ".join(said for said in (claim, of_models) if said),
    }


def missing_pairs(prepared: Prepared, measure: Measure) -> Missing:
    """What either run returns within the measure's depth and is unjudged, on the questions that the rates count."""
    truth, contested = prepared.truth, _contested(prepared.known)
    counted = np.diff(truth.first) > 0
    if prepared.plan.considered is not None:
        counted &= np.isin(np.arange(len(counted)), prepared.plan.considered)
    pairs = []
    for run in prepared.runs:
        loaded = prepared.load(run)
        graded = match(truth, loaded.rankings, loaded.inadmissible, loaded.truncated)
        question = np.repeat(graded.question, np.diff(graded.start))
        wanted = graded.unjudged & counted[question]
        if measure.k is not None:
            wanted &= graded.rank <= measure.k
        pairs.append(_one_number(question[wanted], graded.chunk[wanted]))
    found = np.unique(np.concatenate(pairs))
    return Missing(len(found), int(np.isin(found, contested).sum()))


def _contested(known: Known) -> np.ndarray:
    """The pairs that people differed on when the release was made, each as one number."""
    number_of = {question: number for number, question in enumerate(known.question_ids)}
    rows = known.release.release_questions.exclude(unlabelled=[]).values_list("question_id", "unlabelled")
    pairs = [
        (number_of[question], item["chunk_id"])
        for question, items in rows
        for item in items
        if item["why"] == "contested"
    ]
    return _one_number(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T)


def _one_number(question: np.ndarray, chunk: np.ndarray) -> np.ndarray:
    """Pairs of a question's number and a Chunk.id (of 32 bits), each as one number."""
    return (question << 32) | chunk


def values_of(document: dict[str, Any], measure: str) -> np.ndarray:
    """The values of a measure in a stored document, one a scored question."""
    return np.array([question["measures"][measure] for question in document["questions"]], dtype=np.float64)


def side(raw: ScoreResult, condensed: ScoreResult, measure: str) -> dict[str, Any]:
    """One run's numbers by one measure: raw and judged-only, with the unjudged rate that belongs to both."""
    return {
        "run": raw.run.name,
        "system": raw.run.system.name,
        "raw": raw.document["measures"][measure],
        "judged_only": condensed.document["measures"][measure],
        "unjudged": rate_beside(raw.document, measure),
    }


def _numbers(result: Paired) -> dict[str, Any]:
    return {
        "n": result.n,
        "wins": result.wins,
        "losses": result.losses,
        "ties": result.ties,
        "difference": result.difference,
        "interval": list(result.interval),
        "p": result.p,
        "seed": result.seed,
        "resamples": result.resamples,
    }


def _unjudged_by_question(document: dict[str, Any], measure: str) -> dict[str, float]:
    return {row["id"]: rate_beside(row, measure) for row in document["questions"]}


def _changes(
    questions: Questions,
    changes: Sequence[Any],
    unjudged: tuple[dict[str, float], dict[str, float]],
    sign: float = 1.0,
) -> list[dict[str, Any]]:
    rows = []
    for change in changes:
        question = questions.ids[change.question]
        rates = {f"unjudged_{side}": rate[question] for side, rate in zip("ab", unjudged, strict=True)}
        rows.append({"id": question, "a": sign * change.a, "b": sign * change.b, **rates})
    return rows


def config_of(run: Run) -> dict[str, Any]:
    """What must be frozen of a run's recorded configuration; the k asked for is recorded beside it."""
    return {**run.config, "k": run.k if run.k is not None else run.config.get("k")}


def pool_membership(release: Release, run: Run) -> PoolMembership:
    """How deep the run was pooled for the release, at most."""
    runs = release.provenance["runs"]
    depths = [item["k"] for item in runs if item["run_id"] == run.pk and item["pooled"]]
    return PoolMembership(run.name, max(depths, default=None))


def _uses_holdout(known: Known, plan: Plan) -> bool:
    questions = known.arrays.questions
    return any(questions[number].details.get("split") == "holdout" for number in plan.scored.tolist())


def comparisons_so_far(release: Release) -> int:
    """How many comparisons have been made on the release."""
    return Comparison.objects.filter(release=release).count()


def holdout_uses(release: Release) -> int:
    """How many of the comparisons on the release looked at the holdout split."""
    return Comparison.objects.filter(release=release, uses_holdout=True).count()


def full_document(comparison: Comparison, *, margin: float = 0.0) -> dict[str, Any]:
    """The stored document with what changes as more comparisons are made, and whether a regression is shown."""
    document = comparison.document
    high = document["interval"][1]
    return {
        **document,
        "margin": margin,
        "regression_shown": document["reading"] == "meaningful" and high < -margin,
        "comparisons_so_far": comparisons_so_far(comparison.release),
        "holdout_uses": holdout_uses(comparison.release),
        "page": comparison.get_absolute_url(),
    }


def comparison_answer(comparisons: Sequence[Comparison], *, margin: float = 0.0) -> dict[str, Any]:
    """The whole of `compare --json`: the first measure's document, all of them under "all", and the worst `status`.

    Status 0: no regression beyond the margin is shown; 1: one is; 2: the comparison may not be read.
    """
    documents = with_holm([full_document(one, margin=margin) for one in comparisons])
    if any(document["reading"] != "meaningful" for document in documents):
        status = 2
    else:
        status = int(any(document["regression_shown"] for document in documents))
    return {**documents[0], "all": documents, "status": status}


def with_holm(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The documents of one sweep, each with the p-value adjusted for how many there are."""
    adjusted = holm([document["p"] for document in documents])
    return [{**document, "p_holm": p} for document, p in zip(documents, adjusted, strict=True)]

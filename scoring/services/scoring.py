"""Scoring runs on a release. What has been computed once is stored and found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction

from evalsets.errors import BadInput
from evalsets.models import Chunk, User
from evalsets.progress import Progress, silent
from judging.models import Judgment
from labels.models import Release, ReleaseQuestion
from pooling.models import Ranking, Run
from scoring.classes import BoolArray, IntArray, Truth
from scoring.documents import deepest, run_document, strict_report
from scoring.facts import Coverage, fact_coverage
from scoring.measures import GAINS, Gain, Measure, MeasureError, parse_measures
from scoring.models import Policy, ScoreResult, Unit
from scoring.policies import POLICIES, UnjudgedError
from scoring.reading import Known, LoadedRun, by_document, read_known, read_run
from scoring.scores import CODE_VERSION, MissingRankings, Plan, Rules, plan_questions, score_run


@dataclass(frozen=True)
class Asked:
    """What is asked of every run: measures and rules, all resolved. Made by `resolve`."""

    measures: tuple[Measure, ...]
    rules: Rules
    unit: Unit
    split: str
    common: bool


def resolve(
    release: Release,
    *,
    measures: Sequence[str],
    policy: str = Policy.RAW,
    unit: str = Unit.CHUNK,
    threshold: int | None = None,
    gain: str | None = None,
    split: str = "",
    common: bool = False,
) -> Asked:
    """What is asked, with the release's own threshold and gain where none is given; BadInput where it is wrong."""
    try:
        parsed = parse_measures(measures)
    except MeasureError as error:
        raise BadInput(str(error)) from None
    chosen_threshold = release.threshold if threshold is None else threshold
    highest = len(release.scale) - 1
    for level in (chosen_threshold, *(measure.rel for measure in parsed if measure.rel)):
        if not 1 <= level <= highest:
            raise BadInput(
                f"The threshold {level} is not a grade from 1 to {highest}, the highest of the scale."
            )
    chosen_gain = gain or release.gain
    if chosen_gain not in GAINS:
        raise BadInput(f"“{chosen_gain}” is not a gain. Known: {', '.join(GAINS)}.")
    if policy not in POLICIES:
        raise BadInput(f"“{policy}” is not a policy. Known: {', '.join(POLICIES)}.")
    if unit not in Unit.values:
        raise BadInput(f"“{unit}” is not a unit. Known: {', '.join(Unit.values)}.")
    if split not in ("", "dev", "holdout"):
        raise BadInput(f"“{split}” is not a split. Known: dev, holdout.")
    gains: dict[str, Gain] = {name: name for name in GAINS}
    rules = Rules(chosen_threshold, gains[chosen_gain], {name: name for name in POLICIES}[policy])
    return Asked(parsed, rules, Unit(unit), split, common)


@dataclass(frozen=True)
class Scored:
    """The results of all runs, in the order asked for, with the arrays they were computed from."""

    results: list[ScoreResult]
    known: Known
    plan: Plan


class Prepared:
    """A release, the runs to score on it, and the questions on which; `load` reads a run when it is wanted.

    A few runs stay in memory, since a comparison wants them under two policies; of many, one at a time does.
    """

    KEPT = 2

    def __init__(self, release: Release, runs: Sequence[Run], asked: Asked) -> None:
        if not runs:
            raise BadInput("Name at least one run to score.")
        self.runs = list(runs)
        self.known = read_known(release)
        self._loaded: dict[int, LoadedRun] = {}
        if asked.unit == Unit.DOCUMENT:
            self._loaded = {run.pk: read_run(run, self.known) for run in runs}
            by_document(self.known, list(self._loaded.values()))
        self.truth = self.known.truth()
        self.plan = plan_for(self.known, self.truth, runs, asked)

    def load(self, run: Run) -> LoadedRun:
        loaded = self._loaded.get(run.pk) or read_run(run, self.known)
        if len(self.runs) <= self.KEPT:
            self._loaded[run.pk] = loaded
        return loaded


def score_runs(
    *,
    release: Release,
    runs: Sequence[Run],
    asked: Asked,
    by: User | None = None,
    progress: Progress = silent,
) -> Scored:
    """Score the runs on the release, all on the same questions, and store what is new.

    BadInput, with a report, where a run has no ranking for a question to be scored (unless the common
    questions are asked for), and under the strict policy where a returned chunk is unjudged.
    """
    return score_prepared(Prepared(release, runs, asked), asked=asked, by=by, progress=progress)


def score_prepared(
    prepared: Prepared, *, asked: Asked, by: User | None = None, progress: Progress = silent
) -> Scored:
    """Score what has been prepared; `asked` may differ from what it was prepared for in its policy alone."""
    known, plan, runs = prepared.known, prepared.plan, prepared.runs
    results = []
    for done, run in enumerate(runs):
        progress(done, len(runs), f"Scoring {run.name}")
        key = _key(known, run, asked, plan)
        result = ScoreResult.objects.filter(key=key).select_related("run__system", "release").first()
        if result is None:
            document = _score(known, prepared.truth, prepared.load(run), asked, plan)
            result = _store(known.release, run, asked, key, document, by)
        results.append(result)
    progress(len(runs), len(runs), "Done")
    return Scored(results, known, plan)


def plan_for(known: Known, truth: Truth, runs: Sequence[Run], asked: Asked) -> Plan:
    """The questions to score for all the runs; BadInput, with a report, where rankings are missing."""
    ranked = {}
    for run in runs:
        question_ids = Ranking.objects.filter(run=run).values_list("question_id", flat=True)
        numbers, is_known = known.numbers(np.array(list(question_ids), dtype=np.int64))
        ranked[run.name] = numbers[is_known]
    try:
        return plan_questions(
            truth,
            known.questions,
            asked.measures,
            asked.rules,
            ranked,
            common=asked.common,
            considered=known.considered(asked.split),
        )
    except MissingRankings as error:
        report = {"error": str(error), "missing": {run: list(ids) for run, ids in error.missing.items()}}
        raise BadInput(str(error), report=report) from None


def _key(known: Known, run: Run, asked: Asked, plan: Plan) -> str:
    """SHA-256 over all that the numbers depend on."""
    return digest(
        known.release.content_hash,
        run.pk,
        run.content_hash,
        [measure.name for measure in asked.measures],
        list(asked.rules),
        asked.unit,
        asked.split,
        known.release.evalset.count_inadmissible,
        known.digest,
        plan.scored.tolist(),
        CODE_VERSION,
    )


def digest(*parts: Any) -> str:
    """SHA-256 of a JSON document of the parts, in hexadecimal."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def _score(known: Known, truth: Truth, loaded: LoadedRun, asked: Asked, plan: Plan) -> dict[str, Any]:
    try:
        scores = score_run(
            truth,
            plan,
            loaded.rankings,
            asked.measures,
            asked.rules,
            inadmissible=loaded.inadmissible,
            truncated=loaded.truncated,
        )
    except UnjudgedError as error:
        names = Chunk.objects.filter(pk__in={one.chunk for one in error.entries})
        chunk_ids = dict(names.values_list("pk", "external_id"))
        report = strict_report(error, loaded.run.name, known, chunk_ids)
        some = "; ".join(
            f"{e['question']}: {e['chunk']} at rank {e['rank']}" for e in report["unjudged"][:20]
        )
        more = " …" if len(report["unjudged"]) > 20 else ""
        raise BadInput(f"{report['error']}: {some}{more}", report=report) from None
    except ValueError as error:
        raise BadInput(f"Run “{loaded.run.name}”: {error}") from None
    depth, considered = deepest(asked.measures), known.considered(asked.split)
    coverage = covered_facts(known, loaded, depth, considered)
    return run_document(known, loaded, scores, coverage, depth, considered)


def covered_facts(
    known: Known, loaded: LoadedRun, depth: int | None, considered: IntArray | None = None
) -> list[Coverage]:
    """Which required facts the first chunks of the run support, by the judgments that the release was made of."""
    ranked = set(loaded.rankings.question.tolist())
    if considered is not None:
        ranked &= set(considered.tolist())
    facts = {
        number: [str(fact["id"]) for fact in question.details["facts"]]
        for number, question in enumerate(known.arrays.questions)
        if number in ranked and question.details["facts"] and known.questions.answerable[number]
    }
    if not facts:
        return []
    return fact_coverage(
        facts,
        fact_support(known),
        loaded.rankings,
        k=depth,
        classes=known.classes,
        excluded=_excluded(loaded),
    )


def _excluded(loaded: LoadedRun) -> BoolArray | None:
    if loaded.truncated is None or loaded.inadmissible is None:
        return loaded.truncated if loaded.inadmissible is None else loaded.inadmissible
    return loaded.truncated | loaded.inadmissible


def fact_support(known: Known) -> dict[tuple[int, int], set[str]]:
    """The facts that each pair supports, (question number, Chunk.id) -> fact IDs, by the release's own judgments."""
    frozen: dict[int, int] = {}
    for question, ids in ReleaseQuestion.objects.filter(release=known.release).values_list(
        "question_id", "judgment_ids"
    ):
        frozen.update(dict.fromkeys(ids, question))
    number_of = {question_id: number for number, question_id in enumerate(known.question_ids)}
    support: dict[tuple[int, int], set[str]] = {}
    judged = Judgment.objects.filter(evalset=known.release.evalset, kind=Judgment.Kind.GRADE)
    for pk, question, chunk, facts, later in judged.exclude(facts=[]).values_list(
        "pk", "question_id", "chunk_id", "facts", "replaced_by"
    ):
        if pk in frozen and later not in frozen:
            support.setdefault((number_of[question], chunk), set()).update(facts)
    return support


@transaction.atomic
def _store(
    release: Release, run: Run, asked: Asked, key: str, document: dict[str, Any], by: User | None
) -> ScoreResult:
    result, _ = ScoreResult.objects.get_or_create(
        key=key,
        defaults={
            "evalset": release.evalset,
            "release": release,
            "run": run,
            "release_hash": release.content_hash,
            "run_hash": run.content_hash,
            "measures": [measure.name for measure in asked.measures],
            "policy": asked.rules.policy,
            "unit": asked.unit,
            "threshold": asked.rules.threshold,
            "gain": asked.rules.gain,
            "split": asked.split,
            "count_inadmissible": release.evalset.count_inadmissible,
            "code_version": CODE_VERSION,
            "document": document,
            "created_by": by,
        },
    )
    return result


def score_document(results: Sequence[ScoreResult]) -> dict[str, Any]:
    """The whole of `score --json` for results of one release under one set of rules."""
    first = results[0]
    return {
        "release": first.release.number,
        "hash": first.release_hash,
        **first.release.of_models,
        "threshold": first.threshold,
        "gain": first.gain,
        "policy": first.policy,
        "unit": first.unit,
        "split": first.split or None,
        "inadmissible": "by label" if first.count_inadmissible else "not relevant",
        "code_version": first.code_version,
        "runs": [result.document for result in results],
    }

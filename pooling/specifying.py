"""Specifying a pool: all that determines it, what is wrong with it, and what a lead should know before they build."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Count

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Question
from pooling.adaptive import ADAPTIVE
from pooling.models import Pool, Ranking, Run
from pooling.rankings import QuestionIds, RunToDepth
from pooling.strategies import complete_parameters, needs_scores

SHOWN = 5


@dataclass(frozen=True)
class PoolSpecification:
    """All that determines a pool. Two equal specifications are one pool."""

    evalset: EvalSet
    runs: tuple[RunToDepth, ...]
    strategy: str
    parameters: Mapping[str, Any]
    question_filter: Mapping[str, Any]
    question_ids: QuestionIds  # sorted
    extends: Pool | None = None
    seed: int = 0

    @property
    def is_adaptive(self) -> bool:
        """Whether the order of its pairs follows the grades while people judge."""
        return self.strategy in ADAPTIVE

    @property
    def digest(self) -> str:
        """SHA-256 of the specification. The order of the runs is not part of it: their union is the same."""
        return _digest([*self._said(), self.seed])

    @property
    def reads_at_most(self) -> int:
        """How many entries of rankings the pool can have to read: what it costs to preview and to build."""
        return len(self.question_ids) * sum(k for _, k in self.runs)

    @property
    def lottery(self) -> int:
        """The seed of what a strategy draws by lot: two pools draw independently, the same pool always the same."""
        return int(self.digest[:15], 16)

    def with_own_seed(self) -> PoolSpecification:
        """The same with a seed drawn from its content, so that building twice without a seed is one pool."""
        seed = int(_digest(self._said())[:15], 16)
        return PoolSpecification(**{**self.__dict__, "seed": seed})

    def _said(self) -> list[Any]:
        return [
            self.evalset.pk,
            sorted([run.pk, run.content_hash, k] for run, k in self.runs),
            self.strategy,
            dict(self.parameters),
            hashlib.sha256(self.question_ids.astype("<i8").tobytes()).hexdigest(),
            self.extends.pk if self.extends else None,
        ]


def _digest(said: list[Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def specify_pool(
    *,
    evalset: EvalSet,
    runs: Sequence[RunToDepth | tuple[Run, int]],
    strategy: str = Pool.Strategy.DEPTH,
    parameters: Mapping[str, Any] | None = None,
    question_filter: Mapping[str, Any] | None = None,
    extends: Pool | None = None,
    seed: int | None = None,
) -> PoolSpecification:
    """What a pool of these runs is made of; raises BadInput that says what is wrong.

    `question_filter` may have `slice`, `split` and `questions` (a list of IDs); a question passes all that are given.
    Without a seed, one is drawn from the specification itself.
    """
    to_depth = tuple(RunToDepth(run, k) for run, k in runs)
    if not to_depth:
        raise BadInput("A pool needs at least one run.")
    for run, k in to_depth:
        if run.evalset_id != evalset.pk:
            raise BadInput(f"Run {run} belongs to another eval set.")
        if k < 1:
            raise BadInput(f"Run {run}: the depth is a whole number of at least 1; got {k}.")
    if len({run.pk for run, _ in to_depth}) < len(to_depth):
        raise BadInput("A run is named twice; give each run once, with its depth.")
    if extends is not None and extends.evalset_id != evalset.pk:
        raise BadInput(f"Pool {extends} belongs to another eval set.")
    try:
        completed = complete_parameters(strategy, parameters or {})
    except ValueError as error:
        raise BadInput(str(error)) from None
    if needs_scores(completed):
        _refuse_runs_without_scores(to_depth, completed["fusion"])
    asked = {name: value for name, value in (question_filter or {}).items() if value}
    specification = PoolSpecification(
        evalset=evalset,
        runs=to_depth,
        strategy=strategy,
        parameters=completed,
        question_filter=asked,
        question_ids=_question_ids(evalset, asked),
        extends=extends,
        seed=seed or 0,
    )
    return specification if seed is not None else specification.with_own_seed()


def specification_of(pool: Pool) -> PoolSpecification:
    """The specification that a pool was built from. Rankings never change, so it gives the same pool again."""
    return PoolSpecification(
        evalset=pool.evalset,
        runs=tuple(RunToDepth(item.run, item.k) for item in pool.pool_runs.select_related("run__system")),
        strategy=pool.strategy,
        parameters=pool.parameters,
        question_filter=pool.question_filter,
        question_ids=_sorted_ids(pool.pool_questions.values_list("question_id", flat=True)),
        extends=pool.extends,
        seed=pool.seed,
    )


def _sorted_ids(ids: Any) -> QuestionIds:
    return np.sort(np.fromiter(ids, np.int64))


def _question_ids(evalset: EvalSet, asked: Mapping[str, Any]) -> QuestionIds:
    unknown_filters = asked.keys() - {"slice", "split", "questions"}
    if unknown_filters:
        raise BadInput(
            f"Questions are chosen by slice, split or questions, not by {', '.join(unknown_filters)}."
        )
    questions = Question.objects.filter(evalset=evalset)
    if "slice" in asked:
        questions = questions.filter(slices__contains=[asked["slice"]])
    if "split" in asked:
        questions = questions.filter(split=asked["split"])
    if "questions" in asked:
        listed = list(dict.fromkeys(asked["questions"]))
        known = set(
            Question.objects.filter(evalset=evalset, external_id__in=listed).values_list(
                "external_id", flat=True
            )
        )
        unknown = [qid for qid in listed if qid not in known]
        if unknown:
            raise BadInput(
                f"{len(unknown)} of the listed questions are not in this eval set: {named(unknown)}."
            )
        questions = questions.filter(external_id__in=listed)
    ids = _sorted_ids(questions.values_list("pk", flat=True))
    if not len(ids):
        raise BadInput("No question matches this choice." if asked else "The eval set has no questions yet.")
    return ids


def _refuse_runs_without_scores(runs: Sequence[RunToDepth], fusion: str) -> None:
    for run, _ in runs:
        if run.rankings.filter(scores__isnull=True).exclude(chunk_ids=[]).exists():
            raise BadInput(f"Run {run} has no scores, so {fusion} cannot add them up; choose rrf or votes.")


def named(names: Sequence[str], shown: int = SHOWN) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def missing_questions(specification: PoolSpecification) -> dict[int, list[str]]:
    """By position of the run, the IDs of the questions that it has no ranking for. Empty rankings are not missing."""
    wanted = specification.question_ids.tolist()
    runs = [run for run, _ in specification.runs]
    rankings = Ranking.objects.filter(run__in=runs, question__in=wanted)
    counts = dict(rankings.order_by().values_list("run").annotate(Count("pk")))
    missing = {}
    for position, run in enumerate(runs):
        if counts.get(run.pk, 0) < len(wanted):
            absent = Question.objects.filter(pk__in=wanted).exclude(
                pk__in=Ranking.objects.filter(run=run).values("question")
            )
            missing[position] = list(absent.values_list("external_id", flat=True))
    return missing


def pool_warnings(specification: PoolSpecification, missing: Mapping[int, Sequence[str]]) -> list[str]:
    """What a lead should know before they build, in sentences."""
    warnings = []
    if len(specification.runs) == 1 and specification.extends is None:
        warnings.append(
            f"Only one run: the pool belongs to {specification.runs[0].run.system}. Whatever another system finds "
            "outside it stays unjudged, and a comparison against it will not be fair."
        )
    for position, questions in missing.items():
        run = specification.runs[position].run
        warnings.append(
            f"Run {run} has no ranking for {len(questions)} "
            f"{'question' if len(questions) == 1 else 'questions'}: {named(questions)}. "
            "They are pooled from the other runs only."
        )
    return warnings

"""Specifying and building pools. Nothing here knows of judgments: a pool says what is to be looked at, not what was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import Count, Sum

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Question, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from pooling.models import Pool, PoolQuestion, PoolRun, Ranking, Run
from pooling.pgcopy import ArrayColumn, bigint_field, binary_copy, read_tagged_arrays, write_rows
from pooling.rankings import QuestionIds, RunToDepth, question_slices, read_returns
from pooling.strategies import (
    STRATEGIES,
    Flags,
    Keys,
    Pairs,
    Selection,
    complete_parameters,
    is_among,
    needs_scores,
    pair_keys,
    reading_order,
    union,
)

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
    def digest(self) -> str:
        """SHA-256 of the specification. The order of the runs is not part of it: their union is the same."""
        return _digest([*self._said(), self.seed])

    @property
    def reads_at_most(self) -> int:
        """How many entries of rankings the pool can have to read: what it costs to preview and to build."""
        return len(self.question_ids) * sum(k for _, k in self.runs)

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


# Reading


@dataclass(frozen=True)
class PooledSlice:
    """What a specification makes of one slice of questions."""

    question_ids: QuestionIds
    pairs: Pairs
    selection: Selection
    covered: Flags  # by pair, whether a pool that this one extends has it

    @property
    def in_pool(self) -> Flags:
        return self.selection.taken & ~self.covered


def pooled_slices(specification: PoolSpecification) -> Iterator[PooledSlice]:
    """The pool that a specification makes, one slice of questions after the other, straight from the rankings."""
    strategy = STRATEGIES[specification.strategy]
    chain = [pool.pk for pool in ancestors(specification.extends)]
    for question_ids in question_slices(specification.question_ids, specification.runs):
        returns = read_returns(
            specification.runs, question_ids, with_scores=needs_scores(specification.parameters)
        )
        pairs = union(returns)
        selection = strategy.select(pairs, specification.parameters)
        covered = np.zeros(len(pairs), dtype=bool)
        if chain:
            covered = is_among(pairs.key, pooled_keys(chain, question_ids))
        yield PooledSlice(question_ids, pairs, selection, covered)


def ancestors(pool: Pool | None) -> list[Pool]:
    """A pool and those it extends, directly or through others, the newest first. Empty for None."""
    chain = []
    while pool is not None:
        chain.append(pool)
        pool = pool.extends
    return chain


_POOLED = """
    SELECT 0::int4, question_id, chunk_ids FROM pooling_poolquestion
    WHERE pool_id = ANY(%s) AND question_id = ANY(%s)
"""


def pair_totals(pools: Iterable[Pool]) -> dict[int, int]:
    """By Pool.id, how many pairs each of the built pools has."""
    rows = PoolQuestion.objects.filter(pool__in=list(pools)).order_by().values("pool")
    return dict(rows.values_list("pool", Sum("chunk_ids__len")))


def pooled_keys(pool_ids: Sequence[int], question_ids: QuestionIds) -> Keys:
    """The pairs of built pools for these questions (sorted), as sorted `pair_keys` with questions by their place."""
    rows = read_tagged_arrays(_POOLED, [list(pool_ids), question_ids.tolist()])
    return np.sort(pair_keys(rows.spread(np.searchsorted(question_ids, rows.key)), rows.values))


# Building


def build_pool(
    *,
    evalset: EvalSet,
    name: str,
    runs: Sequence[RunToDepth | tuple[Run, int]],
    by: User | None,
    strategy: str = Pool.Strategy.DEPTH,
    parameters: Mapping[str, Any] | None = None,
    question_filter: Mapping[str, Any] | None = None,
    extends: Pool | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> tuple[Pool, bool]:
    """Build the pool of these runs; for arguments and BadInput see `specify_pool`.

    Returns the pool and whether it is new: the same specification gives the pool that is there, under the name it
    has. Raises BadInput where another pool has the name.
    """
    specification = specify_pool(
        evalset=evalset,
        runs=runs,
        strategy=strategy,
        parameters=parameters,
        question_filter=question_filter,
        extends=extends,
        seed=seed,
    )
    return build_specified_pool(specification=specification, name=name, by=by, progress=progress)


def build_specified_pool(
    *, specification: PoolSpecification, name: str, by: User | None, progress: Progress = silent
) -> tuple[Pool, bool]:
    """The same for a specification that is there, as after a preview."""
    name = name.strip()
    if not name or len(name) > 200:
        raise BadInput("Give the pool a name of 1 to 200 characters.")
    with transaction.atomic():
        existing = existing_pool(specification)
        if existing is not None:
            return existing, False
        pool = _claimed(specification, name, by)
        if pool is None:
            return _made_meanwhile(specification, name), False
        pairs = _write_questions(pool, specification, progress)
        runs = len(specification.runs)
        record_event(
            evalset=specification.evalset,
            by=by,
            verb="pool-built",
            summary=f"Pool {name} was built from {runs} {'run' if runs == 1 else 'runs'}: "
            f"{pairs:,} pairs for {len(specification.question_ids):,} questions.",
            details={"pool": pool.pk, "pairs": pairs},
        )
    return pool, True


def _claimed(specification: PoolSpecification, name: str, by: User | None) -> Pool | None:
    # The unique constraints decide between two who build at once: the second waits here for the first to commit.
    try:
        with transaction.atomic():
            pool = Pool.objects.create(
                evalset=specification.evalset,
                name=name,
                strategy=specification.strategy,
                parameters=dict(specification.parameters),
                seed=specification.seed,
                question_filter=dict(specification.question_filter),
                extends=specification.extends,
                specification_hash=specification.digest,
                created_by=by,
            )
    except IntegrityError:
        return None
    PoolRun.objects.bulk_create(
        PoolRun(pool=pool, run=run, position=position, k=k)
        for position, (run, k) in enumerate(specification.runs)
    )
    return pool


def existing_pool(specification: PoolSpecification) -> Pool | None:
    """The pool that was built from this very specification."""
    pools = Pool.objects.filter(evalset=specification.evalset)
    return pools.filter(specification_hash=specification.digest).first()


def _made_meanwhile(specification: PoolSpecification, name: str) -> Pool:
    pool = existing_pool(specification)
    if pool is None:
        raise BadInput(f"There is a pool named {name} already, made of something else. Choose another name.")
    return pool


_COLUMNS = [
    "pool_id",
    "question_id",
    "chunk_ids",
    "return_counts",
    "returned_by",
    "returned_rank",
    "unsampled_ids",
]


def _write_questions(pool: Pool, specification: PoolSpecification, progress: Progress) -> int:
    """Write the pool's rows; returns how many pairs it has."""
    written = done = 0
    total = len(specification.question_ids)
    for part in pooled_slices(specification):
        progress(done, total, "Pooling questions")
        with binary_copy(PoolQuestion._meta.db_table, _COLUMNS) as copy:
            write_rows(copy, _encoded_rows(pool, part))
        written += int(part.in_pool.sum())
        done += len(part.question_ids)
    progress(done, total)
    return written


def _encoded_rows(pool: Pool, part: PooledSlice) -> Iterator[tuple[bytes, ...]]:
    pairs = part.pairs
    kept = np.flatnonzero(part.in_pool)
    question, chunk, counts = pairs.question[kept], pairs.chunk[kept], pairs.return_counts[kept]
    priority = None if part.selection.priority is None else part.selection.priority[kept]
    identity = (part.question_ids[question].astype(np.uint64) << np.uint64(32)) | chunk.astype(np.uint64)
    order = reading_order(question, identity, priority, seed=pool.seed)
    counts = counts[order]
    # Where the returns of each pair, in the new order, stand in the old one.
    ends = np.cumsum(counts)
    first = pairs.starts[kept[order]]
    returns = np.repeat(first - (ends - counts), counts) + np.arange(int(counts.sum()))

    chunk_ids = ArrayColumn(chunk[order], "int4")
    return_counts = ArrayColumn(counts, "int2")
    returned_by = ArrayColumn(pairs.run[returns], "int2")
    returned_rank = ArrayColumn(pairs.rank[returns], "int4")
    none_unsampled = ArrayColumn([], "int4").field(0, 0)
    pool_id = bigint_field(pool.pk)
    pair_at = np.searchsorted(question, np.arange(len(part.question_ids) + 1)).tolist()
    return_at = np.concatenate([[0], ends])[pair_at].tolist()
    for i, question_id in enumerate(part.question_ids.tolist()):
        yield (
            pool_id,
            bigint_field(question_id),
            chunk_ids.field(pair_at[i], pair_at[i + 1]),
            return_counts.field(pair_at[i], pair_at[i + 1]),
            returned_by.field(return_at[i], return_at[i + 1]),
            returned_rank.field(return_at[i], return_at[i + 1]),
            none_unsampled,
        )

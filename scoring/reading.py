"""From the database to arrays: a release ready for scoring, and the rankings of a run in its numbers."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import QuerySet

from evalsets.models import EvalSet
from labels.models import Release
from labels.releases import Excerpt, ReleaseArrays, load_release
from pooling.models import Ranking, Run
from pooling.pgcopy import read_tagged_arrays
from scoring.admissible import ANY, ChunkLimits, QuestionLimits, inadmissible
from scoring.classes import (
    NO_GROUPS,
    BoolArray,
    Groups,
    Inadmissible,
    IntArray,
    Labels,
    Rankings,
    Truth,
    build_truth,
    groups,
)
from scoring.scores import Questions


@dataclass
class Known:
    """A release ready for scoring. Question number i is `arrays.questions[i]`; chunks are `Chunk.id` values.

    `cut_from` says of every cut passage which chunk it was cut from. `limits` is None where nothing can be
    inadmissible: no question asks for a scope or a date, or the eval set counts such chunks by their label.
    `digest` covers what the numbers depend on beside the release itself. With an `excerpt` only its question is
    there, number 0.
    """

    release: Release
    arrays: ReleaseArrays
    questions: Questions
    labels: Labels
    classes: Groups
    cut_from: Groups
    limits: tuple[QuestionLimits, ChunkLimits] | None
    excerpt: Excerpt | None = None
    documents: Groups | None = None
    _sorted_ids: IntArray = field(init=False)
    _order: IntArray = field(init=False)

    def __post_init__(self) -> None:
        ids = np.array([question.question_id for question in self.arrays.questions], dtype=np.int64)
        self._order = np.argsort(ids)
        self._sorted_ids = ids[self._order]

    @property
    def question_ids(self) -> list[int]:
        """Question.id by number."""
        return [question.question_id for question in self.arrays.questions]

    @property
    def cuts(self) -> Groups:
        """The cut passages that are in no class, nor counted by document: the others are like any chunk there."""
        if self.documents is not None:
            return NO_GROUPS
        alone = ~self.classes.holds(self.cut_from.chunk)
        return Groups(self.cut_from.chunk[alone], self.cut_from.unit[alone])

    @property
    def digest(self) -> str:
        parts = hashlib.sha256()
        for groups_or_limits in (self.documents, *(self.limits or ())):
            for array in groups_or_limits or ():
                parts.update(np.ascontiguousarray(array).tobytes() + b"|")
        return parts.hexdigest()

    def numbers(self, question_ids: IntArray) -> tuple[IntArray, BoolArray]:
        """The numbers of these questions, and which of them the release knows at all."""
        if len(self._sorted_ids) == 0:
            return np.zeros(len(question_ids), np.int64), np.zeros(len(question_ids), dtype=bool)
        at = np.minimum(np.searchsorted(self._sorted_ids, question_ids), len(self._sorted_ids) - 1)
        return self._order[at], self._sorted_ids[at] == question_ids

    def considered(self, split: str) -> IntArray | None:
        """The numbers of the questions of that split; None, all of them, where none is named."""
        if not split:
            return None
        chosen = [question.details.get("split") == split for question in self.arrays.questions]
        return np.flatnonzero(np.array(chosen, dtype=bool))

    @property
    def inadmissible(self) -> Inadmissible | None:
        """Which pairs are inadmissible; None where nothing can be."""
        if self.limits is None:
            return None
        questions, chunks = self.limits
        return partial(inadmissible, questions=questions, chunks=chunks)

    def truth(self) -> Truth:
        """What is known of each unit."""
        pooled = (self.arrays.pooled_question, self.arrays.pooled_chunk)
        return build_truth(
            self.labels,
            questions=len(self.questions.ids),
            classes=self.classes,
            documents=self.documents,
            cuts=self.cuts,
            inadmissible=self.inadmissible,
            pooled=pooled if len(pooled[0]) else None,
            chance=self.arrays.inclusion,
            by_model=self.arrays.by_model if self.arrays.by_model.any() else None,
        )


@dataclass(frozen=True)
class LoadedRun:
    """A run's rankings in a release's numbers; flags and `abstained` (by question number) where there are
    any.

    `truncated` flags what was cut to a text that nobody knows, so that it has no cut passage to be judged as.
    `unknown` counts rankings of questions that the release does not know: those asked after it was published.
    """

    run: Run
    rankings: Rankings
    truncated: BoolArray | None
    inadmissible: BoolArray | None
    abstained: dict[int, bool]
    unknown: int


def read_known(release: Release, excerpt: Excerpt | None = None) -> Known:
    """The release as arrays, or that `excerpt` of it; the unit is the chunk until `by_document` says otherwise."""
    arrays = load_release(release, excerpt)
    details = [question.details for question in arrays.questions]
    chunks = (
        None
        if excerpt is None
        else np.concatenate([arrays.chunk, arrays.class_chunk, excerpt.returned]).tolist()
    )
    questions = Questions(
        ids=tuple(question.external_id for question in arrays.questions),
        answerable=np.array([one["answerable"] for one in details], dtype=bool),
        slices=tuple(tuple(one["slices"]) for one in details),
    )
    return Known(
        release=release,
        arrays=arrays,
        questions=questions,
        labels=Labels(arrays.question, arrays.chunk, arrays.grade),
        classes=groups(arrays.class_chunk, arrays.class_number),
        cut_from=_cut_from(release.evalset, chunks),
        limits=None if release.evalset.count_inadmissible else _limits(release.evalset, details, chunks),
        excerpt=excerpt,
    )


def _cut_from(evalset: EvalSet, chunks: list[int] | None) -> Groups:
    """The cut passages and what each was cut from; of all `chunks`, by Chunk.id, or where that is None, of the set."""
    passages = evalset.chunks.exclude(cut_from=None)
    if chunks is not None:
        passages = passages.filter(pk__in=chunks)
    pairs = passages.order_by("pk").values_list("pk", "cut_from")
    return Groups(*np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T)


def _limits(
    evalset: EvalSet, details: Sequence[dict[str, Any]], chunks: list[int] | None
) -> tuple[QuestionLimits, ChunkLimits] | None:
    """The scopes and dates of questions and of the chunks' current texts, as numbers; None where none is asked for.

    A cut passage has those of its whole chunk. `chunks` are those to look at, by Chunk.id; None: all.
    """
    scopes = {
        scope: number for number, scope in enumerate(sorted({d["scope"] for d in details if d["scope"]}))
    }
    days = [d["effective_date"] for d in details]
    if not scopes and not any(days):
        return None
    asked = QuestionLimits(
        scope=np.array([scopes.get(d["scope"] or "", ANY) for d in details], dtype=np.int64),
        day=np.array(
            [datetime.date.fromisoformat(day).toordinal() if day else ANY for day in days], dtype=np.int64
        ),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, r.scope, r.effective_from, r.effective_to FROM evalsets_chunk c "
            "JOIN evalsets_chunk whole ON whole.id = coalesce(c.cut_from_id, c.id) "
            "JOIN evalsets_chunkrevision r ON r.chunk_id = whole.id AND r.number = whole.revision "
            "WHERE c.evalset_id = %(evalset)s AND (%(chunks)s::int[] IS NULL OR c.id = ANY(%(chunks)s)) "
            "AND (r.scope <> '' OR r.effective_from IS NOT NULL OR r.effective_to IS NOT NULL) ORDER BY c.id",
            {"evalset": evalset.pk, "chunks": chunks},
        )
        rows = cursor.fetchall()
    # A scope that no question asks in is still another scope than every one that is asked for.
    table = [
        (
            chunk,
            scopes.setdefault(scope, len(scopes)) if scope else ANY,
            first.toordinal() if first else ANY,
            last.toordinal() if last else ANY,
        )
        for chunk, scope, first, last in rows
    ]
    columns = np.array(table, dtype=np.int64).reshape(-1, 4).T
    return asked, ChunkLimits(*columns)


def by_document(known: Known, runs: Sequence[LoadedRun]) -> None:
    """Make the parent document the unit, for all chunks that the release or the runs name.

    A cut passage has that of its whole chunk.
    """
    named = [known.labels.chunk, known.classes.chunk, *(loaded.rankings.chunk for loaded in runs)]
    chunks = np.unique(np.concatenate(named))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, r.doc_id FROM unnest(%s::int[]) AS named (id) JOIN evalsets_chunk c USING (id) "
            "JOIN evalsets_chunk whole ON whole.id = coalesce(c.cut_from_id, c.id) "
            "JOIN evalsets_chunkrevision r ON r.chunk_id = whole.id AND r.number = whole.revision "
            "WHERE r.doc_id <> '' ORDER BY c.id",
            [chunks.tolist()],
        )
        rows = cursor.fetchall()
    numbers: dict[str, int] = {}
    known.documents = groups(
        [chunk for chunk, _ in rows], [numbers.setdefault(document, len(numbers)) for _, document in rows]
    )


def read_run(run: Run, known: Known) -> LoadedRun:
    """The run's rankings of the questions that are known; with an excerpt no other question's is read."""
    stored, only = Ranking.objects.filter(run=run), known.excerpt and known.excerpt.question_id
    if only is not None:
        stored = stored.filter(question=only)
    there = list(stored.order_by("question_id").values_list("question_id", "abstained"))
    ranked = np.array([question for question, _ in there], dtype=np.int64)
    lengths = np.zeros(len(ranked), dtype=np.int64)
    chunks = np.empty(0, dtype=np.int64)
    if stored.exclude(chunk_ids=[]).exists():
        rows = read_tagged_arrays(
            "SELECT 0::int4, question_id, chunk_ids FROM pooling_ranking WHERE run_id = %(run)s "
            "AND (%(only)s::int8 IS NULL OR question_id = %(only)s)",
            {"run": run.pk, "only": only},
        )
        lengths[np.searchsorted(ranked, rows.key)] = rows.lengths
        chunks = rows.values.astype(np.int64)
    numbers, is_known = known.numbers(ranked)
    kept = np.repeat(is_known, lengths)
    truncated = _truncated(stored, ranked, lengths) if run.stage == Run.Stage.CONTEXT else None
    rankings = Rankings(
        question=numbers[is_known],
        start=np.concatenate([[0], np.cumsum(lengths[is_known])]).astype(np.int64),
        chunk=chunks[kept],
    )
    return LoadedRun(
        run=run,
        rankings=rankings,
        truncated=None if truncated is None else truncated[kept] & ~known.cut_from.holds(rankings.chunk),
        inadmissible=inadmissible_entries(known, rankings),
        abstained={
            int(number): bool(abstained)
            for (_, abstained), number, ok in zip(there, numbers, is_known, strict=True)
            if ok and abstained is not None
        },
        unknown=int((~is_known).sum()),
    )


def inadmissible_entries(known: Known, rankings: Rankings) -> BoolArray | None:
    """A flag for each entry of the rankings; None where nothing can be inadmissible."""
    if known.inadmissible is None:
        return None
    return known.inadmissible(np.repeat(rankings.question, rankings.lengths), rankings.chunk)


def _truncated(stored: QuerySet[Ranking], ranked: IntArray, lengths: IntArray) -> BoolArray | None:
    """A flag for each entry whose text was cut before it went into the context; None where none was."""
    start = np.concatenate([[0], np.cumsum(lengths)])
    flags = np.zeros(int(start[-1]), dtype=bool)
    passages = stored.filter(passages__isnull=False).values_list("question_id", "passages")
    for question, texts in passages.iterator():
        assert texts is not None
        at = int(np.searchsorted(ranked, question))
        for place, passage in enumerate(texts[: int(lengths[at])]):
            flags[start[at] + place] = bool(passage and passage.get("truncated"))
    return flags if flags.any() else None

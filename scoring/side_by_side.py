"""Two rankings of one question side by side: what each returned, with labels, and where they differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evalsets.models import Chunk, ChunkRevision
from labels.releases import Excerpt
from pooling.models import Ranking
from scoring.classes import UNJUDGED
from scoring.matching import Graded, match
from scoring.models import Comparison, Unit
from scoring.reading import by_document, read_known, read_run


class Entry(NamedTuple):
    """One returned chunk. `grade` is None where it has no label; `by_model`: no person gave the label; `again`: its
    class or document stood above it.

    `other_rank` is its rank in the other run, None where that does not return it within the depth.
    """

    rank: int
    chunk: Chunk
    text: ChunkRevision | None
    grade: int | None
    again: bool
    inadmissible: bool
    by_model: bool
    other_rank: int | None


class Column(NamedTuple):
    """One run's entries for the question; `missing` is true where it has no ranking at all."""

    name: str
    entries: list[Entry]
    missing: bool


def columns(comparison: Comparison, question_pk: int, depth: int) -> tuple[Column, Column]:
    """The first `depth` entries of both runs for the question, by the labels of the comparison's release.

    Raises KeyError where the release does not know the question.
    """
    runs = (comparison.run_a, comparison.run_b)
    rankings = Ranking.objects.filter(run__in=runs, question=question_pk).values_list("chunk_ids", flat=True)
    returned = {chunk for chunks in rankings for chunk in chunks}
    wholes = Chunk.objects.filter(cut_passages__in=returned).values_list("pk", flat=True)
    excerpt = Excerpt(question_pk, np.array(sorted(returned.union(wholes)), dtype=np.int64))
    known = read_known(comparison.release, excerpt)
    if not known.question_ids:
        raise KeyError(question_pk)
    loaded = [read_run(run, known) for run in runs]
    if comparison.document["unit"] == Unit.DOCUMENT:
        by_document(known, loaded)
    truth = known.truth()
    graded = [match(truth, one.rankings, one.inadmissible, one.truncated) for one in loaded]
    ranks = [_ranks(one, depth) for one in graded]
    chunks = comparison.evalset.chunks.in_bulk({chunk for one in ranks for chunk in one})
    texts = {
        revision.chunk_id: revision
        for revision in ChunkRevision.objects.current().filter(chunk__in=chunks.values())
    }
    first, second = (
        Column(
            name=one.run.name,
            entries=_entries(graded[side], depth, ranks[1 - side], chunks, texts),
            missing=len(one.rankings.question) == 0,
        )
        for side, one in enumerate(loaded)
    )
    return first, second


def _ranks(graded: Graded, depth: int) -> dict[int, int]:
    return {chunk: rank for rank, chunk in enumerate(graded.chunk[:depth].tolist(), start=1)}


def _entries(
    graded: Graded,
    depth: int,
    other: dict[int, int],
    chunks: dict[int, Chunk],
    texts: dict[int, ChunkRevision],
) -> list[Entry]:
    rows = zip(
        graded.chunk[:depth].tolist(),
        graded.grade[:depth].tolist(),
        graded.counts[:depth].tolist(),
        graded.inadmissible[:depth].tolist(),
        graded.by_model[:depth].tolist(),
        strict=True,
    )
    return [
        Entry(
            rank=rank,
            chunk=chunks[chunk],
            text=texts.get(chunk),
            grade=None if grade == UNJUDGED else grade,
            again=grade != UNJUDGED
            and not counts
            and not inadmissible
            and not (grade == 0 and chunks[chunk].cut_from_id),
            inadmissible=inadmissible,
            by_model=by_model,
            other_rank=other.get(chunk),
        )
        for rank, (chunk, grade, counts, inadmissible, by_model) in enumerate(rows, start=1)
    ]

"""Reading a release for its files: a few questions at a time, so that memory stays flat however large it is.

A release never changes, so no transaction has to be held open while somebody downloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from evalsets.models import ChunkRevision
from labels.models import Release, ReleaseQuestion

QUESTIONS_AT_ONCE = 50
CHUNKS_AT_ONCE = 500
BLOCK = 1 << 16  # bytes; what a reader of a stream gets at once

T = TypeVar("T")


def question_rows(release: Release, *fields: str) -> Iterator[Any]:
    """The release's questions by the bytes of their IDs, as named tuples of these fields."""
    rows = ReleaseQuestion.objects.filter(release=release).order_by("position")
    for first in range(0, release.counts["questions"], QUESTIONS_AT_ONCE):
        batch = rows.filter(position__gte=first, position__lt=first + QUESTIONS_AT_ONCE)
        yield from batch.values_list(*fields, named=True)


class Label(NamedTuple):
    """The label of a chunk (Chunk.id and its ID) for a question; `by_model`: no person gave it."""

    chunk: int
    id: str
    grade: int
    by_model: bool


#: The fields of a question that `labels_of` reads.
LABELS = ("chunk_ids", "external_ids", "grades", "model_chunk_ids", "cut_ids")


def labels_of(row: Any, *, with_cut: bool = False) -> list[Label]:
    """The labels of a question's row for who evaluates with them: those of cut passages are left out, since only one
    run's context holds such a text, and in qrels it would be a relevant document that no other run can return."""
    cut, by_models = set(row.cut_ids), set(row.model_chunk_ids)
    by_model = [chunk in by_models for chunk in row.chunk_ids]
    labels = map(Label._make, zip(row.chunk_ids, row.external_ids, row.grades, by_model, strict=True))
    return [label for label in labels if label.chunk not in cut] if cut and not with_cut else list(labels)


def cut_passages_of(release: Release) -> set[int]:
    """Chunk.id of every cut passage of the eval set, labelled or not."""
    return set(release.evalset.chunks.exclude(cut_from=None).values_list("pk", flat=True))


def class_rows(release: Release) -> Iterator[Any]:
    """The release's classes by the bytes of their representatives, with chunk_ids, external_ids and revisions."""
    fields = ("number", "representative", "chunk_ids", "external_ids", "revisions")
    yield from release.release_classes.order_by("number").values_list(*fields, named=True)


def class_of_chunk(release: Release) -> dict[int, int]:
    """The number of the class of each chunk that is in one, by Chunk.id."""
    return {chunk: row.number for row in class_rows(release) for chunk in row.chunk_ids}


def revisions_of(pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], ChunkRevision]:
    """The texts of these (Chunk.id, revision) pairs; a chunk that is known by its ID alone has none."""
    wanted = set(pairs)
    rows = ChunkRevision.objects.filter(chunk_id__in={chunk for chunk, _ in wanted})
    return {(row.chunk_id, row.number): row for row in rows if (row.chunk_id, row.number) in wanted}


def in_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def in_blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Text pieces as UTF-8 blocks of about `BLOCK` bytes."""
    waiting: list[str] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= BLOCK:
            yield "".join(waiting).encode()
            waiting, length = [], 0
    if waiting:
        yield "".join(waiting).encode()

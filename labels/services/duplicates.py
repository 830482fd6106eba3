"""Finding pairs of chunks that look like copies, among what has been pooled or judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection, transaction

from evalsets.errors import Refused
from evalsets.models import ChunkRevision, EvalSet, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from judging.models import PairVerdict
from judging.services.verdicts import give_verdict
from labels.duplicates import NearPair, equal_pairs, near_pairs
from labels.exports.reading import in_batches
from labels.models import DuplicateCandidate

CHUNKS_AT_ONCE = 1000

_IN_PLAY = """
SELECT c.id FROM evalsets_chunk c
JOIN (
    SELECT unnest(pq.chunk_ids) AS id
    FROM pooling_poolquestion pq JOIN pooling_pool p ON p.id = pq.pool_id
    WHERE p.evalset_id = %(evalset)s
    UNION
    SELECT j.chunk_id FROM judging_judgment j
    JOIN judging_assessor a ON a.id = j.assessor_id AND a.kind <> 'model'
    WHERE j.evalset_id = %(evalset)s
) AS known USING (id)
WHERE c.has_text AND c.cut_from_id IS NULL
ORDER BY c.id"""


class DuplicatesFound(NamedTuple):
    """How many chunks were looked at, and how many pairs are equal and nearly equal."""

    chunks: int
    equal: int
    near: int


@transaction.atomic
def find_equal(*, evalset: EvalSet) -> int:
    """Note the pairs that are equal but for case, space and punctuation, at once; return how many there are."""
    DuplicateCandidate.objects.filter(evalset=evalset, equal=True).delete()
    numbers: dict[int, int] = {}

    def texts() -> Iterator[tuple[int, str]]:
        for key, (number, text) in _revisions(evalset, chunks_in_play(evalset)):
            numbers[key] = number
            yield key, text

    pairs = [NearPair(first, second, 1.0) for first, second in equal_pairs(texts())]
    _write(evalset, pairs, numbers, equal=True)
    return len(pairs)


@transaction.atomic
def find_duplicates(*, evalset: EvalSet, by: User | None, progress: Progress = silent) -> DuplicatesFound:
    """Find all candidates anew: equal pairs, and near pairs among what is left. Verdicts are not touched."""
    DuplicateCandidate.objects.filter(evalset=evalset).delete()
    chunks = chunks_in_play(evalset)
    numbers: dict[int, int] = {}
    copies: set[int] = set()

    def texts(phase: str) -> Iterator[tuple[int, str]]:
        for done, (key, (number, text)) in enumerate(_revisions(evalset, chunks), start=1):
            numbers[key] = number
            if key not in copies:
                yield key, text
            progress(done, len(chunks), phase)

    equal = [NearPair(a, b, 1.0) for a, b in equal_pairs(texts("Comparing whole texts"))]
    copies.update(pair.second for pair in equal)
    _write(evalset, equal, numbers, equal=True)
    near = 0
    for batch in in_batches(near_pairs(texts("Comparing parts of texts")), CHUNKS_AT_ONCE):
        _write(evalset, batch, numbers, equal=False)
        near += len(batch)
    record_event(
        evalset=evalset,
        by=by,
        verb="duplicates-found",
        summary=f"Looked for copies among {len(chunks)} chunks: {len(equal)} equal pairs, {near} near ones.",
    )
    return DuplicatesFound(len(chunks), len(equal), near)


def chunks_in_play(evalset: EvalSet) -> list[int]:
    """Chunk.id of the chunks with a text that any pool holds or anybody judged, rising; a cut passage is no copy."""
    with connection.cursor() as cursor:
        cursor.execute(_IN_PLAY, {"evalset": evalset.pk})
        return [key for (key,) in cursor]


def _revisions(evalset: EvalSet, chunks: list[int]) -> Iterator[tuple[int, tuple[int, str]]]:
    for batch in in_batches(chunks, CHUNKS_AT_ONCE):
        rows = ChunkRevision.objects.current().filter(chunk__in=batch).order_by("chunk_id")
        for key, number, text in rows.values_list("chunk_id", "number", "text"):
            yield key, (number, text)


def _write(evalset: EvalSet, pairs: list[NearPair], numbers: dict[int, int], *, equal: bool) -> None:
    DuplicateCandidate.objects.bulk_create(
        (
            DuplicateCandidate(
                evalset=evalset,
                first_id=pair.first,
                first_revision=numbers[pair.first],
                second_id=pair.second,
                second_revision=numbers[pair.second],
                similarity=pair.similarity,
                equal=equal,
            )
            for pair in pairs
        ),
        batch_size=CHUNKS_AT_ONCE,
        ignore_conflicts=True,
    )


class Joined(NamedTuple):
    """How many equal pairs were called the same content, and why some were not."""

    joined: int
    refused: list[str]


@transaction.atomic
def join_equal(*, evalset: EvalSet, by: User, progress: Progress = silent) -> Joined:
    """Say of every open pair of equal texts that it has the same content: the user's verdict on each.

    A pair that other verdicts keep apart is left open.
    """
    pairs = DuplicateCandidate.objects.filter(evalset=evalset, equal=True).open()
    open_pairs = list(pairs.select_related("first__evalset", "second"))
    joined, refused = 0, []
    for done, pair in enumerate(open_pairs, start=1):
        try:
            joined += give_verdict(
                first=pair.first, second=pair.second, verdict=PairVerdict.Verdict.SAME, by=by
            ).created
        except Refused as refusal:
            refused.append(str(refusal))
        progress(done, len(open_pairs), "Joining equal texts")
    return Joined(joined, refused)

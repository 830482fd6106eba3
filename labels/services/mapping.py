"""Finding new texts that stand where old, judged ones stood: by revision, by place in the document, by likeness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q

from evalsets.models import ChunkRevision, EvalSet, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from judging.models import Judgment
from labels.duplicates import near_pairs
from labels.exports.reading import in_batches
from labels.models import TextMapping

LIKE = 0.4
RETURNED_TO = 100
TEXTS_AT_ONCE = 1000

# The texts that were judged: of each chunk the latest revision that has a current grade of a person or a file.
_JUDGED_TEXTS = """
judged AS (
    SELECT j.chunk_id, max(j.revision) AS revision
    FROM judging_judgment j
    JOIN judging_assessor a ON a.id = j.assessor_id AND a.kind IN ('person', 'file')
    WHERE j.evalset_id = %(evalset)s AND j.kind = 'grade'
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    GROUP BY j.chunk_id
)"""

_BY_REVISION = f"""
WITH {_JUDGED_TEXTS}
SELECT c.id, judged.revision, c.id, c.revision, 'revision', 1.0
FROM judged JOIN evalsets_chunk c ON c.id = judged.chunk_id
WHERE judged.revision < c.revision"""  # noqa: S608 - no value from outside is in the text

# A chunk of a later import that shares half of the shorter one's characters of the same document.
_BY_SPAN = f"""
WITH {_JUDGED_TEXTS},
old AS (
    SELECT r.chunk_id, r.number, r.doc_id, r.start, r."end", c.created_at
    FROM judged
    JOIN evalsets_chunkrevision r ON r.chunk_id = judged.chunk_id AND r.number = judged.revision
    JOIN evalsets_chunk c ON c.id = r.chunk_id
    WHERE r.doc_id <> '' AND r."end" > r.start
)
SELECT old.chunk_id, old.number, c.id, c.revision, 'span', shared.share
FROM old
JOIN evalsets_chunkrevision r ON r.doc_id = old.doc_id AND r.start < old."end" AND r."end" > old.start
JOIN evalsets_chunk c ON c.id = r.chunk_id AND c.revision = r.number AND c.evalset_id = %(evalset)s
CROSS JOIN LATERAL (
    SELECT (least(r."end", old."end") - greatest(r.start, old.start))::float8
           / least(r."end" - r.start, old."end" - old.start) AS share
) AS shared
WHERE c.id <> old.chunk_id AND c.created_at > old.created_at AND shared.share >= 0.5
  AND NOT EXISTS (SELECT FROM judged WHERE judged.chunk_id = c.id AND judged.revision = c.revision)"""  # noqa: S608

# Texts to compare by likeness: judged ones that nothing was found for, and unjudged ones that some run returned.
_OLD_AND_NEW = f"""
WITH {_JUDGED_TEXTS}
SELECT r.chunk_id, r.number, c.created_at, true
FROM judged
JOIN evalsets_chunk c ON c.id = judged.chunk_id
JOIN evalsets_chunkrevision r ON r.chunk_id = judged.chunk_id AND r.number = judged.revision
WHERE c.cut_from_id IS NULL
  AND NOT EXISTS (SELECT FROM labels_textmapping m WHERE m.old_chunk_id = c.id AND m.old_revision = r.number)
UNION ALL
SELECT c.id, c.revision, c.created_at, false
FROM evalsets_chunk c
WHERE c.has_text AND c.cut_from_id IS NULL AND NOT EXISTS (SELECT FROM judged WHERE judged.chunk_id = c.id)
  AND c.id IN (
      SELECT unnest(k.chunk_ids[1:%(depth)s])
      FROM pooling_ranking k JOIN pooling_run run ON run.id = k.run_id WHERE run.evalset_id = %(evalset)s
  )
  AND NOT EXISTS (SELECT FROM labels_textmapping m WHERE m.new_chunk_id = c.id AND m.new_revision = c.revision)
ORDER BY 3, 1"""  # noqa: S608


class MappingsFound(NamedTuple):
    """How many mappings wait for a decision, by how they were found."""

    revision: int
    span: int
    text: int


@transaction.atomic
def find_mappings(*, evalset: EvalSet, by: User | None, progress: Progress = silent) -> MappingsFound:
    """Propose mappings anew from judged texts to unjudged ones. Those that were decided stay as they are, and so do
    those of which some labels have come along: to the search the new text looks judged by then.
    """
    carried = Judgment.objects.filter(
        source=Judgment.Source.CARRIED, chunk=OuterRef("new_chunk"), revision=OuterRef("new_revision")
    )
    begun = Q(Exists(carried), new_revision=F("new_chunk__revision"))
    TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True).exclude(begun).delete()
    parameters = {"evalset": evalset.pk, "depth": RETURNED_TO}
    for phase, sql in (("Comparing revisions", _BY_REVISION), ("Comparing places in documents", _BY_SPAN)):
        progress(0, None, phase)
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            _write(evalset, cursor.fetchall())
    _write(evalset, _by_likeness(parameters, progress))
    undecided = TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True)
    found = MappingsFound(*(undecided.filter(method=method).count() for method in MappingsFound._fields))
    record_event(
        evalset=evalset,
        by=by,
        verb="mappings-found",
        summary=f"Looked for texts to carry labels to: {found.revision} by revision, {found.span} by place, "
        f"{found.text} by likeness.",
    )
    return found


def _by_likeness(parameters: dict[str, Any], progress: Progress) -> Iterator[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_OLD_AND_NEW, parameters)
        texts = cursor.fetchall()
    if not any(old for *_, old in texts) or all(old for *_, old in texts):
        return
    described = {key: (number, created, old) for key, number, created, old in texts}
    for pair in near_pairs(_texts([(key, number) for key, number, *_ in texts], progress), near=LIKE):
        # The texts come oldest first, so the first of a pair is never the later one.
        (number, created, old), (new_number, new_created, new_old) = (
            described[pair.first],
            described[pair.second],
        )
        if old and not new_old and created < new_created:
            yield pair.first, number, pair.second, new_number, "text", pair.similarity


def _texts(wanted: list[tuple[int, int]], progress: Progress) -> Iterator[tuple[int, str]]:
    done = 0
    for batch in in_batches(wanted, TEXTS_AT_ONCE):
        rows = ChunkRevision.objects.filter(chunk__in=[key for key, _ in batch])
        found = {(row.chunk_id, row.number): row.text for row in rows}
        for key, number in batch:
            yield key, found.get((key, number), "")
            done += 1
            progress(done, len(wanted), "Comparing texts")


def _write(evalset: EvalSet, rows: Iterable[tuple[Any, ...]]) -> None:
    for batch in in_batches(rows, TEXTS_AT_ONCE):
        TextMapping.objects.bulk_create(
            (
                TextMapping(
                    evalset=evalset,
                    old_chunk_id=old_chunk,
                    old_revision=old_revision,
                    new_chunk_id=new_chunk,
                    new_revision=new_revision,
                    method=method,
                    share=min(1.0, share),
                )
                for old_chunk, old_revision, new_chunk, new_revision, method, share in batch
            ),
            ignore_conflicts=True,
        )

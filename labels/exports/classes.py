"""The class file: three tab-separated columns, as NIST published for the passages of its 2022 deep-learning track."""

from __future__ import annotations

from collections.abc import Iterator

from labels.exports.reading import class_rows, in_batches, in_blocks, revisions_of
from labels.models import Release

TEXT_START = 60


def class_file(release: Release) -> Iterator[bytes]:
    """Class ID (the ID of its representative), member ID, start of the member's text; the representative included."""
    return in_blocks(_lines(release))


def _lines(release: Release) -> Iterator[str]:
    for rows in in_batches(class_rows(release), 200):
        texts = revisions_of(
            [pair for row in rows for pair in zip(row.chunk_ids, row.revisions, strict=True)]
        )
        for row in rows:
            for chunk, name, revision in zip(row.chunk_ids, row.external_ids, row.revisions, strict=True):
                text = texts.get((chunk, revision))
                start = " ".join(text.text.split())[:TEXT_START] if text else ""
                yield f"{row.representative}\t{name}\t{start}\n"

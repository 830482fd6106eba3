"""A release as a BEIR folder in a zip: corpus.jsonl, queries.jsonl, qrels/<split>.tsv."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import orjson

from labels.exports.reading import (
    CHUNKS_AT_ONCE,
    LABELS,
    class_rows,
    cut_passages_of,
    in_batches,
    labels_of,
    question_rows,
    revisions_of,
)
from labels.models import Release

# What BEIR's loader calls a split; questions in no split of ours are test questions.
SPLITS = {"dev": "dev", "holdout": "holdout", None: "test"}
HEADER = b"query-id\tcorpus-id\tscore\n"
# A zip wants a date for each file; a fixed one, so that the bytes depend on the release alone.
DATE = (1980, 1, 1, 0, 0, 0)


def beir_zip(release: Release) -> Iterator[bytes]:
    """The zip, piece by piece. The corpus holds the labelled chunks and the members of classes, as they were judged.

    Names inside lie in one folder. Splits with no label have no qrels file. BEIR's qrels have no place for a mark, so
    a release with labels of outside judges has these a second time, in a file of their own.
    """
    folder = f"{release.evalset.slug}-r{release.number}"
    out = _Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in (
            ("corpus.jsonl", _corpus(release)),
            ("queries.jsonl", _queries(release)),
            *((f"qrels/{name}.tsv", _qrels(release, split)) for split, name in _splits(release)),
            *((("from-models.tsv", _from_models(release)),) if release.judges else ()),
        ):
            entry = zipfile.ZipInfo(f"{folder}/{name}", DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with archive.open(entry, "w", force_zip64=True) as file:
                for line in lines:
                    file.write(line)
                    yield from out.drained()
    yield from out.drained()


class _Pipe(io.RawIOBase):
    """A file that cannot be sought, from which what was written is taken out again."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.waiting.append(bytes(data))
        return len(data)

    def drained(self) -> Iterator[bytes]:
        if self.waiting:
            yield b"".join(self.waiting)
            self.waiting.clear()


def _splits(release: Release) -> list[tuple[str | None, str]]:
    found = {row.details["split"] for row in question_rows(release, "details", "grades") if row.grades}
    return [(split, name) for split, name in SPLITS.items() if split in found]


def _pairs(release: Release) -> Iterator[tuple[int, int, str]]:
    """(Chunk.id, revision, ID) of every chunk of the release, each once; cut passages are no part of the corpus."""
    seen = cut_passages_of(release)
    for rows in (question_rows(release, "chunk_ids", "revisions", "external_ids"), class_rows(release)):
        for row in rows:
            for chunk, revision, name in zip(row.chunk_ids, row.revisions, row.external_ids, strict=True):
                if chunk not in seen:
                    seen.add(chunk)
                    yield chunk, revision, name


def _corpus(release: Release) -> Iterator[bytes]:
    for batch in in_batches(sorted(_pairs(release), key=lambda pair: pair[2].encode()), CHUNKS_AT_ONCE):
        texts = revisions_of([(chunk, revision) for chunk, revision, _ in batch])
        for chunk, revision, name in batch:
            if text := texts.get((chunk, revision)):
                metadata = {"doc_id": text.doc_id, "url": text.url, **text.metadata}
                document = {
                    "_id": name,
                    "title": text.title,
                    "text": text.text,
                    "metadata": {key: value for key, value in metadata.items() if value not in ("", None)},
                }
                yield orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def _queries(release: Release) -> Iterator[bytes]:
    for row in question_rows(release, "external_id", "details"):
        metadata = {key: value for key, value in row.details.items() if key not in ("id", "text")}
        document = {"_id": row.external_id, "text": row.details["text"], "metadata": metadata}
        yield orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def _from_models(release: Release) -> Iterator[bytes]:
    """The labels that are outside judges', in the form of qrels."""
    yield HEADER
    for row in question_rows(release, "external_id", *LABELS):
        yield "".join(
            f"{row.external_id}\t{label.id}\t{label.grade}\n" for label in labels_of(row) if label.by_model
        ).encode()


def _qrels(release: Release, split: str | None) -> Iterator[bytes]:
    yield HEADER
    for row in question_rows(release, "external_id", "details", *LABELS):
        if row.details["split"] == split and row.grades:
            yield "".join(
                f"{row.external_id}\t{label.id}\t{label.grade}\n" for label in labels_of(row)
            ).encode()

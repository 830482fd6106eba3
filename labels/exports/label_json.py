"""Labels as JSON: one record a question, with what is relevant, what was judged, and which pool it comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from labels.exports.reading import class_of_chunk, question_rows
from labels.models import Release

FIELDS = ("external_id", "details", "chunk_ids", "external_ids", "grades", "model_chunk_ids", "pool")


def records(release: Release) -> Iterator[dict[str, Any]]:
    """One record a question, by the bytes of its ID.

    `judged_ids` holds relevant and rejected alike, and only what people judged. `relevant_classes` are the classes
    restricted to members at or above the threshold; a relevant chunk in no class is a class of one. Only a release with
    labels of outside judges has `model_ids`, which names these labels, and `judges`.
    """
    classes = class_of_chunk(release)
    for row in question_rows(release, *FIELDS):
        grades = dict(zip(row.external_ids, row.grades, strict=True))
        by_models = set(row.model_chunk_ids)
        names = list(zip(row.external_ids, row.chunk_ids, strict=True))
        relevant = [item for item, grade in grades.items() if grade >= release.threshold]
        record = {
            "id": row.external_id,
            "question": row.details["text"],
            "relevant_doc_ids": relevant,
            "judged_ids": [name for name, chunk in names if chunk not in by_models],
            "grades": grades,
            "relevant_classes": relevant_classes(
                row.chunk_ids, row.external_ids, row.grades, classes, release.threshold
            ),
            "pool": row.pool,
            "threshold": release.threshold,
            "scale": release.scale,
            "release": release.number,
            "answerable": row.details["answerable"],
            "slices": row.details["slices"],
            "facts": row.details["facts"],
        }
        if release.judges:
            record["model_ids"] = [name for name, chunk in names if chunk in by_models]
            record["judges"] = release.judges
        yield record


def relevant_classes(
    chunk_ids: list[int], external_ids: list[str], grades: list[int], classes: dict[int, int], threshold: int
) -> list[list[str]]:
    """The relevant chunks' IDs by class, members and classes in the order given; `classes` maps Chunk.id to a class."""
    found: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for chunk, name, grade in zip(chunk_ids, external_ids, grades, strict=True):
        if grade >= threshold:
            found[("class", classes[chunk]) if chunk in classes else ("chunk", chunk)].append(name)
    return list(found.values())


def label_jsonl(release: Release) -> Iterator[bytes]:
    """One record a line."""
    for record in records(release):
        yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def label_json(release: Release) -> Iterator[bytes]:
    """One list of all records, a record a line."""
    before = b"[\n"
    for record in records(release):
        yield before + orjson.dumps(record)
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"

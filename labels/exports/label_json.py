"""Labels as JSON: one record a question, with what is relevant, what was judged, and which pool it comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from evalsets.models import Chunk
from labels.exports.reading import LABELS, Label, class_of_chunk, labels_of, question_rows, revisions_of
from labels.models import Release


def records(release: Release) -> Iterator[dict[str, Any]]:
    """One record a question, by the bytes of its ID.

    `judged_ids` holds relevant and rejected alike, and only what people judged. `relevant_classes` are the classes
    restricted to members at or above the threshold; a relevant chunk in no class is a class of one. Only a release with
    labels of outside judges has `model_ids`, which names these labels, and `judges`. Only a question with labels of cut
    passages has `cut_passages`.
    """
    classes = class_of_chunk(release)
    for row in question_rows(release, "external_id", "details", "revisions", "pool", *LABELS):
        labels = labels_of(row)
        relevant = [label for label in labels if label.grade >= release.threshold]
        record = {
            "id": row.external_id,
            "question": row.details["text"],
            "relevant_doc_ids": [label.id for label in relevant],
            "judged_ids": [label.id for label in labels if not label.by_model],
            "grades": {label.id: label.grade for label in labels},
            "relevant_classes": by_class(relevant, classes),
            "pool": row.pool,
            "threshold": release.threshold,
            "scale": release.scale,
            "release": release.number,
            "answerable": row.details["answerable"],
            "slices": row.details["slices"],
            "facts": row.details["facts"],
        }
        if release.judges:
            record["model_ids"] = [label.id for label in labels if label.by_model]
            record["judges"] = release.judges
        if row.cut_ids:
            record["cut_passages"] = cut_passages(row)
        yield record


def by_class(labels: list[Label], classes: dict[int, int]) -> list[list[str]]:
    """The chunks' IDs by class, members and classes in the order given; `classes` maps Chunk.id to a class."""
    found: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for label in labels:
        key = ("class", classes[label.chunk]) if label.chunk in classes else ("chunk", label.chunk)
        found[key].append(label.id)
    return list(found.values())


def cut_passages(row: Any) -> list[dict[str, Any]]:
    """The labels of cut passages, each with its text and `cut_from`, the ID of the chunk it was cut from."""
    cut_from = dict(Chunk.objects.filter(pk__in=row.cut_ids).values_list("pk", "cut_from__external_id"))
    revisions = dict(zip(row.chunk_ids, row.revisions, strict=True))
    texts = revisions_of([(chunk, revisions[chunk]) for chunk in row.cut_ids])
    return [
        {
            "id": label.id,
            "cut_from": cut_from[label.chunk],
            "text": texts[label.chunk, revisions[label.chunk]].text,
            "grade": label.grade,
            "from_model": label.by_model,
        }
        for label in labels_of(row, with_cut=True)
        if label.chunk in cut_from
    ]


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

"""Tables: labels and judgments as CSV and Parquet, and what could not be judged as CSV.

CSV is meant for spreadsheets, so a text cell that a spreadsheet would run as a formula gets an apostrophe in front;
number columns are left alone. Programs that need the exact text read JSON, Parquet or the TREC form.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from django.db.models import Q

from judging.models import Judgment
from judging.services.adjudication import TAKEN_BACK
from labels.exports.reading import class_rows, in_batches, in_blocks, question_rows
from labels.models import Release
from pooling.formats import defused

JUDGMENTS_AT_ONCE = 2000


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """A CSV table as text, a line at a time: LF ends, None is an empty cell, flags are yes or no, formulas defused."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    if out.getvalue():
        yield out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return defused(value) if isinstance(value, str) else value


LABEL_COLUMNS = (
    "question",
    "chunk",
    "grade",
    "relevant",
    "settled_by",
    "judgments",
    "revision",
    "class",
    "from_model",
)


def label_rows(release: Release) -> Iterator[tuple[Any, ...]]:
    """One row a label, by question ID, then chunk ID; `class` is the ID of the class's representative."""
    classes = {chunk: row.representative for row in class_rows(release) for chunk in row.chunk_ids}
    fields = (
        "external_id",
        "chunk_ids",
        "external_ids",
        "grades",
        "why",
        "judgment_counts",
        "revisions",
        "model_chunk_ids",
    )
    for row in question_rows(release, *fields):
        from_models = set(row.model_chunk_ids)
        for chunk, name, grade, why, judgments, revision in zip(
            row.chunk_ids,
            row.external_ids,
            row.grades,
            row.why,
            row.judgment_counts,
            row.revisions,
            strict=True,
        ):
            yield (
                row.external_id,
                name,
                grade,
                grade >= release.threshold,
                why,
                judgments,
                revision,
                classes.get(chunk),
                chunk in from_models,
            )


def label_csv(release: Release) -> Iterator[bytes]:
    """The labels, one row a pair: the final word on each, whoever judged it."""
    return in_blocks(csv_lines(LABEL_COLUMNS, label_rows(release)))


JUDGMENT_COLUMNS = (
    "question",
    "chunk",
    "revision",
    "assessor",
    "assessor_kind",
    "kind",
    "grade",
    "reason",
    "source",
    "batch",
    "rubric_version",
    "seconds",
    "note",
    "evidence",
    "facts",
    "judged_at",
    "replaced",
    "judgment",
    "replaces",
    "repetition",
    "carried_from",
    "carried_from_revision",
)


def judgment_csv(release: Release) -> Iterator[bytes]:
    """Every judgment there was when the release was published, one row each, replaced ones and skips too.

    What an outside judge said is there only where the release lets it in: `assessor_kind` model, with its repetition.
    """
    return in_blocks(csv_lines(JUDGMENT_COLUMNS, _judgment_rows(release)))


def _judgment_rows(release: Release) -> Iterator[tuple[Any, ...]]:
    for row in question_rows(release, "external_id", "judgment_ids"):
        replaced = _replaced(row.judgment_ids)
        rows = (
            Judgment.objects.filter(pk__in=row.judgment_ids)
            .select_related("chunk", "assessor", "pair__batch", "rubric")
            .order_by("chunk__external_id", "pk")
        )
        for judgment in rows:
            carried = judgment.details.get("carried_from", {})
            yield (
                row.external_id,
                judgment.chunk.external_id,
                judgment.revision,
                judgment.assessor.name,
                judgment.assessor.kind,
                judgment.kind,
                judgment.grade,
                judgment.reason,
                judgment.source,
                judgment.pair.batch.name if judgment.pair else None,
                judgment.rubric.version if judgment.rubric else None,
                judgment.seconds,
                judgment.note,
                orjson.dumps(judgment.spans).decode() if judgment.spans else None,
                "; ".join(judgment.facts),
                judgment.judged_at.isoformat(),
                judgment.pk in replaced,
                judgment.pk,
                judgment.replaces_id,
                judgment.details.get("repetition"),
                carried.get("chunk"),
                carried.get("revision"),
            )


def _replaced(judgment_ids: list[int]) -> set[int]:
    """Which of these judgments another of them replaces: later ones do not count for the release."""
    rows = Judgment.objects.filter(pk__in=judgment_ids, replaces__isnull=False)
    return set(rows.values_list("replaces_id", flat=True))


CANNOT_JUDGE_COLUMNS = ("question", "chunk", "why", "kind", "reason", "note", "assessor", "grades")


def cannot_judge_csv(release: Release) -> Iterator[bytes]:
    """The pairs without a label: one row a skip or "cannot be judged" with its reason, one row a contested pair.

    None of them is in the qrels, since a number there would claim that somebody decided.
    """
    return in_blocks(csv_lines(CANNOT_JUDGE_COLUMNS, _cannot_judge_rows(release)))


def _cannot_judge_rows(release: Release) -> Iterator[tuple[Any, ...]]:
    for row in question_rows(release, "external_id", "unlabelled", "judgment_ids"):
        if not row.unlabelled:
            continue
        skips = Judgment.objects.filter(
            pk__in=row.judgment_ids,
            chunk__in=[item["chunk_id"] for item in row.unlabelled],
        ).exclude(TAKEN_BACK | Q(kind=Judgment.Kind.GRADE))
        skips = skips.exclude(pk__in=_replaced(row.judgment_ids)).select_related("assessor").order_by("pk")
        for item in row.unlabelled:
            pair = (row.external_id, item["id"], item["why"])
            if item["why"] == "contested":
                yield (*pair, None, None, None, None, " ".join(map(str, item["grades"])))
            for skip in skips:
                if skip.chunk_id == item["chunk_id"] and skip.revision == item["revision"]:
                    yield (*pair, skip.kind, skip.reason, skip.note, skip.assessor.name, None)


LABEL_SCHEMA = pa.schema(
    [
        ("question", pa.string()),
        ("chunk", pa.string()),
        ("grade", pa.int16()),
        ("relevant", pa.bool_()),
        ("settled_by", pa.string()),
        ("judgments", pa.int16()),
        ("revision", pa.int16()),
        ("class", pa.string()),
        ("from_model", pa.bool_()),
    ]
)
JUDGMENT_SCHEMA = pa.schema(
    [
        ("question", pa.string()),
        ("chunk", pa.string()),
        ("revision", pa.int16()),
        ("assessor", pa.string()),
        ("assessor_kind", pa.string()),
        ("kind", pa.string()),
        ("grade", pa.int16()),
        ("reason", pa.string()),
        ("source", pa.string()),
        ("batch", pa.string()),
        ("rubric_version", pa.int32()),
        ("seconds", pa.float64()),
        ("note", pa.string()),
        ("evidence", pa.string()),
        ("facts", pa.string()),
        ("judged_at", pa.string()),
        ("replaced", pa.bool_()),
        ("judgment", pa.int64()),
        ("replaces", pa.int64()),
        ("repetition", pa.int32()),
        ("carried_from", pa.string()),
        ("carried_from_revision", pa.int16()),
    ]
)
ROWS_IN_GROUP = 50_000


def label_parquet(release: Release) -> Iterator[bytes]:
    """The labels with the columns of the CSV, exact texts."""
    return _parquet(release, LABEL_SCHEMA, label_rows(release))


def judgment_parquet(release: Release) -> Iterator[bytes]:
    """The judgments with the columns of the CSV, exact texts."""
    return _parquet(release, JUDGMENT_SCHEMA, _judgment_rows(release))


def _parquet(release: Release, columns: pa.Schema, rows: Iterator[tuple[Any, ...]]) -> Iterator[bytes]:
    """The rows as a Parquet file whose metadata name the release."""
    schema = columns.with_metadata(
        {
            "fairpool.evalset": release.evalset.slug,
            "fairpool.release": str(release.number),
            "fairpool.hash": release.content_hash,
            "fairpool.threshold": str(release.threshold),
            **({"fairpool.judges": orjson.dumps(release.judges).decode()} if release.judges else {}),
        }
    )
    out = io.BytesIO()
    with pq.ParquetWriter(_Unseekable(out), schema, compression="zstd") as writer:
        for batch in in_batches(rows, ROWS_IN_GROUP):
            arrays = [pa.array(c, f.type) for c, f in zip(zip(*batch, strict=True), schema, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema))
            yield from _drained(out)
    yield from _drained(out)


class _Unseekable(io.RawIOBase):
    """A file that is only written to, and says truly how far: what was taken out of `buffer` counts."""

    def __init__(self, buffer: io.BytesIO) -> None:
        self.buffer = buffer
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = self.buffer.write(data)
        self.written += size
        return size

    def tell(self) -> int:
        return self.written


def _drained(out: io.BytesIO) -> Iterator[bytes]:
    if out.tell():
        yield out.getvalue()
        out.seek(0)
        out.truncate()

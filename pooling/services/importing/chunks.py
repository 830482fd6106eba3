from __future__ import annotations

# ruff: noqa: S608 (the statements are put together from the constants of this file alone)
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from django.db import transaction
from django.db.models import F
from psycopg.types.json import Jsonb

from evalsets.models import Chunk, EvalSet, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from pooling.formats import ChunkFile, ChunkRecord
from pooling.services.importing.report import (
    SAMPLE_RECORDS,
    ImportReport,
    begin_report,
    configured_limits,
    finish,
    note_earlier_import,
    reading,
    record_file,
)
from pooling.services.importing.staging import (
    copy_rows,
    execute,
    fetch,
    lock_evalset,
    make_table,
    merge_indexes_seldom,
    refresh_statistics,
)

# `content` tells whether two records of one ID are the same. Optional fields are null where the file lacks them. The
# last columns say what is there already: the chunk, its current revision, and whether that has the same text.
STAGE = """
    line int, external_id text COLLATE "C", content bytea, title text, text text, text_hash text, doc_id text, url text,
    start int, "end" int, effective_from date, effective_to date, scope text, source_revision text, metadata jsonb,
    chunk_id int, has_text boolean, revision smallint, revision_id bigint, same_text boolean
"""
COLUMNS = (
    "line",
    "external_id",
    "content",
    "title",
    "text",
    "text_hash",
    "doc_id",
    "url",
    "start",
    '"end"',
    "effective_from",
    "effective_to",
    "scope",
    "source_revision",
    "metadata",
)
# What may change without making the text another one.
DETAILS = COLUMNS[6:]
TEXTS = ("doc_id", "url", "scope", "source_revision")

# Looked up row by row through the indexes: a join's plan would hang on how many rows the planner expects.
MATCH = """
    UPDATE import_chunk s SET (chunk_id, has_text, revision, revision_id, same_text) = (
        SELECT c.id, c.has_text, c.revision, r.id, r.text_hash = s.text_hash
        FROM evalsets_chunk c LEFT JOIN evalsets_chunkrevision r ON r.chunk_id = c.id AND r.number = c.revision
        WHERE c.evalset_id = %(evalset)s AND c.external_id = s.external_id
    )
"""
OTHER_DETAILS = " OR ".join(
    f"(s.{name} IS NOT NULL AND s.{name} IS DISTINCT FROM r.{name})" for name in DETAILS
)


@transaction.atomic
def import_chunks(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    format: str | None = None,
    only_referenced: bool = False,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in a file of chunks. The same ID with another title or text is a new revision; labels stay with the old.

    `only_referenced` keeps the chunks that the eval set knows already, since a run or a label named them. In the
    report, `details["labels_left_behind"]` counts the pairs that were judged on texts which are now revised.
    Raises BadInput with the report where the file has faults; with `check` the report is given back instead.
    """
    report = begin_report(
        kind="chunks",
        source=source,
        file_name=file_name,
        check=check,
        options={"format": format, "only_referenced": only_referenced},
    )
    lock_evalset(evalset)
    wanted = None
    if only_referenced:
        wanted = set(Chunk.objects.filter(evalset=evalset).values_list("external_id", flat=True))
    file = ChunkFile(
        source, format=format or None, wanted=wanted, limits=configured_limits(), progress=reading(progress)
    )
    make_table("import_chunk", STAGE)
    copy_rows("import_chunk", COLUMNS, rows(file, report))
    report.sniff, report.sha256, report.read, report.findings = (
        file.sniff,
        file.digest,
        file.read,
        file.findings,
    )
    settle_repeated_ids(report)
    if only_referenced:
        report.details["left_out"] = file.left_out
    if report.has_faults():
        return finish(report)
    note_earlier_import(report, evalset)
    progress(0, None, "comparing")
    count(report, evalset)
    report_revisions(report, evalset)
    anything = report.new or report.revised or report.details["details_changed"]
    if check or not anything:
        return finish(report)
    progress(0, None, "writing")
    merge_indexes_seldom()
    write(evalset)
    report.written = True
    imported = record_file(report, evalset=evalset, by=by)
    record_event(
        evalset=evalset,
        by=by,
        verb="chunks-imported",
        summary=f"{report.new:,} chunks were imported from {report.file_name}, {report.revised:,} revised.",
        details={
            "file": imported.pk,
            "new": report.new,
            "revised": report.revised,
            "unchanged": report.unchanged,
            **report.details,
        },
    )
    return report


def text_hash(title: str, text: str) -> str:
    """SHA-256 of title and text, in hexadecimal; of the text alone where there is no title."""
    whole = f"{title}\x00{text}" if title else text  # no text holds a NUL
    return hashlib.sha256(whole.encode()).hexdigest()


def rows(file: ChunkFile, report: ImportReport) -> Iterator[tuple[Any, ...]]:
    for record in file:
        if len(report.sample) < SAMPLE_RECORDS:
            report.sample.append({"line": record.line, "id": record.id, "text": record.text[:200]})
        if not file.findings.faults:
            yield row(record)


def row(record: ChunkRecord) -> tuple[Any, ...]:
    given = record.given
    details = (
        record.doc_id if "doc_id" in given else None,
        record.url if "url" in given else None,
        record.start,
        record.end,
        record.effective_from,
        record.effective_to,
        record.scope if "scope" in given else None,
        record.revision if "revision" in given else None,
    )
    metadata = record.metadata if "metadata" in given else None
    content = orjson.dumps((record.title, record.text, details, metadata), option=orjson.OPT_SORT_KEYS)
    return (
        record.line,
        record.id,
        hashlib.sha256(content).digest(),
        record.title,
        record.text,
        text_hash(record.title, record.text),
        *details,
        None if metadata is None else Jsonb(metadata),
    )


def settle_repeated_ids(report: ImportReport) -> None:
    """One ID twice in the file: the same content counts once, other content is a fault that names both lines."""
    repeated = fetch(
        """
        SELECT s.line, s.external_id, left(s.text, 80), first.line, left(first.text, 80), s.content = first.content
        FROM (SELECT external_id, min(line) AS line FROM import_chunk GROUP BY external_id HAVING count(*) > 1) twice
        JOIN import_chunk first ON first.external_id = twice.external_id AND first.line = twice.line
        JOIN import_chunk s ON s.external_id = twice.external_id AND s.line > twice.line
        ORDER BY s.line
        """
    )
    for line, name, text, first_line, first_text, same in repeated:
        if same:
            report.findings.warnings.add(
                "repeated", line=line, field=name, value=text, expected=f"first on line {first_line}"
            )
        else:
            report.findings.faults.add(
                "same-id-other-content",
                line=line,
                field=name,
                value=text,
                expected=f"the content of line {first_line}, which has the same ID: {first_text!r}",
            )
    if repeated:
        execute(
            """
            DELETE FROM import_chunk s
            USING (SELECT external_id, min(line) AS line FROM import_chunk GROUP BY external_id) first
            WHERE s.external_id = first.external_id AND s.line > first.line
            """
        )


def count(report: ImportReport, evalset: EvalSet) -> None:
    """New chunks include those that were known by their ID and get their first text now."""
    execute(MATCH, {"evalset": evalset.pk})
    execute("ANALYZE import_chunk")
    ((report.new, first_texts, report.unchanged, report.revised, details),) = fetch(
        f"""
        SELECT count(*) FILTER (WHERE s.has_text IS NOT TRUE),
               count(*) FILTER (WHERE NOT s.has_text),
               count(*) FILTER (WHERE s.has_text AND s.same_text),
               count(*) FILTER (WHERE s.has_text AND NOT s.same_text),
               count(*) FILTER (WHERE s.has_text AND s.same_text AND ({OTHER_DETAILS}))
        FROM import_chunk s LEFT JOIN evalsets_chunkrevision r ON r.id = s.revision_id
        """
    )
    report.details |= {"first_texts": first_texts, "details_changed": details}


def report_revisions(report: ImportReport, evalset: EvalSet) -> None:
    """Which chunks are revised, and how many judged pairs stay behind with the older texts."""
    report.details["labels_left_behind"] = 0
    if not report.revised:
        return
    revised = fetch(
        """
        SELECT s.line, s.chunk_id, s.external_id, left(s.text, 80), left(r.text, 80)
        FROM import_chunk s JOIN evalsets_chunkrevision r ON r.id = s.revision_id
        WHERE s.has_text AND NOT s.same_text ORDER BY s.line
        """
    )
    for line, _pk, name, new, old in revised:
        report.findings.warnings.add(
            "chunk-revised", line=line, field=name, value=new, expected=f"it was: {old}"
        )
    # The judgments of a chunk are seen through its own relation: this layer lies below theirs.
    left_behind = (
        Chunk.objects.filter(pk__in=[row[1] for row in revised])
        .filter(
            judgments__revision=F("revision"),
            judgments__kind="grade",
            judgments__replaced_by__isnull=True,
            judgments__assessor__kind__in=["person", "file"],
        )
        .values("pk", "judgments__question")
        .distinct()
        .count()
    )
    report.details["labels_left_behind"] = left_behind
    if left_behind:
        report.findings.warnings.add(
            "labels-left-behind",
            value=f"{left_behind:,} judged pairs",
            expected="judge the new texts, or carry the labels over where the evidence is still there",
            count=left_behind,
        )


def write(evalset: EvalSet) -> None:
    values = ", ".join(f"coalesce(s.{name}, '')" if name in TEXTS else f"s.{name}" for name in DETAILS[:-1])
    columns = f"chunk_id, number, title, text, text_hash, {', '.join(DETAILS)}"
    selected = f"s.title, s.text, s.text_hash, {values}, coalesce(s.metadata, '{{}}')"
    # A text that the chunk had before becomes its current one again, and with it the labels that were given on it.
    execute(
        f"""
        WITH revised AS (
            SELECT s.chunk_id, s.line,
                   (SELECT max(number) FROM evalsets_chunkrevision e
                    WHERE e.chunk_id = s.chunk_id AND e.text_hash = s.text_hash) AS earlier,
                   (SELECT max(number) + 1 FROM evalsets_chunkrevision e WHERE e.chunk_id = s.chunk_id) AS next
            FROM import_chunk s WHERE s.has_text AND NOT s.same_text
        ), added AS (
            INSERT INTO evalsets_chunkrevision ({columns})
            SELECT revised.chunk_id, revised.next, {selected}
            FROM revised JOIN import_chunk s USING (line) WHERE revised.earlier IS NULL
        )
        UPDATE evalsets_chunk c SET revision = coalesce(revised.earlier, revised.next)
        FROM revised WHERE c.id = revised.chunk_id
        """
    )
    execute(
        "UPDATE evalsets_chunk c SET has_text = true FROM import_chunk s WHERE c.id = s.chunk_id AND NOT s.has_text"
    )
    execute(
        """
        WITH added AS (
            INSERT INTO evalsets_chunk (evalset_id, external_id, has_text)
            SELECT %(evalset)s, s.external_id, true FROM import_chunk s WHERE s.chunk_id IS NULL ORDER BY s.line
            RETURNING id, external_id
        )
        UPDATE import_chunk s SET chunk_id = added.id, revision = 1
        FROM added WHERE s.external_id = added.external_id
        """,
        {"evalset": evalset.pk},
    )
    execute(
        f"""
        INSERT INTO evalsets_chunkrevision ({columns})
        SELECT s.chunk_id, s.revision, {selected} FROM import_chunk s WHERE s.has_text IS NOT TRUE ORDER BY s.line
        """
    )
    refresh_statistics("evalsets_chunk", "evalsets_chunkrevision")
    # Last: a text that became current again takes the file's details too.
    changes = ", ".join(f"{name} = coalesce(s.{name}, r.{name})" for name in DETAILS)
    execute(
        f"""
        UPDATE evalsets_chunkrevision r SET {changes}
        FROM import_chunk s JOIN evalsets_chunk c ON c.id = s.chunk_id
        WHERE r.chunk_id = c.id AND r.number = c.revision AND r.text_hash = s.text_hash AND ({OTHER_DETAILS})
        """
    )

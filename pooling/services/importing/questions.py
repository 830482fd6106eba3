from __future__ import annotations

# ruff: noqa: S608 (the statements are put together from the constants of this file alone)
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import transaction
from psycopg.types.json import Jsonb

from evalsets.models import EvalSet, Question, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from pooling.formats import Findings, QuestionRecord, read_questions
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
    refresh_statistics,
)

# Optional fields are null where the file does not have them, and then stay as they are.
STAGE = """
    line int, external_id text COLLATE "C", text text, narrative text, slices text[], split text, answerable boolean,
    "group" text, scope text, effective_date date, facts jsonb, question_id bigint
"""
COLUMNS = (
    "line",
    "external_id",
    "text",
    "narrative",
    "slices",
    "split",
    "answerable",
    '"group"',
    "scope",
    "effective_date",
    "facts",
)
OPTIONAL = COLUMNS[3:]

SAME = " AND ".join(f"(s.{name} IS NULL OR s.{name} = q.{name})" for name in OPTIONAL)
# Looked up row by row through the index: a join's plan would hang on how many rows the planner expects.
MATCH = """
    UPDATE import_question s SET question_id = (
        SELECT q.id FROM evalsets_question q WHERE q.evalset_id = %(evalset)s AND q.external_id = s.external_id
    )
"""
JOINED = "import_question s LEFT JOIN evalsets_question q ON q.id = s.question_id"


@transaction.atomic
def import_questions(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    format: str | None = None,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in a file of questions. A known ID takes the file's fields; fields the file lacks stay as they are.

    Raises BadInput with the report where the file has faults; with `check` the report is given back instead.
    """
    report = begin_report(
        kind="questions", source=source, file_name=file_name, check=check, options={"format": format}
    )
    file = read_questions(
        source, format=format or None, limits=configured_limits(), progress=reading(progress)
    )
    report.sniff, report.sha256, report.read, report.findings = (
        file.sniff,
        file.digest,
        file.read,
        file.findings,
    )
    report.sample = [sample(record) for record in file.records[:SAMPLE_RECORDS]]
    if report.has_faults():
        return finish(report)
    lock_evalset(evalset)
    note_earlier_import(report, evalset)
    make_table("import_question", STAGE)
    copy_rows("import_question", COLUMNS, rows(file.records))
    execute(MATCH, {"evalset": evalset.pk})
    count(report)
    find_groups_in_two_splits(report.findings, evalset)
    warn_of_reworded_questions(report)
    if check or report.has_faults() or not (report.new or report.revised):
        return finish(report)
    progress(0, report.new + report.revised, "writing")
    write(evalset)
    report.written = True
    imported = record_file(report, evalset=evalset, by=by)
    record_event(
        evalset=evalset,
        by=by,
        verb="questions-imported",
        summary=f"{report.new:,} questions were imported from {report.file_name}, {report.revised:,} revised.",
        details={
            "file": imported.pk,
            "new": report.new,
            "revised": report.revised,
            "unchanged": report.unchanged,
        },
    )
    return report


def rows(records: list[QuestionRecord]) -> Iterator[tuple[Any, ...]]:
    for record in records:
        given = record.given
        yield (
            record.line,
            record.id,
            record.text,
            record.narrative if "narrative" in given else None,
            list(record.slices) if "slices" in given else None,
            record.split if "split" in given else None,
            record.answerable if "answerable" in given else None,
            record.group if "group" in given else None,
            record.scope if "scope" in given else None,
            record.effective_date,
            Jsonb([fact._asdict() for fact in record.facts]) if "facts" in given else None,
        )


def sample(record: QuestionRecord) -> dict[str, Any]:
    return {"line": record.line, "id": record.id, "text": record.text[:200]}


def count(report: ImportReport) -> None:
    ((report.new, report.unchanged, report.revised),) = fetch(
        f"""
        SELECT count(*) FILTER (WHERE q.id IS NULL),
               count(*) FILTER (WHERE q.id IS NOT NULL AND same),
               count(*) FILTER (WHERE q.id IS NOT NULL AND NOT same)
        FROM {JOINED}, LATERAL (SELECT (s.text = q.text AND {SAME}) IS TRUE AS same) compared
        """
    )


def find_groups_in_two_splits(findings: Findings, evalset: EvalSet) -> None:
    """As they will be after the import: what a group's questions outside of the file say counts too."""
    found = fetch(
        f"""
        WITH after AS (
            SELECT s.line, s.external_id, coalesce(s."group", q."group", '') AS family,
                   coalesce(s.split, q.split, '') AS split
            FROM {JOINED}
            UNION ALL
            SELECT NULL, q.external_id, q."group", q.split FROM evalsets_question q
            WHERE q.evalset_id = %(evalset)s
              AND q.id NOT IN (SELECT question_id FROM import_question WHERE question_id IS NOT NULL)
        )
        SELECT family, min(line), array_agg(DISTINCT split), (array_agg(external_id ORDER BY line NULLS LAST))[1:3]
        FROM after WHERE family <> '' GROUP BY family HAVING count(DISTINCT split) > 1 ORDER BY min(line)
        """,
        {"evalset": evalset.pk},
    )
    for family, line, splits, ids in found:
        findings.faults.add(
            "group-in-two-splits",
            line=line,
            field=family,
            value=", ".join(ids),
            expected=f"one split for the whole group, found {' and '.join(split or 'none' for split in splits)}",
        )


def warn_of_reworded_questions(report: ImportReport) -> None:
    reworded = fetch(
        f"SELECT s.line, s.external_id, q.id, q.text, s.text FROM {JOINED} WHERE s.text <> q.text ORDER BY s.line"
    )
    said = Question.objects.filter(
        pk__in=[row[2] for row in reworded], judgments__assessor__kind__in=["person", "file"]
    )
    judged = set(said.values_list("pk", flat=True))
    for line, name, pk, old, new in reworded:
        report.findings.warnings.add(
            "judged-question-reworded" if pk in judged else "question-reworded",
            line=line,
            field=name,
            value=new,
            expected=f"it was: {old[:80]}",
        )


def write(evalset: EvalSet) -> None:
    changes = ", ".join(f"{name} = coalesce(s.{name}, q.{name})" for name in OPTIONAL)
    execute(
        f"""
        UPDATE evalsets_question q SET text = s.text, {changes}
        FROM import_question s WHERE q.id = s.question_id AND NOT (s.text = q.text AND {SAME})
        """
    )
    execute(
        f"""
        INSERT INTO evalsets_question (evalset_id, {", ".join(COLUMNS[1:])})
        SELECT %(evalset)s, s.external_id, s.text, coalesce(s.narrative, ''), coalesce(s.slices, '{{}}'),
               coalesce(s.split, ''), coalesce(s.answerable, true), coalesce(s."group", ''), coalesce(s.scope, ''),
               s.effective_date, coalesce(s.facts, '[]')
        FROM import_question s WHERE s.question_id IS NULL ORDER BY s.line
        """,
        {"evalset": evalset.pk},
    )
    refresh_statistics("evalsets_question")

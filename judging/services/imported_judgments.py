"""Judgments of a file against those that are there: staged, compared and written by set-based statements."""

from __future__ import annotations

# ruff: noqa: S608 (the statements are put together from the constants of this file alone)
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from evalsets.models import EvalSet, ImportedFile, User
from evalsets.progress import Progress
from evalsets.services.events import record_event
from judging.models import Assessor
from pooling.formats import QrelsFile, VerdictFile
from pooling.services.importing.report import ImportReport, finish, note_earlier_import, record_file
from pooling.services.importing.staging import (
    copy_rows,
    execute,
    fetch,
    lock_evalset,
    make_table,
    refresh_statistics,
)
from pooling.services.importing.unknown import report_no_overlap, report_unknown_questions

# One row a judgment of the file. What the file leaves to us is null.
STAGE = """
    n int GENERATED ALWAYS AS IDENTITY, line int, question text COLLATE "C", chunk text COLLATE "C", kind text,
    grade smallint, reason text, note text, seconds float8, revision int, question_id bigint, chunk_id int,
    replaces_id bigint, pair_id bigint, state text
"""
COLUMNS = ("line", "question", "chunk", "kind", "grade", "reason", "note", "seconds", "revision")

# Looked up row by row through the indexes, here and below: a join's plan would hang on how many rows are expected.
MATCH = """
    UPDATE import_judgment s
    SET question_id = (SELECT q.id FROM evalsets_question q
                       WHERE q.evalset_id = %(evalset)s AND q.external_id = s.question),
        (chunk_id, revision) = (SELECT c.id, coalesce(s.revision, c.revision) FROM evalsets_chunk c
                                WHERE c.evalset_id = %(evalset)s AND c.external_id = s.chunk)
"""
# Each row of the file beside each judgment that holds now (nothing replaced it) for the same pair and text.
BESIDE = """
    SELECT s.n, s.kind, s.grade, s.reason,
           j.id AS other_id, j.kind AS other_kind, j.grade AS other_grade, j.reason AS other_reason,
           j.assessor_id, j.pair_id, a.kind = 'model' AS by_model,
           coalesce((j.details->>'repetition')::int, 1) AS repetition
    FROM import_judgment s
    CROSS JOIN LATERAL (
        SELECT * FROM judging_judgment j
        WHERE j.evalset_id = %(evalset)s AND j.question_id = s.question_id AND j.chunk_id = s.chunk_id
          AND j.revision = s.revision
          AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
        OFFSET 0
    ) j
    JOIN judging_assessor a ON a.id = j.assessor_id
"""


def take_over(report: ImportReport, file: QrelsFile | VerdictFile) -> None:
    report.sniff, report.sha256, report.read, report.findings = (
        file.sniff,
        file.digest,
        file.read,
        file.findings,
    )


def begin(report: ImportReport, evalset: EvalSet, progress: Progress) -> None:
    lock_evalset(evalset)
    note_earlier_import(report, evalset)
    progress(0, None, "comparing")


def stage(rows: Iterable[Sequence[Any]]) -> None:
    make_table("import_judgment", STAGE)
    copy_rows("import_judgment", COLUMNS, rows)


def match_questions(report: ImportReport, evalset: EvalSet, *, skip: bool) -> None:
    """Find the rows' questions and chunks; rows of unknown questions are a fault, or go."""
    execute(MATCH, {"evalset": evalset.pk})
    execute("ANALYZE import_judgment")
    unknown = fetch(
        "SELECT question, min(line) FROM import_judgment WHERE question_id IS NULL GROUP BY question ORDER BY min(line)"
    )
    ((questions,),) = fetch("SELECT count(DISTINCT question) FROM import_judgment")
    if not evalset.questions.exists():
        report.findings.faults.add("no-questions", expected="import the questions first")
    elif unknown and len(unknown) == questions:
        report_no_overlap(report.findings, evalset, "question", [name for name, _line in unknown])
    elif unknown:
        report_unknown_questions(report.findings, evalset, unknown, skip=skip)
    report.details["questions_skipped"] = len(unknown)
    report.details["labels_skipped"] = execute("DELETE FROM import_judgment WHERE question_id IS NULL")


def compare(
    report: ImportReport,
    evalset: EvalSet,
    *,
    assessor: Assessor | None,
    with_others: bool,
    repetition: int = 1,
) -> None:
    """Set each row's `state`: unchanged, revised (it replaces the assessor's earlier word) or new.

    `with_others`: the same grade by any person or file makes a row unchanged; so does the grade that the grades settle
    to by their median, which no one need have given. What a model said in another `repetition` is left alone.
    """
    by_median = evalset.settle_policy == EvalSet.SettlePolicy.MEDIAN
    execute(
        f"""
        WITH beside AS ({BESIDE}), own AS (
            SELECT DISTINCT ON (n) n, other_id, pair_id,
                   kind = other_kind AND grade IS NOT DISTINCT FROM other_grade AND reason = other_reason AS same
            FROM beside WHERE assessor_id = %(assessor)s AND repetition = %(repetition)s
            ORDER BY n, other_id DESC
        ), others AS (
            SELECT n, bool_or(grade = other_grade)
                      OR %(by_median)s AND min(grade) = floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY other_grade))
                      AS same
            FROM beside WHERE %(with_others)s AND other_kind = 'grade' AND NOT by_model GROUP BY n
        )
        UPDATE import_judgment s
        SET replaces_id = own.other_id, pair_id = own.pair_id,
            state = CASE WHEN own.same OR others.same THEN 'unchanged'
                         WHEN own.n IS NOT NULL THEN 'revised' ELSE 'new' END
        FROM import_judgment t LEFT JOIN own USING (n) LEFT JOIN others USING (n)
        WHERE s.n = t.n
        """,
        {
            "evalset": evalset.pk,
            "assessor": assessor.pk if assessor else None,
            "with_others": with_others,
            "repetition": repetition,
            "by_median": by_median,
        },
    )
    counts = dict(fetch("SELECT state, count(*) FROM import_judgment GROUP BY state"))
    report.new, report.unchanged, report.revised = (
        counts.get(state, 0) for state in ("new", "unchanged", "revised")
    )


def complete(
    report: ImportReport,
    evalset: EvalSet,
    *,
    by: User | None,
    assessor: Callable[[], Assessor],
    verb: str,
    progress: Progress,
    details: dict[str, Any] | None = None,
) -> ImportReport:
    """Write what is new or revised, with the file and the event; where nothing is, the report says so.

    `details` go into each judgment's, beside its line.
    """
    if report.check or report.has_faults() or not (report.new or report.revised):
        return finish(report)
    progress(0, report.new + report.revised, "writing")
    report.written = True
    imported = record_file(report, evalset=evalset, by=by)
    write(evalset, assessor=assessor(), imported=imported, details=details or {})
    record_event(
        evalset=evalset,
        by=by,
        verb=verb,
        summary=f"{report.new:,} judgments were imported from {report.file_name}, {report.revised:,} revised.",
        details={
            "file": imported.pk,
            "new": report.new,
            "revised": report.revised,
            "unchanged": report.unchanged,
        },
    )
    return report


def write(evalset: EvalSet, *, assessor: Assessor, imported: ImportedFile, details: dict[str, Any]) -> None:
    execute(
        """
        WITH added AS (
            INSERT INTO evalsets_chunk (evalset_id, external_id)
            SELECT %(evalset)s, chunk FROM import_judgment WHERE chunk_id IS NULL GROUP BY chunk ORDER BY min(n)
            RETURNING id, external_id
        )
        UPDATE import_judgment s SET chunk_id = added.id, revision = 1 FROM added WHERE s.chunk = added.external_id
        """,
        {"evalset": evalset.pk},
    )
    execute(
        """
        INSERT INTO judging_judgment (
            evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source, pair_id,
            imported_file_id, note, spans, facts, seconds, replaces_id, details
        )
        SELECT %(evalset)s, s.question_id, s.chunk_id, s.revision, %(assessor)s, s.kind, s.grade, s.reason, 'import',
               s.pair_id, %(file)s, s.note, '[]', '{}', s.seconds, s.replaces_id,
               jsonb_build_object('line', s.line) || %(details)s::jsonb
        FROM import_judgment s WHERE s.state <> 'unchanged' ORDER BY s.n
        """,
        {
            "evalset": evalset.pk,
            "assessor": assessor.pk,
            "file": imported.pk,
            "details": json.dumps(details),
        },
    )
    refresh_statistics("evalsets_chunk", "judging_judgment")

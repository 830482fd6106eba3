"""Bringing in labels that exist already, from qrels and label files."""

from __future__ import annotations

# ruff: noqa: S608 (the statements are put together from the constants of this file alone)
from pathlib import Path
from typing import Literal

from django.db import transaction

from evalsets.models import EvalSet, Question, User
from evalsets.progress import Progress, silent
from judging.models import Assessor
from judging.services.import_verdicts import import_verdicts
from judging.services.imported_judgments import (
    BESIDE,
    begin,
    compare,
    complete,
    match_questions,
    stage,
    take_over,
)
from pooling.formats import Findings, read_qrels
from pooling.services.importing.report import (
    SAMPLE_RECORDS,
    ImportReport,
    begin_report,
    configured_limits,
    finish,
    reading,
)
from pooling.services.importing.staging import fetch
from pooling.services.importing.unknown import report_no_overlap, warn_of_chunks_without_text

__all__ = ["import_qrels", "import_verdicts"]

REVERSED_BY = 1.2
ENOUGH_LABELS = 10
TOP = 10


@transaction.atomic
def import_qrels(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    format: str | None = None,
    negative: Literal["skip", "zero"] | None = None,
    unknown_questions: Literal["skip"] | None = None,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in existing labels. Each becomes a judgment whose assessor is the file, by its name.

    A pair that has the same grade already, from whomever, is unchanged: an export taken back in changes nothing. A
    file of the same name with another grade for a pair replaces what it said before (`revised`). Chunks that the eval
    set does not have are kept by their ID. Raises BadInput with the report where the file has faults; with `check`
    the report is given back instead.
    """
    report = begin_report(
        kind="qrels",
        source=source,
        file_name=file_name,
        check=check,
        options={"format": format, "negative": negative, "unknown_questions": unknown_questions},
    )
    read_labels(report, evalset, source, progress)
    if report.has_faults():
        return finish(report)
    assessor = Assessor.objects.filter(
        evalset=evalset, kind=Assessor.Kind.FILE, name=report.file_name[:200]
    ).first()
    compare(report, evalset, assessor=assessor, with_others=True)
    warn_of_other_grades(report.findings, evalset, assessor)
    warn_of_reversed_scale(report.findings, evalset)

    def the_file() -> Assessor:
        return assessor or Assessor.objects.create(
            evalset=evalset, kind=Assessor.Kind.FILE, name=report.file_name[:200]
        )

    return complete(report, evalset, by=by, assessor=the_file, verb="qrels-imported", progress=progress)


def read_labels(report: ImportReport, evalset: EvalSet, source: str | Path, progress: Progress) -> None:
    """Read a file of labels by the report's options, stage it, and find its questions and chunks."""
    file = read_qrels(
        source,
        format=report.options.get("format"),
        allowed=evalset.grades,
        negative=report.options.get("negative", "refuse"),
        with_models=report.kind == "judge",
        limits=configured_limits(),
        progress=reading(progress),
    )
    take_over(report, file)
    report.details |= {
        "grades": {str(grade): count for grade, count in sorted(file.grades.items())},
        "negative_skipped": file.skipped_negative,
        "negative_zeroed": file.zeroed_negative,
        "models_skipped": file.skipped_models,
    }
    report.sample = [
        {"line": label.line, "question": label.question, "chunk": label.chunk, "grade": label.grade}
        for label in file.records[:SAMPLE_RECORDS]
    ]
    if report.has_faults():
        return
    begin(report, evalset, progress)
    stage(
        (label.line, label.question, label.chunk, "grade", label.grade, "", "", None, None)
        for label in file.records
    )
    match_questions(report, evalset, skip=report.options.get("unknown_questions") == "skip")
    match_chunks(report, evalset)
    list_questions_without_labels(report, evalset)


def match_chunks(report: ImportReport, evalset: EvalSet) -> None:
    """Chunks without a text are kept by their ID and counted; that none is known at all is a fault."""
    ((total, known, with_text),) = fetch(
        """
        SELECT count(DISTINCT s.chunk), count(DISTINCT s.chunk_id),
               count(DISTINCT s.chunk) FILTER (WHERE c.has_text)
        FROM import_judgment s LEFT JOIN evalsets_chunk c ON c.id = s.chunk_id
        """
    )
    unknown = [
        name
        for (name,) in fetch(
            "SELECT chunk FROM import_judgment WHERE chunk_id IS NULL GROUP BY chunk ORDER BY min(line) LIMIT 20000"
        )
    ]
    if total and not known and evalset.chunks.whole().filter(has_text=True).exists():
        report_no_overlap(report.findings, evalset, "chunk", unknown)
    else:
        warn_of_chunks_without_text(report.findings, evalset, unknown, total - with_text, total)
    report.details |= {"chunks": total, "chunks_without_text": total - with_text}


def warn_of_other_grades(findings: Findings, evalset: EvalSet, assessor: Assessor | None) -> None:
    found = fetch(
        f"""
        WITH beside AS ({BESIDE})
        SELECT s.line, s.question, s.chunk, s.grade, array_agg(DISTINCT beside.other_grade)
        FROM import_judgment s JOIN beside USING (n)
        WHERE s.state <> 'unchanged' AND beside.other_kind = 'grade' AND NOT beside.by_model
          AND beside.assessor_id IS DISTINCT FROM %(assessor)s
        GROUP BY s.n, s.line, s.question, s.chunk, s.grade ORDER BY s.n
        """,
        {"evalset": evalset.pk, "assessor": assessor.pk if assessor else None},
    )
    for line, question, chunk, grade, others in found:
        findings.warnings.add(
            "other-grade",
            line=line,
            field=f"{question}, {chunk}",
            value=grade,
            expected=f"it was graded {', '.join(map(str, others))}; both are kept and settle by the eval set's policy",
        )


def warn_of_reversed_scale(findings: Findings, evalset: EvalSet) -> None:
    """Where systems find the lowest grade far more often than the highest, the codes probably run backwards."""
    found = fetch(
        """
        SELECT s.grade, count(*), count(*) FILTER (WHERE (s.question_id, s.chunk_id) IN (
            SELECT ranking.question_id, chunk.id
            FROM pooling_ranking ranking JOIN pooling_run run ON run.id = ranking.run_id
            CROSS JOIN LATERAL unnest(ranking.chunk_ids[1:%(top)s]) AS chunk (id)
            WHERE run.evalset_id = %(evalset)s
        ))
        FROM import_judgment s GROUP BY s.grade ORDER BY s.grade
        """,
        {"evalset": evalset.pk, "top": TOP},
    )
    shares = [
        (grade, found_in_top / labels) for grade, labels, found_in_top in found if labels >= ENOUGH_LABELS
    ]
    if len(shares) < 2:
        return
    (lowest, low), (highest, high) = shares[0], shares[-1]
    if low > high * REVERSED_BY:
        findings.warnings.add(
            "scale-reversed",
            field="grade",
            value=f"in the first {TOP} of some run: {low:.0%} of grade {lowest}, {high:.0%} of grade {highest}",
            expected="higher grades found more often; if the codes run backwards, turn them round before the import",
        )


def list_questions_without_labels(report: ImportReport, evalset: EvalSet) -> None:
    without = (
        Question.objects.filter(evalset=evalset)
        .exclude(pk__in=[pk for (pk,) in fetch("SELECT DISTINCT question_id FROM import_judgment")])
        .order_by("external_id")
        .values_list("external_id", flat=True)
    )
    names = list(without)
    for name in names:
        report.findings.warnings.add("questions-without-labels", field="question", value=name)
    report.details["questions_without_labels"] = len(names)

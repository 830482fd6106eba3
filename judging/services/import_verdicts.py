"""Bringing back the answers to a remainder that was judged elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from evalsets.commands import find_user
from evalsets.errors import BadInput
from evalsets.models import EvalSet, Member, User
from evalsets.progress import Progress, silent
from judging.models import Assessor, Judgment
from judging.services.assessors import assessor_for
from judging.services.imported_judgments import begin, compare, complete, match_questions, stage, take_over
from pooling.formats import Findings, VerdictRecord, read_verdicts
from pooling.services.importing.report import (
    SAMPLE_RECORDS,
    ImportReport,
    begin_report,
    configured_limits,
    finish,
    reading,
)
from pooling.services.importing.staging import fetch


@transaction.atomic
def import_verdicts(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    assessor: User | str,
    format: str | None = None,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in the answers to a remainder as judgments of `assessor`, a user (or user name) who may judge here.

    An answer replaces what the assessor said of the pair before (`revised`); the same again is unchanged. An answer
    that names an older revision of the chunk stays with it. Raises BadInput for a user who may not judge, and with the
    report where the file has faults; with `check` the report is given back instead.
    """
    user = find_user(assessor) if isinstance(assessor, str) else assessor
    may_judge = [Member.Role.LEAD, Member.Role.ASSESSOR]
    if not Member.objects.filter(evalset=evalset, user=user, role__in=may_judge).exists():
        raise BadInput(f"{user.username} is no assessor of {evalset.slug}; make them one first.")
    report = begin_report(
        kind="verdicts",
        source=source,
        file_name=file_name,
        check=check,
        options={"format": format, "assessor": user.username},
    )
    file = read_verdicts(
        source,
        format=format or None,
        allowed=evalset.grades,
        limits=configured_limits(),
        progress=reading(progress),
    )
    take_over(report, file)
    report.details["open"] = file.open
    report.sample = [
        {"line": answer.line, "question": answer.question, "chunk": answer.chunk, "grade": answer.grade}
        for answer in file.records[:SAMPLE_RECORDS]
    ]
    revisions = {answer.line: revision_of(answer, report.findings) for answer in file.records}
    if report.has_faults():
        return finish(report)
    begin(report, evalset, progress)
    stage(verdict_row(answer, revisions[answer.line]) for answer in file.records)
    match_questions(report, evalset, skip=False)
    find_unknown_chunks(report.findings)
    check_revisions(report.findings)
    if report.has_faults():
        return finish(report)
    there = Assessor.objects.filter(evalset=evalset, user=user).first()
    compare(report, evalset, assessor=there, with_others=False)
    return complete(
        report,
        evalset,
        by=by,
        assessor=lambda: assessor_for(evalset=evalset, user=user),
        verb="verdicts-imported",
        progress=progress,
    )


def revision_of(answer: VerdictRecord, findings: Findings) -> int | None:
    """The number of the revision that an answer names; None where it names none."""
    text = answer.revision.strip()
    if not text:
        return None
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 32_768 and len(text) < 6:
        return int(text)
    findings.faults.add(
        "unknown-revision",
        line=answer.line,
        field="revision",
        value=text,
        expected="the revision as the remainder had it",
    )
    return None


def verdict_row(answer: VerdictRecord, revision: int | None) -> tuple[Any, ...]:
    """A reason that is one of ours is kept as it is; any other is kept as a note."""
    reason, note = "", answer.note
    if answer.grade is None:
        reason = answer.cannot_judge
        if reason not in Judgment.Reason.values:
            note = f"{reason}\n{note}".strip() if reason.lower() != "other" else note
            reason = Judgment.Reason.OTHER
    kind = Judgment.Kind.CANNOT_JUDGE if answer.grade is None else Judgment.Kind.GRADE
    return (
        answer.line,
        answer.question,
        answer.chunk,
        str(kind),
        answer.grade,
        str(reason),
        note,
        answer.seconds,
        revision,
    )


def find_unknown_chunks(findings: Findings) -> None:
    for line, name in fetch("SELECT line, chunk FROM import_judgment WHERE chunk_id IS NULL ORDER BY line"):
        findings.faults.add(
            "unknown-chunk",
            line=line,
            field="chunk_id",
            value=name,
            expected="a chunk of the remainder that was given out",
        )


def check_revisions(findings: Findings) -> None:
    rows = fetch(
        """
        SELECT s.line, s.chunk, s.revision, c.revision,
               EXISTS (SELECT FROM evalsets_chunkrevision r WHERE r.chunk_id = c.id AND r.number = s.revision)
        FROM import_judgment s JOIN evalsets_chunk c ON c.id = s.chunk_id
        WHERE s.revision <> c.revision ORDER BY s.line
        """
    )
    for line, name, revision, current, there in rows:
        collector, kind = (
            (findings.warnings, "older-text") if there else (findings.faults, "unknown-revision")
        )
        collector.add(
            kind, line=line, field=name, value=revision, expected=f"revision {current}, the current one"
        )

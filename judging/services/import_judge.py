"""Bringing in what an outside judge said: the grades of a model or a rule, compared with people's and fenced off."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from django.db import transaction
from django.db.models import IntegerField, Max
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from evalsets.errors import BadInput
from evalsets.models import EvalSet, User
from evalsets.progress import Progress, silent
from judging.models import Assessor, Judgment
from judging.services.import_qrels import read_labels
from judging.services.imported_judgments import compare, complete
from pooling.formats import Findings
from pooling.services.importing.report import ImportReport, begin_report, finish
from pooling.services.importing.staging import fetch

MOST_REPETITIONS = 1000


@transaction.atomic
def import_judge(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    judge: str,
    repetition: int = 1,
    format: str | None = None,
    negative: Literal["skip", "zero"] | None = None,
    unknown_questions: Literal["skip"] | None = None,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in an outside judge's grades from a file of labels, as those of the assessor `judge` of kind `model`.

    A judge that was run several times on the same pairs has a `repetition` for each, from 1: they stand side by side,
    and each is a chain of judgments of its own. The same grade again in the same repetition is unchanged, another one
    replaces it (`revised`). Raises BadInput for a name or number that will not do, and with the report where the file
    has faults; with `check` the report is given back instead.
    """
    name = " ".join(judge.split())
    if not name or len(name) > 200 or not name.isprintable():
        raise BadInput("Give the judge a name of at most 200 printable characters.")
    if not 1 <= repetition <= MOST_REPETITIONS:
        raise BadInput(f"The repetition is {repetition}; it goes from 1 to {MOST_REPETITIONS}.")
    report = begin_report(
        kind="judge",
        source=source,
        file_name=file_name,
        check=check,
        options={
            "judge": name,
            "repetition": repetition,
            "format": format,
            "negative": negative,
            "unknown_questions": unknown_questions,
        },
    )
    read_labels(report, evalset, source, progress)
    if report.has_faults():
        return finish(report)
    there = Assessor.objects.filter(evalset=evalset, kind=Assessor.Kind.MODEL, name=name).first()
    compare(report, evalset, assessor=there, with_others=False, repetition=repetition)
    if report.revised and there:
        warn_of_regrades(report.findings, next_repetition(there))
    return complete(
        report,
        evalset,
        by=by,
        assessor=lambda: (
            there or Assessor.objects.create(evalset=evalset, kind=Assessor.Kind.MODEL, name=name)
        ),
        verb="judge-imported",
        progress=progress,
        details={"repetition": repetition},
    )


def next_repetition(judge: Assessor) -> int:
    """The lowest number above all the judge's repetitions."""
    number = Cast(KT("details__repetition"), IntegerField())
    latest: int | None = Judgment.objects.filter(assessor=judge).aggregate(latest=Max(number))["latest"]
    return (latest or 0) + 1


def warn_of_regrades(findings: Findings, unused: int) -> None:
    regraded = fetch(
        """
        SELECT s.line, s.question, s.chunk, s.grade, j.grade
        FROM import_judgment s JOIN judging_judgment j ON j.id = s.replaces_id
        WHERE s.state = 'revised' ORDER BY s.n
        """
    )
    for line, question, chunk, grade, earlier in regraded:
        findings.warnings.add(
            "judge-regraded",
            line=line,
            field=f"{question}, {chunk}",
            value=grade,
            expected=f"it was {earlier}; if the judge was run again, import the file as repetition {unused}",
        )

"""Outside judges beside people: how far each may be trusted, and where it is off."""

from __future__ import annotations

from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of
from evalsets.models import EvalSet
from judging.models import Assessor, Judgment
from judging.reckoning import as_of
from labels.judge_report import JudgeSummary
from labels.reports import JUDGE, JUDGES, LABELS_OF_JUDGES
from labels.views.agreement import confusion_picture


@require_GET
@access.reader
def judge_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Every outside judge at a glance, the one that agrees best with people first."""
    read = JUDGES.read(evalset)
    context = {
        "evalset": evalset,
        "as_of": as_of(read),
        "known": read.value is not None,
        "page": page_of(request, sorted(read.value or [], key=_best_first)),
    }
    return render(request, "labels/judge_list.html", context)


def _best_first(summary: JudgeSummary) -> tuple[bool, float]:
    value = summary.verdict.read.value
    return summary.verdict.level == "unknown", -(value if value is not None else -1)


@require_GET
@access.reader
def judge_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    judge = get_object_or_404(evalset.assessors, pk=pk, kind=Assessor.Kind.MODEL)
    read, labels = JUDGE.read(evalset, judge.pk), LABELS_OF_JUDGES.read(evalset)
    if read.value is None:
        missing = {"evalset": evalset, "heading": judge.name, "as_of": as_of(read, labels)}
        return render(request, "includes/not_worked_out.html", missing)
    report, among_people = read.value
    questions = evalset.questions.in_bulk([pair.question_id for pair in report.furthest])
    chunks = evalset.chunks.in_bulk([pair.chunk_id for pair in report.furthest])
    said = Judgment.objects.filter(imported_file=OuterRef("pk"), assessor=judge)
    context = {
        "evalset": evalset,
        "judge": judge,
        "report": report,
        "summary": report.summary,
        "verdict": report.summary.verdict,
        "as_of": as_of(read, labels),
        "among_people": among_people,
        "picture": confusion_picture(report.confusion),
        "furthest": [(pair, questions[pair.question_id], chunks[pair.chunk_id]) for pair in report.furthest],
        "would_add": labels.value and labels.value.by_judge.get(judge.name),
        "files": evalset.imported_files.filter(Exists(said)),
    }
    return render(request, "labels/judge.html", context)

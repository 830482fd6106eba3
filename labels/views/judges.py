"""Outside judges beside people: how far each may be trusted, and where it is off."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of
from evalsets.models import Chunk, EvalSet, Question
from judging.models import Assessor
from labels.judge_grades import graded_pairs
from labels.judge_report import JudgeSummary, among_people, report_on, summarise
from labels.settling import labels_of_judges
from labels.views.agreement import confusion_picture


@require_GET
@access.reader
def judge_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Every outside judge at a glance, the one that agrees best with people first."""
    graded = graded_pairs(evalset)
    found = [
        summarise(graded, said, grades=evalset.grades, threshold=evalset.threshold, resamples=0)
        for said in graded.judges
    ]
    page = page_of(request, sorted(found, key=_best_first))
    return render(request, "labels/judge_list.html", {"evalset": evalset, "page": page})


def _best_first(summary: JudgeSummary) -> tuple[bool, float]:
    value = summary.verdict.read.value
    return summary.verdict.level == "unknown", -(value if value is not None else -1)


@require_GET
@access.reader
def judge_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    judge = get_object_or_404(evalset.assessors, pk=pk, kind=Assessor.Kind.MODEL)
    graded = graded_pairs(evalset)
    report = report_on(
        graded,
        graded.of(judge),
        grades=evalset.grades,
        threshold=evalset.threshold,
        slices=dict(evalset.questions.values_list("pk", "slices")),
    )
    questions = Question.objects.in_bulk([pair.question_id for pair in report.furthest])
    chunks = Chunk.objects.in_bulk([pair.chunk_id for pair in report.furthest])
    context = {
        "evalset": evalset,
        "judge": judge,
        "report": report,
        "summary": report.summary,
        "verdict": report.summary.verdict,
        "among_people": among_people(evalset, report.summary.verdict.read),
        "picture": confusion_picture(report.confusion),
        "furthest": [(pair, questions[pair.question_id], chunks[pair.chunk_id]) for pair in report.furthest],
        "would_add": labels_of_judges(evalset).by_judge[judge.name],
        "files": evalset.imported_files.filter(judgments__assessor=judge).distinct(),
    }
    return render(request, "labels/judge.html", context)

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet
from judging.reckoning import as_of
from labels.coverage import RunCoverage, UnjudgedCount
from labels.reports import COVERAGE, coverage_of
from labels.settling import labels_of_question
from labels.views.questions import Cell, cell_of, current_revisions, was_judged
from pooling.models import Ranking, Run
from pooling.services.systems import change_family

# The depths at which a run's unjudged rate is shown.
DEPTHS = (5, 10, 20)
MISSING_SHOWN = 20


def _rates(coverage: RunCoverage | None) -> list[UnjudgedCount]:
    """What is unjudged of a run within each of `DEPTHS`; empty where that has to be asked for."""
    return [coverage.unjudged(k) for k in DEPTHS] if coverage else []


@require_GET
@access.reader
def system_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    systems = evalset.systems.annotate(run_count=Count("runs"))
    text = request.GET.get("q", "").strip()
    if text:
        systems = systems.filter(Q(name__icontains=text) | Q(family__icontains=text))
    page = page_of(request, sorted_by(request, systems, {"name": "name", "family": "family"}, "name"))
    latest = {
        run.system_id: run for run in evalset.runs.filter(system__in=page.object_list).latest_of_each_system()
    }
    covered = COVERAGE.read(evalset)
    rows = []
    for system in page:
        run = latest.get(system.pk)
        rows.append((system, run, _rates(coverage_of(covered, run)) if run else []))
    context = {
        "evalset": evalset,
        "page": page,
        "rows": rows,
        "depths": DEPTHS,
        "q": text,
        "as_of": as_of(covered),
    }
    return render(request, "labels/system_list.html", context)


@require_GET
@access.reader
def system_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """A system and its runs, the latest first."""
    system = get_object_or_404(evalset.systems, pk=pk)
    runs = system.runs.all()
    text = request.GET.get("q", "").strip()
    if text:
        runs = runs.filter(Q(name__icontains=text) | Q(version__icontains=text))
    stage = filter_by(request, "stage", "Stage", Run.Stage.choices)
    if stage.chosen:
        runs = runs.filter(stage=stage.chosen)
    columns = {"run": "name", "date": "date", "version": "version"}
    page = page_of(request, sorted_by(request, runs, columns, "-date"))
    covered = COVERAGE.read(evalset)
    context = {
        "evalset": evalset,
        "system": system,
        "page": page,
        "rows": [(run, _rates(coverage_of(covered, run))) for run in page],
        "q": text,
        "filter": stage,
        "depths": DEPTHS,
        "as_of": as_of(covered),
    }
    return render(request, "labels/system_detail.html", context)


@require_POST
@access.lead
def system_family(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    system = get_object_or_404(evalset.systems, pk=pk)
    try:
        change_family(system=system, family=request.POST.get("family", ""), by=request.user)
        messages.success(request, f"{system} is marked." if system.family else f"{system} is of no family.")
    except BadInput as error:
        messages.error(request, str(error))
    return redirect(system)


@require_GET
@access.reader
def run_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    run = get_object_or_404(evalset.runs.select_related("system", "created_by"), pk=pk)
    rankings = run.rankings.select_related("question")
    text = request.GET.get("q", "").strip()
    if text:
        rankings = rankings.filter(
            Q(question__external_id__icontains=text) | Q(question__text__icontains=text)
        )
    which = filter_by(
        request, "which", "Which", [("empty", "returned nothing"), ("abstained", "the system abstained")]
    )
    if which.chosen == "empty":
        rankings = rankings.filter(chunk_ids=[])
    elif which.chosen == "abstained":
        rankings = rankings.filter(abstained=True)
    columns = {"question": "question__external_id", "returned": "chunk_ids__len"}
    page = page_of(request, sorted_by(request, rankings, columns, "question"))
    covered = COVERAGE.read(evalset)
    coverage = (covered.value or {}).get(run.pk)
    ranked = Ranking.objects.filter(run=run, question=OuterRef("pk"))
    context = {
        "evalset": evalset,
        "run": run,
        "page": page,
        "rows": [(ranking, len(ranking.chunk_ids)) for ranking in page],
        "q": text,
        "filter": which,
        "as_of": as_of(covered),
        "coverage": coverage,
        "rates": list(zip(DEPTHS, _rates(coverage), strict=True)) if coverage else [],
        "missing": evalset.questions.exclude(Exists(ranked))[:MISSING_SHOWN]
        if coverage and coverage.missing
        else [],
        "config": sorted(run.config.items()),
        "provenance": sorted(run.provenance.items()),
    }
    return render(request, "labels/run_detail.html", context)


@require_GET
@access.reader
def ranking_detail(request: AuthedRequest, evalset: EvalSet, pk: int, question_pk: int) -> HttpResponse:
    """One ranking with its labels and texts, best first; all of it, or what the address asks for."""
    run = get_object_or_404(evalset.runs.select_related("system"), pk=pk)
    question = get_object_or_404(evalset.questions.select_related("evalset"), pk=question_pk)
    ranking = Ranking.objects.filter(run=run, question=question).first()
    ranked = list(enumerate(ranking.chunk_ids, start=1)) if ranking else []
    settled = labels_of_question(question)
    if text := request.GET.get("q", "").strip():
        named = evalset.chunks.filter(pk__in=[key for _, key in ranked], external_id__icontains=text)
        found = set(named.values_list("pk", flat=True))
        ranked = [(rank, key) for rank, key in ranked if key in found]
    which = filter_by(request, "which", "Which", [("judged", "judged"), ("unjudged", "unjudged")])
    if which.chosen:
        judged = which.chosen == "judged"
        ranked = [(rank, key) for rank, key in ranked if was_judged(settled.get(key)) == judged]
    page = page_of(request, ranked, per_page=20)
    chunks = evalset.chunks.in_bulk([key for _, key in page])
    revisions = current_revisions(chunks.values())
    rows = []
    for rank, chunk_id in page:
        cell: Cell = cell_of(rank, chunks[chunk_id], settled)
        score = ranking.scores[rank - 1] if ranking and ranking.scores else None
        rows.append((cell, revisions.get(chunk_id), score))
    context = {
        "evalset": evalset,
        "run": run,
        "question": question,
        "ranking": ranking,
        "page": page,
        "rows": rows,
        "q": text,
        "filter": which,
    }
    return render(request, "labels/ranking_detail.html", context)

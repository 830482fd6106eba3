from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import number_in, page_of, sort_in
from evalsets.models import EvalSet
from scoring.forms import ReusabilityForm, StagesForm
from scoring.models import Analysis, ScoreResult
from scoring.services.analysing import analysis_document
from scoring.services.comparing import pool_membership
from scoring.stages import FATES
from scoring.views.acting import act, initial

#: The depths whose rates stand in the table beside the curve.
TABLE_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)


@require_GET
@access.reader
def unjudged(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The unjudged rate by depth of every run that has been scored on a release."""
    releases = evalset.releases.all()
    chosen = releases.filter(number=number_in(request.GET.get("release"))).first()
    release = chosen or releases.first()
    curves: dict[int, ScoreResult] = {}
    if release is not None:
        stored = ScoreResult.objects.filter(release=release, split="", unit="chunk").select_related(
            "run__system"
        )
        for result in stored.order_by("pk"):
            curves[result.run_id] = result
    rows = []
    for result in sorted(curves.values(), key=lambda one: one.run.name):
        curve = result.document["unjudged_by_depth"]
        at = [(k, curve[min(k, len(curve)) - 1] if curve and k <= len(curve) else None) for k in TABLE_DEPTHS]
        rows.append((result, at, pool_membership(result.release, result.run).depth))
    context = {
        "evalset": evalset,
        "tab": "unjudged",
        "release": release,
        "releases": releases[:50],
        "rows": rows,
        "depths": TABLE_DEPTHS,
    }
    return render(request, "scoring/unjudged.html", context)


@require_GET
@access.reader
def reusability(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Whether the release's pool can judge systems that were not in it: each system left out in turn."""
    latest = list(evalset.runs.latest_of_each_system())
    release = evalset.releases.first()
    form = initial(
        request,
        ReusabilityForm,
        evalset,
        release=release.number if release else None,
        chosen=[run.name for run in latest],
    )
    analysis = _chosen(request, evalset, Analysis.Kind.REUSABILITY)
    context: dict[str, Any] = {
        "evalset": evalset,
        "tab": "reusability",
        "form": form,
        "analysis": analysis,
        "others": evalset.analyses.filter(kind=Analysis.Kind.REUSABILITY).select_related("release")[:20],
        "releases": release is not None,
    }
    if analysis is not None:
        document = analysis_document(analysis)
        context |= {
            "rows": sorted(document["systems"], key=lambda row: row["rank_before"]),
            "lowest_tau": document["lowest_tau"],
            "moved": document["moved"],
        }
    return render(request, "scoring/reusability.html", context)


@require_POST
@access.lead
def reusability_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = ReusabilityForm(request.POST, evalset=evalset)
    return act(request, evalset, kind="reusability", form=form, page="scoring:reusability")


@require_GET
@access.reader
def stages(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Where one system loses relevant evidence between its stages.

    `?q=` finds questions by ID; `?sort=` a fate, or `question`, gives their order.
    """
    release = evalset.releases.first()
    form = StagesForm(
        request.GET if request.GET.get("release") else None, evalset=evalset, initial=_one_system(evalset)
    )
    analysis = _chosen(request, evalset, Analysis.Kind.STAGES)
    context: dict[str, Any] = {
        "evalset": evalset,
        "tab": "stages",
        "form": form,
        "analysis": analysis,
        "others": evalset.analyses.filter(kind=Analysis.Kind.STAGES).select_related("release")[:20],
        "releases": release is not None,
        "fates": FATES,
    }
    if analysis is not None:
        document = analysis.document
        text = request.GET.get("q", "").strip()
        questions = [row for row in document["questions"] if text.lower() in row["id"].lower()]
        by, direction = sort_in(request, ("question", *FATES), "question")
        questions.sort(
            key=lambda row: row["id"] if by == "question" else row["fates"][by], reverse=direction == "-"
        )
        page = page_of(request, questions, per_page=25)
        relevant = document["relevant"]
        context |= {
            "steps": [("relevant", "relevant, by the labels", relevant)]
            + [(step["stage"], f"left after {step['stage']}", step["left"]) for step in document["left"]],
            "page": page,
            "q": text,
            "rows": [(row["id"], [row["fates"][fate] for fate in FATES]) for row in page],
            "lost": document["lost"][:200],
            "lost_more": max(0, len(document["lost"]) - 200),
        }
    return render(request, "scoring/stages.html", context)


def _one_system(evalset: EvalSet) -> dict[str, str]:
    """The latest run of each stage of the first system that has more than one stage."""
    runs: dict[int, dict[str, str]] = {}
    latest = evalset.runs.latest_of_each_stage().values_list("system_id", "stage", "name")
    for system, stage, name in latest[:2000]:
        runs.setdefault(system, {})[stage] = name
    return next((stages for stages in runs.values() if len(stages) > 1), {})


@require_POST
@access.lead
def stages_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = StagesForm(request.POST, evalset=evalset)
    return act(request, evalset, kind="stages", form=form, page="scoring:stages")


def _chosen(request: AuthedRequest, evalset: EvalSet, kind: str) -> Analysis | None:
    """The analysis that the address names, else the latest of its kind."""
    made = evalset.analyses.filter(kind=kind).select_related("release")
    asked = number_in(request.GET.get("analysis"))
    if asked:
        return get_object_or_404(made, pk=asked)
    return made.first()

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.models import EvalSet
from pooling.models import Run
from scoring.comparison import resolution
from scoring.forms import SweepForm
from scoring.models import Comparison
from scoring.pictures import common_reach, interval_picture
from scoring.services.comparing import comparisons_so_far, holdout_uses, with_holm
from scoring.services.sweeping import best_first, comparisons_by, has_holdout, noise_floor
from scoring.views.acting import act, initial


@require_GET
@access.reader
def sweep(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Any number of runs against one baseline by one measure, the best first, with what picking the best costs."""
    latest = list(evalset.runs.latest_of_each_system())
    release = evalset.releases.first()
    form = initial(
        request,
        SweepForm,
        evalset,
        release=release.number if release else None,
        baseline=latest[0].name if latest else None,
        candidates=[run.name for run in latest[1:]],
    )
    context: dict[str, Any] = {
        "evalset": evalset,
        "tab": "sweep",
        "form": form,
        "rows": [],
        "releases": evalset.releases.exists(),
    }
    if form.is_bound and form.is_valid():
        baseline, *candidates = form.runs()
        context |= _found(form, baseline, candidates)
    return render(request, "scoring/sweep.html", context)


def _found(form: SweepForm | Any, baseline: Run, candidates: list[Run]) -> dict[str, Any]:
    measure = form.asked.measures[0].name
    release = form.cleaned_data["release"]
    made: dict[int, Comparison] = {}
    for comparison in comparisons_by(release, form.asked).filter(run_a=baseline, run_b__in=candidates):
        made[comparison.run_b_id] = comparison
    floor = noise_floor(release, form.asked)
    rules = form.rules()
    runs = {run.pk: run for run in candidates}
    ranked = best_first(made[run.pk] for run in candidates if run.pk in made)
    documents = with_holm([comparison.document for comparison in ranked])
    reach = common_reach([document["interval"] for document in documents])
    rows = []
    for comparison, document in zip(ranked, documents, strict=True):
        low, high = document["interval"]
        picture = interval_picture(low, high, document["difference"], width=160, reach=reach)
        run = runs[comparison.run_b_id]
        rows.append({"run": run, "comparison": comparison, "document": document, "picture": picture})
    return {
        "rows": rows,
        "baseline": baseline,
        "measure": measure,
        "depth": form.asked.measures[0].depth,
        "release": release,
        "split": form.asked.split,
        "missing": len(candidates) - len(rows),
        "best": rows[0]["run"] if rows else None,
        "floor": floor,
        "half_width": resolution(floor.document["interval"]) if floor else None,
        "same_rules": [(name, rules[name]) for name in ("unit", "threshold") if rules[name]]
        + ([("common", "on")] if rules["common"] else []),
        "has_holdout": has_holdout(release),
        "comparisons_so_far": comparisons_so_far(release),
        "holdout_uses": holdout_uses(release),
    }


@require_POST
@access.lead
def sweep_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = SweepForm(request.POST, evalset=evalset)
    return act(request, evalset, kind="sweep", form=form, page="scoring:sweep")

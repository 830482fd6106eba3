from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.models import EvalSet
from scoring.effects import effects_on_scores


@require_GET
@access.reader
def release_effects(request: AuthedRequest, evalset: EvalSet, before: int, after: int) -> HttpResponse:
    """How the scores of runs differ between two releases; the page of their difference takes its table from here."""
    old = get_object_or_404(evalset.releases, number=before)
    new = get_object_or_404(evalset.releases, number=after)
    context = {"evalset": evalset, "before": old, "after": new, "effects": effects_on_scores(old, new)}
    return render(request, "scoring/release_effects.html", context)

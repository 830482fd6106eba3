from __future__ import annotations

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of
from evalsets.models import EvalSet


@require_GET
@access.lead
def audit(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Who did what, when; searchable by words of the sentence, by the verb and by the person."""
    events = evalset.events.select_related("by", "token__user")
    if text := request.GET.get("q", "").strip():
        events = events.filter(
            Q(summary__icontains=text)
            | Q(verb__icontains=text)
            | Q(by__username__icontains=text)
            | Q(token__name__icontains=text)
        )
    return render(
        request, "evalsets/audit.html", {"evalset": evalset, "page": page_of(request, events), "q": text}
    )

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import beginning_of, day_in, page_of, sorted_by
from evalsets.models import EvalSet


@require_GET
@access.lead
def audit(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Who did what, when; searchable by words of the sentence, by the verb and by the person, and between two days."""
    events = evalset.events.select_related("by", "token__user")
    if text := request.GET.get("q", "").strip():
        events = events.filter(
            Q(summary__icontains=text)
            | Q(verb__icontains=text)
            | Q(by__username__icontains=text)
            | Q(token__name__icontains=text)
        )
    since, until = day_in(request.GET.get("since")), day_in(request.GET.get("until"))
    if since:
        events = events.filter(at__gte=beginning_of(since))
    if until:
        events = events.filter(at__lt=beginning_of(until + timedelta(days=1)))
    context = {
        "evalset": evalset,
        "page": page_of(request, sorted_by(request, events, {"when": "at"}, "-when")),
        "q": text,
        "since": since,
        "until": until,
    }
    return render(request, "evalsets/audit.html", context)

"""Carrying labels over: new texts beside the old ones that were judged, and a decision by one key."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.differences import difference
from evalsets.errors import Refused
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet
from evalsets.services.jobs import start_job
from judging.reckoning import as_of
from labels.exports.reading import revisions_of
from labels.models import TextMapping
from labels.reports import PLAN
from labels.services.carrying import carriages_of, decide_mapping


@require_GET
@access.lead
def mapping_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What was proposed, what a rule would carry, and which mappings wait for a person."""
    mappings = TextMapping.objects.filter(evalset=evalset).select_related(
        "evalset", "old_chunk", "new_chunk", "decided_by"
    )
    plan = PLAN.read(evalset)
    decided = request.GET.get("show") == "decided"
    waiting = mappings.filter(decided_at__isnull=True)
    shown = mappings.filter(decided_at__isnull=False) if decided else waiting
    if text := request.GET.get("q", "").strip():
        shown = shown.filter(
            Q(old_chunk__external_id__icontains=text) | Q(new_chunk__external_id__icontains=text)
        )
    method = filter_by(request, "method", "Found by", TextMapping.Method.choices)
    if method.chosen:
        shown = shown.filter(method=method.chosen)
    columns = {"old": "old_chunk__external_id", "common": "share", "decided": "decided_at"}
    default = "-decided" if decided else "-common"
    context = {
        "evalset": evalset,
        "page": page_of(request, sorted_by(request, shown, columns, default)),
        "q": text,
        "filter": method,
        "decided": decided,
        "waiting": waiting.count(),
        "first": waiting.first(),
        "looked": mappings.order_by("-found_at").first(),
        "plan": plan.value,
        "as_of": as_of(plan),
    }
    return render(request, "labels/mapping_list.html", context)


@require_POST
@access.lead
def mapping_find(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    return redirect(
        start_job(
            evalset=evalset,
            task="labels.find_mappings",
            title="Look for new texts to carry labels to",
            by=request.user,
        )
    )


@require_POST
@access.lead
def mapping_carry(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    return redirect(
        start_job(evalset=evalset, task="labels.carry_by_rule", title="Carry labels by rule", by=request.user)
    )


@require_GET
@access.lead
def mapping_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """The old text beside the new one, with the labels that would come along."""
    mapping = get_object_or_404(
        TextMapping.objects.filter(evalset=evalset).select_related(
            "evalset", "old_chunk", "new_chunk", "decided_by"
        ),
        pk=pk,
    )
    old_key, new_key = (
        (mapping.old_chunk_id, mapping.old_revision),
        (mapping.new_chunk_id, mapping.new_revision),
    )
    texts = revisions_of([old_key, new_key])
    old, new = texts.get(old_key), texts.get(new_key)
    pieces = difference(old.text if old else "", new.text if new else "")
    carriages = carriages_of([mapping])
    questions = evalset.questions.in_bulk([item.question_id for item in carriages])
    context = {
        "evalset": evalset,
        "mapping": mapping,
        "sides": [
            ("Old, judged", mapping.old_chunk, old, [piece for piece in pieces if piece.kind != "new"]),
            ("New", mapping.new_chunk, new, [piece for piece in pieces if piece.kind != "old"]),
        ],
        "rows": [(item, questions[item.question_id]) for item in carriages],
        "following": mapping.next_undecided(),
        "left": TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True).count(),
    }
    return render(request, "labels/mapping_detail.html", context)


@require_POST
@access.lead
def mapping_decide(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Carry the labels of this mapping, or leave them to the remainder; then go on with the next."""
    mapping = get_object_or_404(TextMapping.objects.filter(evalset=evalset).select_related("evalset"), pk=pk)
    act = request.POST.get("act")
    if act not in ("carry", "leave"):
        messages.error(request, "Choose one of the buttons.")
        return redirect(mapping)
    try:
        carried = decide_mapping(mapping=mapping, by=request.user, carry=act == "carry")
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect(mapping)
    messages.success(
        request, f"Carried {carried} labels." if act == "carry" else "Left: the new text is to be judged."
    )
    waiting = TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True)
    return redirect(
        mapping.next_undecided() or waiting.first() or reverse("labels:mapping-list", args=[evalset.slug])
    )

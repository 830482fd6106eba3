from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of
from evalsets.models import Chunk, EvalSet, Question
from labels.paging import PagedRows
from labels.settling import Why, settled_counts, settled_pairs

TABS: tuple[tuple[Why, str], ...] = (("contested", "Contested"), ("skipped-only", "Skipped only"))


@require_GET
@access.reader
def contested_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The pairs that carry no label as things stand: contested ones, or with `?why=skipped-only` those only skipped."""
    why: Why = "skipped-only" if request.GET.get("why") == "skipped-only" else "contested"
    counts = settled_counts(evalset)
    length = counts.contested if why == "contested" else counts.skipped_only
    page = page_of(
        request,
        PagedRows(
            length, lambda offset, limit: settled_pairs(evalset, why=[why], offset=offset, limit=limit)
        ),
    )
    questions = Question.objects.in_bulk([pair.question_id for pair in page])
    chunks = Chunk.objects.in_bulk([pair.chunk_id for pair in page])
    context = {
        "evalset": evalset,
        "why": why,
        "tabs": [
            (name, label, counts.contested if name == "contested" else counts.skipped_only)
            for name, label in TABS
        ],
        "page": page,
        "rows": [(pair, questions[pair.question_id], chunks[pair.chunk_id]) for pair in page],
    }
    return render(request, "labels/contested_list.html", context)

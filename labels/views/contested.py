from __future__ import annotations

import uuid

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import page_of
from evalsets.models import Chunk, EvalSet, Question
from judging.models import Judgment
from judging.services.adjudication import adjudicate
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


class SettleForm(forms.Form):
    """A decision on one pair: a grade of the scale, or that it cannot be judged."""

    decision = forms.RegexField(r"^(\d|cannot-judge)$")
    note = forms.CharField(required=False, max_length=10_000)
    key = forms.UUIDField()

    def grade(self) -> int | None:
        decision = self.cleaned_data["decision"]
        return None if decision == "cannot-judge" else int(decision)


@require_GET
@access.lead
def settle_next(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The first contested pair, or the list where there is none."""
    first = settled_pairs(evalset, why=["contested"], limit=1)
    if not first:
        return redirect("labels:contested", evalset.slug)
    return redirect("labels:settle", evalset.slug, first[0].question_id, first[0].chunk_id)


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def settle(request: AuthedRequest, evalset: EvalSet, question_pk: int, chunk_pk: int) -> HttpResponse:
    """One pair with all that was said of it, blind to who said what until it is decided."""
    question = get_object_or_404(evalset.questions, pk=question_pk)
    chunk = get_object_or_404(evalset.chunks, pk=chunk_pk)
    form = SettleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            adjudicate(
                evalset=evalset,
                question=question,
                chunk=chunk,
                grade=form.grade(),
                note=form.cleaned_data["note"],
                key=form.cleaned_data["key"],
                by=request.user,
            )
        except BadInput as error:
            messages.error(request, str(error))
            return redirect("labels:settle", evalset.slug, question_pk, chunk_pk)
        messages.success(request, f"Decided: {question}, {chunk}.")
        return redirect("labels:settle-next", evalset.slug)
    current = Judgment.objects.filter(
        question=question, chunk=chunk, revision=chunk.revision, replaced_by__isnull=True
    ).select_related("assessor")
    decisions = current.filter(source=Judgment.Source.ADJUDICATION).order_by("-judged_at", "-id")
    context = {
        "evalset": evalset,
        "question": question,
        "chunk": chunk,
        "text": chunk.revisions.filter(number=chunk.revision).first(),
        # In an order that tells nothing of who was first: by the grade, then by the note.
        "judgments": current.exclude(source=Judgment.Source.ADJUDICATION).order_by("grade", "note", "id"),
        "decisions": decisions,
        "left": settled_counts(evalset).contested,
        "key": uuid.uuid4(),
        "form": form,
    }
    return render(request, "labels/settle.html", context, status=422 if form.errors else 200)

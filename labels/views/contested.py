"""Adjudication: the pairs that wait for a lead's decision, one by one and blind, and what was decided."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import page_of
from evalsets.models import Chunk, EvalSet, Question
from judging.models import Judgment
from judging.services.adjudication import TAKEN_BACK, adjudicate, take_decision_back
from labels.blind_reading import blind_pair
from labels.paging import PagedRows
from labels.settling import labels_of_question, skipped_only_pairs
from labels.waiting import queue_counts, waiting_pairs, why_it_waits

TABS = {"waiting": "Waiting for a decision", "skipped-only": "Skipped only", "decided": "Decided"}


@require_GET
@access.reader
def contested_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The pairs that wait for a decision, or by `?why=` those that were only skipped, or those that are decided."""
    why = request.GET.get("why", "")
    why = why if why in TABS else "waiting"
    counts = queue_counts(evalset)
    decided = _decided(evalset)
    context: dict[str, Any] = {
        "evalset": evalset,
        "why": why,
        "waiting": counts.waiting,
        "tabs": [
            ("waiting", TABS["waiting"], counts.waiting),
            ("skipped-only", TABS["skipped-only"], counts.skipped_only),
            ("decided", TABS["decided"], decided.count()),
        ],
    }
    if why == "decided":
        context["page"] = page_of(request, decided)
        return render(request, "labels/decided_list.html", context)
    if why == "waiting":
        rows = PagedRows(
            counts.waiting, lambda offset, limit: waiting_pairs(evalset, offset=offset, limit=limit)
        )
    else:
        rows = PagedRows(
            counts.skipped_only,
            lambda offset, limit: skipped_only_pairs(evalset, offset=offset, limit=limit),
        )
    page = page_of(request, rows)
    questions = Question.objects.in_bulk([pair.question_id for pair in page])
    chunks = Chunk.objects.in_bulk([pair.chunk_id for pair in page])
    context["page"] = page
    context["rows"] = [
        # In the order of the grades: the order in which they came in would tell who gave which.
        (
            pair._replace(grades=sorted(pair.grades)),
            questions[pair.question_id],
            chunks[pair.chunk_id],
            why_it_waits(pair, evalset),
        )
        for pair in page
    ]
    return render(request, "labels/contested_list.html", context)


def _decided(evalset: EvalSet) -> QuerySet[Judgment]:
    """The decisions that stand for the text of today, the latest first."""
    decisions = Judgment.objects.filter(
        evalset=evalset,
        source=Judgment.Source.ADJUDICATION,
        replaced_by__isnull=True,
        revision=F("chunk__revision"),
    )
    return (
        decisions.exclude(TAKEN_BACK)
        .select_related("question__evalset", "chunk__evalset", "assessor__user")
        .order_by("-judged_at", "-id")
    )


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
    """The first pair that waits, or with `?after=question-chunk` the next one; the list where there is none."""
    first = waiting_pairs(evalset, after=_after(request, evalset), limit=1) or waiting_pairs(evalset, limit=1)
    if not first:
        return redirect("labels:contested", evalset.slug)
    return redirect("labels:settle", evalset.slug, first[0].question_id, first[0].chunk_id)


def _after(request: AuthedRequest, evalset: EvalSet) -> tuple[str, str] | None:
    question_pk, _, chunk_pk = request.GET.get("after", "").partition("-")
    if not (question_pk.isdecimal() and chunk_pk.isdecimal()):
        return None
    question = evalset.questions.filter(pk=question_pk).first()
    chunk = evalset.chunks.filter(pk=chunk_pk).first()
    return (question.external_id, chunk.external_id) if question and chunk else None


def _next_address(evalset: EvalSet, question_pk: int, chunk_pk: int) -> str:
    return f"{reverse('labels:settle-next', args=[evalset.slug])}?after={question_pk}-{chunk_pk}"


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
        return redirect(_next_address(evalset, question_pk, chunk_pk))
    text = chunk.revisions.filter(number=chunk.revision).first()
    settled = labels_of_question(question).get(chunk.pk)
    mine = _decided(evalset).filter(assessor__user=request.user)
    context = {
        "evalset": evalset,
        "question": question,
        "chunk": chunk,
        "text": text,
        "pair": blind_pair(question, chunk, text),
        "because": why_it_waits(settled, evalset) if settled else "",
        "waiting": queue_counts(evalset).waiting,
        "next_address": _next_address(evalset, question_pk, chunk_pk),
        "last": mine.exclude(question=question, chunk=chunk).first(),
        "key": uuid.uuid4(),
        "form": form,
    }
    return render(request, "labels/settle.html", context, status=422 if form.errors else 200)


class TakeBackForm(forms.Form):
    key = forms.UUIDField()


@require_POST
@access.lead
def settle_take_back(
    request: AuthedRequest, evalset: EvalSet, question_pk: int, chunk_pk: int
) -> HttpResponse:
    """Undo the decision on one pair."""
    question = get_object_or_404(evalset.questions, pk=question_pk)
    chunk = get_object_or_404(evalset.chunks, pk=chunk_pk)
    form = TakeBackForm(request.POST)
    if form.is_valid():
        try:
            take_decision_back(
                evalset=evalset,
                question=question,
                chunk=chunk,
                by=request.user,
                key=form.cleaned_data["key"],
            )
            messages.success(request, "Taken back.")
        except BadInput as error:
            messages.error(request, str(error))
    return redirect("labels:settle", evalset.slug, question_pk, chunk_pk)

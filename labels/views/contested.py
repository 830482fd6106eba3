"""Adjudication: the pairs that wait for a lead's decision, one by one and blind, and what was decided."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import F, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import number_in, page_of, sorted_by, sorted_rows
from evalsets.models import EvalSet
from judging.models import Judgment
from judging.reckoning import as_of
from judging.services.adjudication import TAKEN_BACK, adjudicate, take_decision_back
from labels.blind_reading import blind_pair
from labels.reports import QUEUE
from labels.settling import SettledPair, labels_of_question, settled_pairs
from labels.waiting import QueuedPair, next_waiting, waiting_pairs, why_it_waits

TABS = {"waiting": "Waiting for a decision", "skipped-only": "Skipped only", "decided": "Decided"}
ORDERS: dict[str, Callable[[QueuedPair], tuple[str, str]]] = {
    "question": lambda pair: (pair.question, pair.chunk),
    "chunk": lambda pair: (pair.chunk, pair.question),
}


@require_GET
@access.reader
def contested_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The pairs that wait for a decision, or by `?why=` those that were only skipped, or those that are decided."""
    why = request.GET.get("why", "")
    why = why if why in TABS else "waiting"
    read = QUEUE.read(evalset)
    queue = read.value
    decided = _decided(evalset)
    text = request.GET.get("q", "").strip()
    context: dict[str, Any] = {
        "evalset": evalset,
        "why": why,
        "q": text,
        "as_of": as_of(read),
        "queue": queue,
        "tabs": [
            ("waiting", TABS["waiting"], queue and queue.counts.waiting),
            ("skipped-only", TABS["skipped-only"], queue and queue.counts.skipped_only),
            ("decided", TABS["decided"], decided.count()),
        ],
    }
    if why == "decided":
        context["page"] = page_of(
            request, sorted_by(request, _said_in(decided, text), {"when": "judged_at"}, "-when")
        )
        return render(request, "labels/decided_list.html", context)
    listed: list[QueuedPair] = []
    if queue is not None:
        listed = queue.waiting if why == "waiting" else queue.skipped_only
    page = page_of(request, sorted_rows(request, _named(listed, text), ORDERS, "question"))
    pairs = _still(evalset, list(page), why)
    questions = evalset.questions.in_bulk([pair.question_id for pair in pairs])
    chunks = evalset.chunks.in_bulk([pair.chunk_id for pair in pairs])
    context["page"] = page
    context["listed"] = len(listed)
    context["total"] = next(count for name, _, count in context["tabs"] if name == why) or 0
    context["since"] = len(page) - len(pairs)
    context["rows"] = [
        # In the order of the grades: the order in which they came in would tell who gave which.
        (
            pair._replace(grades=sorted(pair.grades)),
            questions[pair.question_id],
            chunks[pair.chunk_id],
            why_it_waits(pair, evalset),
        )
        for pair in pairs
    ]
    return render(request, "labels/contested_list.html", context)


def _named(listed: Sequence[QueuedPair], text: str) -> Sequence[QueuedPair]:
    """Those whose question's or chunk's ID has the text in it."""
    part = text.lower()
    return [pair for pair in listed if part in pair.question.lower() or part in pair.chunk.lower()]


def _said_in(decided: QuerySet[Judgment], text: str) -> QuerySet[Judgment]:
    """The decisions with the text in their question's or chunk's ID, their note, or the name of who made them."""
    if not text:
        return decided
    return decided.filter(
        Q(question__external_id__icontains=text)
        | Q(chunk__external_id__icontains=text)
        | Q(note__icontains=text)
        | Q(assessor__name__icontains=text)
    )


def _still(evalset: EvalSet, listed: Sequence[QueuedPair], why: str) -> list[SettledPair]:
    """How the listed pairs stand at this moment, those left out that do not belong to the list any more."""
    if not listed:
        return []
    questions = {pair.question_id for pair in listed}
    if why == "waiting":
        now = waiting_pairs(evalset, questions=questions)
    else:
        now = settled_pairs(evalset, questions=questions, why=["skipped-only"])
    by_key = {(pair.question_id, pair.chunk_id): pair for pair in now}
    return [by_key[pair.key] for pair in listed if pair.key in by_key]


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
    queue = QUEUE.read(evalset).value
    first = next_waiting(evalset, queue.waiting, _after(request, evalset)) if queue else None
    if first is None:
        return redirect("labels:contested", evalset.slug)
    return redirect("labels:settle", evalset.slug, *first.key)


def _after(request: AuthedRequest, evalset: EvalSet) -> tuple[str, str] | None:
    question_pk, _, chunk_pk = request.GET.get("after", "").partition("-")
    question = evalset.questions.filter(pk=number_in(question_pk)).first()
    chunk = evalset.chunks.filter(pk=number_in(chunk_pk)).first()
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
        "queue": QUEUE.read(evalset),
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

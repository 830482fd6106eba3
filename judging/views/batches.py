"""Batches: the list, a new one, and the lead's view of one at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput, Refused
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet, Member
from judging import batch_reads, batch_room
from judging.batch_cost import Plan, batch_cost
from judging.batch_forms import BatchForm, ExtendForm, ReassignForm
from judging.desk import my_open_batches
from judging.models import Batch
from judging.pool_report import POOL
from judging.reading import markdown
from judging.reckoning import as_of
from judging.room_report import ROOM
from judging.services import batches as services

# So many of the latest skips, and of the other lists of judgments, are shown.
LATEST = 50
# The batch page asks anew after so many seconds.
LOOK_EVERY = 10
# The numbers of a new batch that its cost follows from.
COST_NUMBERS = ("overlap", "overlap_percent", "gold_percent")


@require_GET
@access.member
def batch_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """All batches for leads and viewers; an assessor sees their own work and no pools."""
    if request.role == Member.Role.ASSESSOR:
        mine = my_open_batches(request.user, evalset=evalset)
        return render(request, "judging/batch_mine.html", {"evalset": evalset, "work": mine})
    batches = evalset.batches.with_progress()
    query, state = request.GET.get("q", "").strip(), request.GET.get("state", "")
    if query:
        batches = batches.filter(name__icontains=query)
    if state in Batch.STATES:
        batches = batches.in_state(state)
    columns = {"name": "name", "pool": "pool__name", "due": "due_on", "made": "created_at"}
    context = {
        "evalset": evalset,
        "page": page_of(request, sorted_by(request, batches.select_related("pool"), columns, "-made")),
        "q": query,
        "state": state,
        "states": Batch.STATES,
        "has_pools": evalset.pools.exists(),
        "summary": batch_room.room_summary(evalset),
    }
    return render(request, "judging/batch_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def batch_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Describe a batch; what it costs stands beside it and follows each change."""
    if request.method != "POST":
        form = _form_from_address(request.GET, evalset)
        context = {"evalset": evalset, "form": form, **_cost(form, request.GET, evalset)}
        template = "judging/batch_new.html#cost" if request.htmx else "judging/batch_new.html"
        return render(request, template, context)
    form = BatchForm(request.POST, request.FILES, evalset=evalset)
    if form.is_valid():
        try:
            with form.settings() as settings:
                batch = services.make_batch(by=request.user, **settings)
        except BadInput as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{batch} is with its assessors: {batch.pairs.count()} pairs.")
            return redirect(batch)
    context = {"evalset": evalset, "form": form, **_cost(form, request.POST, evalset)}
    return render(request, "judging/batch_new.html", context, status=422)


def _form_from_address(address: QueryDict, evalset: EvalSet) -> BatchForm:
    """A fresh form, filled with what the address says: `?pool=`, or all fields when the numbers are asked for anew."""
    initial: dict[str, Any] = {"instructions": services.latest_instructions(evalset)}
    initial["pool"] = evalset.pools.values_list("pk", flat=True).first()
    many = {"assessors"}
    for name in BatchForm.base_fields:
        if name in address:
            initial[name] = address.getlist(name) if name in many else address[name]
    return BatchForm(initial=initial, evalset=evalset)


def _cost(form: BatchForm, said: QueryDict, evalset: EvalSet) -> dict[str, Any]:
    """The `cost` of what the fields say so far and what it is `as_of`, or what is `wrong` with its numbers."""
    filled = said.copy()
    for name in ("pool", *COST_NUMBERS):
        filled.setdefault(name, form.get_initial_for_field(form.fields[name], name))
    asked = BatchForm(filled, evalset=evalset)
    wrong = [f"{asked[name].label}: {error}" for name in COST_NUMBERS for error in asked[name].errors]
    data = asked.cleaned_data
    if "pool" not in data or wrong:
        return {"wrong": wrong}
    pool = data["pool"]
    read = POOL.read(evalset, pool.pk)
    if read.value is None:
        return {"as_of": as_of(read)}
    people = data.get("assessors", [])
    plan = Plan(
        pool=pool,
        people=len(people),
        assessors=list(evalset.assessors.filter(user__in=people).values_list("pk", flat=True)),
        overlap=data["overlap"],
        overlap_share=data["overlap_percent"] / 100,
        without_copies=data["without_copies"],
        again=data["again"],
        gold=data.get("gold", ""),
        gold_share=(data["gold_percent"] or 0) / 100,
    )
    return {"cost": batch_cost(plan, read.value), "as_of": as_of(read)}


@require_GET
@access.reader
def batch_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    batch = get_object_or_404(
        Batch.objects.select_related("pool", "rubric", "evalset"), evalset=evalset, pk=pk
    )
    figures, report = batch_reads.batch_figures(batch), ROOM.read(evalset, batch.pk)
    room = report.value
    live = {
        "evalset": evalset,
        "batch": batch,
        "figures": figures,
        "is_at_work": figures.left > 0 and batch.cancelled_at is None,
        "look_every": LOOK_EVERY,
        "room": room,
        "as_of": as_of(report),
        "assessors": batch_reads.assessor_rows(batch, figures.lately, room.assessors if room else None),
        "hints": batch_room.fast_hints(room.speeds) if room else [],
        "waiting": batch_room.waiting(batch),
        "misses": batch_reads.gold_misses(batch)[:LATEST] if figures.gold_pairs else [],
        "skips": batch_reads.open_skips(batch)[:LATEST],
        "cannot": batch_reads.cannot_judge_rows(batch)[:LATEST],
        "latest": LATEST,
    }
    if request.htmx:
        return render(request, "judging/batch_detail.html#live", live)
    questions = batch.batch_questions.all()
    query = request.GET.get("q", "").strip()
    if query:
        questions = questions.filter(
            Q(question__text__icontains=query)
            | Q(question__external_id__icontains=query)
            | Q(assigned_to__name__icontains=query)
        )
    which = filter_by(request, "which", "Which", [("left", "with pairs left"), ("done", "done")])
    if which.chosen:
        left = Exists(batch_reads.pairs_left(batch).filter(batch_question=OuterRef("pk")))
        questions = questions.filter(left if which.chosen == "left" else ~left)
    columns = {"order": "position", "question": "question__external_id"}
    page = page_of(request, sorted_by(request, questions, columns, "order"))
    rows = batch_reads.question_rows(batch).in_bulk([row.pk for row in page])
    page.object_list = [rows[row.pk] for row in page]
    context = {
        **live,
        "instructions": markdown(batch.rubric.instructions),
        "page": page,
        "q": query,
        "filter": which,
        "extend_form": ExtendForm(batch=batch),
        "i_judge_here": batch.assessors.filter(user=request.user).exists(),
    }
    return render(request, "judging/batch_detail.html", context)


def _act(request: AuthedRequest, evalset: EvalSet, pk: int, act: Callable[[Batch], str]) -> HttpResponse:
    """Do something with a batch, say what became of it, and go back to its page."""
    batch = get_object_or_404(Batch.objects.select_related("evalset"), evalset=evalset, pk=pk)
    try:
        messages.success(request, act(batch))
    except (BadInput, Refused) as error:
        messages.error(request, str(error))
    return redirect(batch)


@require_POST
@access.lead
def batch_pause(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    def act(batch: Batch) -> str:
        services.pause_batch(batch=batch, by=request.user)
        return f"{batch} is paused: nothing more is handed out. What is on screens now can still be sent."

    return _act(request, evalset, pk, act)


@require_POST
@access.lead
def batch_resume(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    def act(batch: Batch) -> str:
        services.resume_batch(batch=batch, by=request.user)
        return f"{batch} goes on."

    return _act(request, evalset, pk, act)


@require_POST
@access.lead
def batch_cancel(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    def act(batch: Batch) -> str:
        services.cancel_batch(batch=batch, by=request.user)
        return f"{batch} is cancelled. Its judgments stay; its open pairs are in the remainder again."

    return _act(request, evalset, pk, act)


@require_POST
@access.lead
def batch_extend(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    def act(batch: Batch) -> str:
        form = ExtendForm(request.POST, batch=batch)
        if not form.is_valid():
            raise BadInput(" ".join(str(error) for errors in form.errors.values() for error in errors))
        more = services.extend_batch(
            batch=batch,
            by=request.user,
            assessors=list(form.cleaned_data["assessors"]),
            due_on=form.cleaned_data["due_on"],
            more_pairs=form.cleaned_data["more_pairs"],
        )
        return f"{batch} is extended." + (f" {more:,} pairs came in." if more else "")

    return _act(request, evalset, pk, act)


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def batch_reassign(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """GET says what giving the chosen questions to somebody would move; POST does it."""
    batch = get_object_or_404(Batch.objects.select_related("evalset"), evalset=evalset, pk=pk)
    form = ReassignForm(request.POST if request.method == "POST" else request.GET, batch=batch)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect(batch)
    questions, to = list(form.cleaned_data["questions"]), form.cleaned_data["to"]
    if request.method != "POST":
        numbers = batch_room.handover_of_questions(batch, questions, to)
        context = {"evalset": evalset, "batch": batch, "numbers": numbers, "questions": questions, "to": to}
        return render(request, "judging/batch_reassign.html", context)

    def act(batch: Batch) -> str:
        back = services.reassign_questions(batch=batch, by=request.user, to=to, questions=questions)
        whom = str(to.user) if to else "whoever comes"
        return f"{len(questions)} questions went to {whom}; {back} pairs that others held went back."

    return _act(request, evalset, pk, act)


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def batch_remove(request: AuthedRequest, evalset: EvalSet, pk: int, assessor_pk: int) -> HttpResponse:
    """GET says what taking an assessor out of the batch would move; POST does it."""
    batch = get_object_or_404(Batch.objects.select_related("evalset"), evalset=evalset, pk=pk)
    assessor = get_object_or_404(batch.assessors.select_related("user"), pk=assessor_pk)
    if request.method != "POST":
        numbers = batch_room.handover_of_assessor(batch, assessor)
        others = batch.assessors.exclude(pk=assessor.pk).select_related("user").order_by("name")
        context = {
            "evalset": evalset,
            "batch": batch,
            "assessor": assessor,
            "numbers": numbers,
            "others": others,
        }
        return render(request, "judging/batch_remove.html", context)

    def act(batch: Batch) -> str:
        back = services.remove_assessor(batch=batch, by=request.user, assessor=assessor)
        return f"{assessor.user} is out of {batch}; {back} pairs went back. Their judgments stay."

    return _act(request, evalset, pk, act)

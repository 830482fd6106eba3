"""The desk, where an assessor judges. Each act is a form that works without JavaScript; with it, the same address
answers in JSON with the next pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput, Refused
from evalsets.listing import number_in
from evalsets.models import EvalSet
from judging import desk as desk_reads
from judging.desk import DeskPair, seated_batch
from judging.desk_forms import DeskForm
from judging.models import Assessor, Batch, BatchPair, Judgment, Task
from judging.reading import markdown
from judging.services.claims import anything_open, claim_next, give_back, next_tasks, put_off, queue
from judging.services.judgments import Saved, save_judgment
from judging.tasks import reorder_soon

# So many pairs lie ready in the browser, the one on the desk among them.
AHEAD = 4
HIGHLIGHT_COOKIE = "fairpool_highlight"


@require_GET
@access.assessor
def desk(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """The pair on the desk: the next one that I hold, or with `?pair=` one that I have judged or hold."""
    batch, assessor = _batch_for(request, evalset, pk)
    asked = request.GET.get("pair")
    if asked is not None:
        pair = get_object_or_404(_my_pairs(batch, assessor), pk=number_in(asked))
    else:
        tasks = next_tasks(batch=batch, assessor=assessor, count=1)
        pair = tasks[0].pair if tasks else None
    context = _page(request, batch, assessor, pair)
    response = render(request, "judging/desk.html", context)
    # Back then asks anew, and shows the grade that was saved.
    add_never_cache_headers(response)
    return response


@require_POST
@access.assessor
def desk_next(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Take what comes next: start judging, or fetch pairs ahead. Instructions that are new come before the first pair,
    with a button that says `begin`."""
    batch, assessor = _batch_for(request, evalset, pk)
    if not _wants_json(request):
        if "begin" in request.POST or not desk_reads.instructions_are_new(batch=batch, assessor=assessor):
            claim_next(batch=batch, by=request.user)
        return redirect("judging:desk", evalset.slug, batch.pk)
    return JsonResponse(_next(request, batch, assessor))


@require_POST
@access.assessor
def desk_save(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """One act on one pair: a grade, a skip, cannot-judge, or later."""
    batch, assessor = _batch_for(request, evalset, pk)
    form = DeskForm(request.POST)
    if not form.is_valid():
        faults = " ".join(f"{name}: {error}" for name, errors in form.errors.items() for error in errors)
        return _refuse(request, batch, f"This could not be read. {faults}", status=400)
    if form.cleaned_data["as_user"] != request.user.pk:
        message = (
            f"You are signed in as {request.user} now; this page belongs to somebody else. Nothing was saved."
        )
        return _refuse(request, batch, message, status=409)
    pair_id = form.cleaned_data["pair"]
    try:
        if form.is_later:
            question_id = put_off(batch=batch, pair_id=pair_id, by=request.user).question_id
            saved = None
        else:
            saved = save_judgment(
                batch=batch,
                pair_id=pair_id,
                by=request.user,
                verdict=form.verdict(),
                key=form.cleaned_data["key"],
                seconds=form.cleaned_data["seconds"],
                chosen_ago=form.cleaned_data["chosen_ago"],
                revision=form.cleaned_data["revision"],
            )
            question_id = saved.judgment.question_id
    except BatchPair.DoesNotExist:
        raise Http404(f"Batch {batch} has no pair {pair_id}.") from None
    except BadInput as error:
        return _refuse(request, batch, str(error), status=400)
    except Refused as refusal:
        return _refuse(request, batch, str(refusal), status=409)
    if saved and saved.created and batch.pool.is_adaptive:
        reorder_soon(pool_id=batch.pool_id, question_id=question_id)
    said = _said(saved, batch)
    if not _wants_json(request):
        claim_next(batch=batch, by=request.user)
        messages.success(request, said)
        return redirect("judging:desk", evalset.slug, batch.pk)
    result = {"pair": pair_id, "question": question_id, "said": said}
    result["notice"] = bool(saved and (saved.extra or saved.overtaken))
    # An act renews the leases, so that what is held needs no claim.
    renewed = saved is None or saved.created
    answer = _next(request, batch, assessor, renewed=renewed, saved=saved.judgment if saved else None)
    if saved:
        result["line"] = answer.pop("line")
    return JsonResponse({"saved": result, **answer})


@require_POST
@access.assessor
def desk_stop(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Stop for now: what I hold goes to the others at once."""
    batch, _ = _batch_for(request, evalset, pk)
    count = give_back(batch=batch, by=request.user)
    messages.success(request, f"{count} pairs of {batch} went back. Your judgments are saved.")
    return redirect("my-work")


@require_POST
@access.assessor
def desk_highlight(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Show the question's words in the text, or stop showing them; remembered in this browser."""
    batch, _ = _batch_for(request, evalset, pk)
    pair = number_in(request.POST.get("pair"))
    address = batch.desk_url + (f"?pair={pair}" if pair else "")
    response = redirect(address)
    on = request.COOKIES.get(HIGHLIGHT_COOKIE) != "1"
    response.set_cookie(HIGHLIGHT_COOKIE, "1" if on else "0", max_age=365 * 24 * 3600, samesite="Lax")
    return response


def _batch_for(request: AuthedRequest, evalset: EvalSet, pk: int) -> tuple[Batch, Assessor]:
    """The batch and who the user is in it, by their seat."""
    seated = seated_batch(evalset=evalset, batch_id=pk, user=request.user)
    if seated is None:
        batch = get_object_or_404(Batch, evalset=evalset, pk=pk)
        raise PermissionDenied(f"You are not an assessor of batch {batch}. A lead can add you.")
    return seated


def _my_pairs(batch: Batch, assessor: Assessor) -> Any:
    """Pairs of the batch that were given to me: judged by me, or claimed."""
    judged = Judgment.objects.filter(assessor=assessor, pair__batch=batch).values("pair")
    held = Task.objects.filter(assessor=assessor, pair__batch=batch).values("pair")
    return batch.pairs.filter(pk__in=judged.union(held))


def _wants_json(request: AuthedRequest) -> bool:
    return request.headers.get("Accept") == "application/json"


def _refuse(request: AuthedRequest, batch: Batch, message: str, *, status: int) -> HttpResponse:
    """Nothing was saved, and why. A page without JavaScript goes to the desk, where the message stands."""
    if _wants_json(request):
        return JsonResponse({"error": message}, status=status)
    messages.error(request, message)
    return redirect(batch.desk_url)


def _said(saved: Saved | None, batch: Batch) -> str:
    """What became of an act, in words for the assessor."""
    if saved is None:
        return "Put off: it comes again later."
    judgment = saved.judgment
    if judgment.kind == Judgment.Kind.GRADE:
        what = f"{judgment.grade} {batch.rubric.scale[judgment.grade]['name']}"
    else:
        what = f"{judgment.get_kind_display()} ({judgment.get_reason_display()})".capitalize()
    if saved.overtaken:
        return f"Your newer word on this pair stands: {what}."
    if saved.extra:
        return f"Saved: {what}. The pair had gone to others meanwhile, so yours is kept as an extra judgment."
    return f"Saved: {what}."


def _page(request: AuthedRequest, batch: Batch, assessor: Assessor, pair: BatchPair | None) -> dict[str, Any]:
    context: dict[str, Any] = {
        "evalset": batch.evalset,
        "batch": batch,
        "instructions": markdown(batch.rubric.instructions),
        "progress": desk_reads.batch_progress(batch=batch, assessor=assessor),
        "highlight": request.COOKIES.get(HIGHLIGHT_COOKIE) == "1",
        "reasons": Judgment.Reason.choices,
        "csrf_cookie_name": settings.CSRF_COOKIE_NAME,
    }
    latest = desk_reads.my_current(assessor).filter(pair__batch=batch)
    if pair is None:
        can_start = batch.hands_out_pairs and anything_open(batch=batch, assessor=assessor)
        context["can_start"] = can_start
        if not can_start:
            context["nothing_left"] = desk_reads.nothing_left(batch=batch, assessor=assessor)
    else:
        questions = [pair.question_id]
        context["item"] = desk_reads.desk_pairs([pair], assessor)[0]
        context["given"] = desk_reads.given_for(questions, batch=batch, assessor=assessor)[pair.question_id]
        context["place"] = desk_reads.question_progress(questions, batch=batch, assessor=assessor)[
            pair.question_id
        ]
        latest = latest.exclude(pair=pair)
    context["last_pair"] = latest.values_list("pair", flat=True).first()
    return context


def _next(
    request: AuthedRequest,
    batch: Batch,
    assessor: Assessor,
    *,
    renewed: bool = False,
    saved: Judgment | None = None,
) -> dict[str, Any]:
    """The pairs that come next, less those the browser has, and the order of all; or why nothing comes. With the line
    of what was saved.

    The counts come with them where the browser does not know them or asks for them anew (`counts`): between two
    looks it counts its own acts by itself, so that a save does not have to count the batch.
    """
    has, known = _numbers(request, "have"), _numbers(request, "known")
    tasks = next_tasks(batch=batch, assessor=assessor, count=AHEAD) if renewed else []
    # A claim costs as much as all the rest. Where the first finds nothing, the next is made when nothing is left.
    if len(tasks) in (0, AHEAD - 1):
        tasks = claim_next(batch=batch, by=request.user, count=AHEAD)
    pairs = [task.pair for task in tasks]
    fresh = {pair.pk for pair in pairs} - has
    # One look for all texts: of the pairs, since the new ones are compared with them, and of the judged one's line.
    places = {(pair.chunk_id, pair.revision) for pair in pairs} if fresh else set()
    texts = desk_reads.texts_of(places | ({(saved.chunk_id, saved.revision)} if saved else set()))
    items = desk_reads.desk_pairs(pairs, assessor, wanted=fresh, texts=texts, fresh=True)
    answer: dict[str, Any] = {
        "next": _rendered(request, batch, assessor, items, known),
        "order": [pair.pk for pair in pairs],
    }
    if saved:
        saved.opening = desk_reads.opening_of(texts[saved.chunk_id, saved.revision])  # type: ignore[attr-defined]
        answer["line"] = _lines(request, batch, [saved])
    wants_counts = "counts" in request.POST
    questions = {item.question.pk for item in items} - known
    if wants_counts and saved:
        questions.add(saved.question_id)
    counts = desk_reads.question_progress(
        questions, pairs=has if wants_counts else (), batch=batch, assessor=assessor
    )
    answer["questions"] = {pk: {"done": place.done, "total": place.total} for pk, place in counts.items()}
    if wants_counts:
        progress = desk_reads.batch_progress(batch=batch, assessor=assessor)
        answer["batch"] = {
            "done": progress.done,
            "wanted": progress.wanted,
            "seconds_left": progress.seconds_left,
        }
        answer["held"] = list(queue(batch=batch, assessor=assessor).values_list("pair", flat=True))
    if not tasks:
        page = _page(request, batch, assessor, None)
        answer["end"] = render_to_string("judging/desk.html#end", page, request)
    return answer


def _rendered(
    request: AuthedRequest, batch: Batch, assessor: Assessor, items: Sequence[DeskPair], known: set[int]
) -> list[dict[str, Any]]:
    """Each pair as the desk shows it; what was given for a question comes with its first pair."""
    new = {item.question.pk for item in items} - known
    given = desk_reads.given_for(new, batch=batch, assessor=assessor)
    base = {"evalset": batch.evalset, "batch": batch, "reasons": Judgment.Reason.choices}
    answer = []
    for item in items:
        entry: dict[str, Any] = {"pair": item.pair.pk, "question": item.question.pk}
        entry["html"] = render_to_string("judging/desk.html#pair", {**base, "item": item}, request)
        if item.question.pk in given:
            entry["given"] = _lines(request, batch, given.pop(item.question.pk))
        answer.append(entry)
    return answer


def _lines(request: AuthedRequest, batch: Batch, given: Sequence[Judgment]) -> str:
    context = {"evalset": batch.evalset, "batch": batch, "given": given}
    return render_to_string("judging/desk.html#given_lines", context, request)


def _numbers(request: AuthedRequest, name: str) -> set[int]:
    """A field of numbers with commas between them."""
    return {number for said in request.POST.get(name, "").split(",") if (number := number_in(said))}

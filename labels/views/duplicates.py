"""Copies: candidates that people decide pair by pair, and the classes that their verdicts made."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.differences import Piece, difference
from evalsets.errors import BadInput, Refused
from evalsets.listing import number_in, page_of, sorted_by
from evalsets.models import Chunk, ChunkRevision, EvalSet
from evalsets.services.jobs import start_job
from judging.class_graph import Link, classes
from judging.models import ChunkClass, ClassMember, PairVerdict
from judging.reckoning import as_of
from judging.services.verdicts import VerdictGiven, give_verdict, standing_verdict
from labels.conflicts import label_conflicts
from labels.models import DuplicateCandidate
from labels.reports import COPIES
from labels.services.duplicates import find_equal
from labels.views.questions import current_revisions

Verdict = PairVerdict.Verdict
# So many candidates that are left to decide are counted one by one; then there are "more than" that.
COUNTED_LEFT = 1000


@require_GET
@access.lead
def duplicate_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What is left to decide, and what verdicts made so far: classes, and labels that disagree within one."""
    undecided = DuplicateCandidate.objects.filter(evalset=evalset).open()
    found = evalset.chunk_classes.annotate(size=Count("members"))
    if text := request.GET.get("q", "").strip():
        named = ClassMember.objects.filter(chunk__evalset=evalset, chunk__external_id__icontains=text)
        found = found.filter(pk__in=named.values("chunk_class"))
    found = sorted_by(
        request, found.prefetch_related("members__chunk__evalset"), {"members": "size"}, "-members"
    )
    page = page_of(request, found, per_page=20)
    copies = COPIES.read(evalset)
    context = {
        "evalset": evalset,
        "as_of": as_of(copies),
        "copies": copies.value,
        "looked": evalset.events.filter(verb="duplicates-found").first(),
        "first": undecided.first(),
        "page": page,
        "rows": [(item, [member.chunk for member in item.members.all()]) for item in page],
        "q": text,
    }
    return render(request, "labels/duplicate_list.html", context)


@require_POST
@access.lead
def duplicate_find(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Equal texts are noted at once; near ones by a job."""
    equal = find_equal(evalset=evalset)
    messages.success(request, f"{equal} pairs of equal texts. Near copies are being looked for now.")
    return redirect(
        start_job(
            evalset=evalset, task="labels.find_duplicates", title="Look for copies of chunks", by=request.user
        )
    )


@require_POST
@access.lead
def duplicate_join_equal(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    return redirect(
        start_job(
            evalset=evalset, task="labels.join_equal", title="Join chunks of equal text", by=request.user
        )
    )


class Side(NamedTuple):
    """One of the two chunks, with its text in pieces: the words that the other one lacks are marked."""

    chunk: Chunk
    revision: ChunkRevision | None
    pieces: list[Piece]


@require_GET
@access.lead
def duplicate_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """One candidate, two texts side by side, and what a person can say of them."""
    candidate = get_object_or_404(
        DuplicateCandidate.objects.filter(evalset=evalset).select_related("evalset", "first", "second"), pk=pk
    )
    previous = evalset.duplicate_candidates.filter(pk=number_in(request.GET.get("after"))).first()
    return render(
        request, "labels/duplicate_detail.html", {**_shown(evalset, candidate), "previous": previous}
    )


def _shown(evalset: EvalSet, candidate: DuplicateCandidate) -> dict[str, Any]:
    first, second = candidate.first, candidate.second
    texts = {
        text.chunk_id: text for text in ChunkRevision.objects.current().filter(chunk__in=[first, second])
    }
    pieces = difference(*(texts[chunk.pk].text if chunk.pk in texts else "" for chunk in (first, second)))
    following = candidate.next_open()
    return {
        "evalset": evalset,
        "candidate": candidate,
        "sides": [
            Side(first, texts.get(first.pk), [piece for piece in pieces if piece.kind != "new"]),
            Side(second, texts.get(second.pk), [piece for piece in pieces if piece.kind != "old"]),
        ],
        "standing": standing_verdict(first, second),
        "following": following,
        "left": DuplicateCandidate.objects.filter(evalset=evalset).open()[: COUNTED_LEFT + 1].count(),
        "counted_left": COUNTED_LEFT,
        "key": uuid.uuid4(),
    }


@require_POST
@access.lead
def duplicate_verdict(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Say what the two chunks are to each other, then go on with the next candidate."""
    candidate = get_object_or_404(
        DuplicateCandidate.objects.filter(evalset=evalset).select_related(
            "evalset", "first__evalset", "second"
        ),
        pk=pk,
    )
    following = candidate.next_open()
    if not _give(request, candidate.first, candidate.second):
        return redirect(candidate)
    following = following or DuplicateCandidate.objects.filter(evalset=evalset).open().first()
    address = (
        following.get_absolute_url() if following else reverse("labels:duplicate-list", args=[evalset.slug])
    )
    return redirect(f"{address}?after={candidate.pk}" if following else address)


@require_POST
@access.lead
def chunk_verdict(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Say what a chunk is to another one that is named by its ID."""
    chunk = get_object_or_404(evalset.chunks.select_related("evalset"), pk=pk)
    name = request.POST.get("other", "").strip()
    other = evalset.chunks.filter(external_id=name).first()
    if other is None:
        messages.error(
            request, f"There is no chunk with the ID {name!r}. IDs are exact, upper and lower case too."
        )
    else:
        _give(request, chunk, other)
    return redirect(chunk)


@require_POST
@access.lead
def verdict_take_back(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Take a standing verdict back: the class it held together comes apart, unless other verdicts hold it."""
    verdict = get_object_or_404(
        PairVerdict.objects.filter(evalset=evalset).select_related("first__evalset", "second"), pk=pk
    )
    given = give_verdict(first=verdict.first, second=verdict.second, verdict=Verdict.NONE, by=request.user)
    messages.success(request, f"Taken back. {given.sentence}")
    if request.POST.get("back") in (str(verdict.first_id), str(verdict.second_id)):
        return redirect("labels:chunk", evalset.slug, int(request.POST["back"]))
    candidate = DuplicateCandidate.objects.filter(first=verdict.first, second=verdict.second).first()
    return redirect(candidate or reverse("labels:duplicate-list", args=[evalset.slug]))


def _give(request: AuthedRequest, first: Chunk, second: Chunk) -> VerdictGiven | None:
    """Give the verdict that was posted; where it is refused, say why and return None."""
    try:
        verdict = Verdict(request.POST.get("verdict", ""))
        key = uuid.UUID(request.POST.get("key", ""))
    except ValueError:
        messages.error(request, "That is no verdict. Choose one of the buttons.")
        return None
    try:
        given = give_verdict(first=first, second=second, verdict=verdict, by=request.user, key=key)
    except (BadInput, Refused) as refusal:
        messages.error(request, str(refusal))
        return None
    messages.success(request, f"{first} and {second}: {verdict.label}. {given.sentence}")
    return given


class VerdictShown(NamedTuple):
    """A verdict that holds a class together, and what the class would be without it."""

    verdict: PairVerdict
    parts: list[list[str]]


@require_GET
@access.reader
def class_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """The members of a class with their texts, and the verdicts that made it."""
    found: ChunkClass = get_object_or_404(evalset.chunk_classes, pk=pk)
    chunks = {
        member.chunk_id: member.chunk
        for member in found.members.select_related("chunk__evalset").order_by("chunk__external_id")
    }
    text = request.GET.get("q", "").strip()
    page = page_of(
        request,
        [chunk for chunk in chunks.values() if text.lower() in chunk.external_id.lower()],
        per_page=20,
    )
    texts = current_revisions(page)
    holding = _verdicts_within(chunks)
    context = {
        "evalset": evalset,
        "found": found,
        "size": len(chunks),
        "page": page,
        "members": [(chunk, texts.get(chunk.pk)) for chunk in page],
        "q": text,
        "verdicts": [_without(verdict, holding, chunks) for verdict in holding],
        "conflicts": label_conflicts(evalset, within=found),
    }
    return render(request, "labels/class_detail.html", context)


def _verdicts_within(chunks: dict[int, Chunk]) -> list[PairVerdict]:
    """The `same` verdicts that hold among these chunks."""
    said = PairVerdict.objects.filter(first__in=chunks, second__in=chunks).order_by("id")
    latest = {(verdict.first_id, verdict.second_id): verdict for verdict in said.select_related("assessor")}
    return [
        verdict
        for (first, second), verdict in latest.items()
        if verdict.verdict == Verdict.SAME
        and (verdict.first_revision, verdict.second_revision)
        == (chunks[first].revision, chunks[second].revision)
    ]


def _without(verdict: PairVerdict, holding: list[PairVerdict], chunks: dict[int, Chunk]) -> VerdictShown:
    links = [Link(other.first_id, other.second_id, "same") for other in holding if other is not verdict]
    parts = [sorted(chunks[key].external_id for key in part) for part in classes(links, chunks)]
    return VerdictShown(verdict, parts)

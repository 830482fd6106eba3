"""Verdicts from the desk: what the chunk on it is to those that the same assessor read for the same question."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.differences import Piece, difference
from evalsets.errors import BadInput, Refused
from evalsets.models import Chunk, ChunkRevision, EvalSet
from judging.models import Assessor, Batch, BatchPair, Judgment, PairVerdict
from judging.services.verdicts import give_verdict, standing_verdict
from judging.views.desk import _batch_for, _my_pairs

Verdict = PairVerdict.Verdict
SHOWN = 10


class Likeness(NamedTuple):
    """A chunk that was read before, with how it differs from the one on the desk: what it lacks is new."""

    chunk: Chunk
    share: float
    pieces: list[Piece]
    said: str
    grade: int | None
    key: uuid.UUID


@require_http_methods(["GET", "POST"])
@access.assessor
def desk_same(request: AuthedRequest, evalset: EvalSet, pk: int, pair_pk: int) -> HttpResponse:
    """The chunk on the desk beside those read before for its question, the likest first; a POST says what two are."""
    batch, assessor = _batch_for(request, evalset, pk)
    mine = _my_pairs(batch, assessor)
    pair = get_object_or_404(mine.select_related("question", "chunk__evalset"), pk=pair_pk)
    if request.method == "POST":
        return _say(request, batch, assessor, pair)
    context = {
        "evalset": evalset,
        "batch": batch,
        "pair": pair,
        "text": ChunkRevision.objects.filter(chunk=pair.chunk, number=pair.revision).first(),
        "read_before": read_before(assessor, pair),
    }
    response = render(request, "judging/desk_same.html", context)
    add_never_cache_headers(response)
    return response


def _say(request: AuthedRequest, batch: Batch, assessor: Assessor, pair: BatchPair) -> HttpResponse:
    other = get_object_or_404(_graded(assessor, pair), chunk=request.POST.get("other") or 0).chunk
    try:
        verdict, key = Verdict(request.POST.get("verdict", "")), uuid.UUID(request.POST.get("key", ""))
        give_verdict(
            first=pair.chunk, second=other, verdict=verdict, by=request.user, question=pair.question, key=key
        )
    except ValueError:
        messages.error(request, "That is no verdict. Choose one of the buttons.")
    except (BadInput, Refused) as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, f"Saved: {verdict.label}.")
        return redirect(f"{batch.desk_url}?pair={pair.pk}")
    return redirect("judging:desk-same", batch.evalset.slug, batch.pk, pair.pk)


def _graded(assessor: Assessor, pair: BatchPair) -> QuerySet[Judgment]:
    """The assessor's own current judgments of other chunks for the pair's question, in whichever batch."""
    return (
        Judgment.objects.filter(
            assessor=assessor, question=pair.question, kind=Judgment.Kind.GRADE, replaced_by__isnull=True
        )
        .exclude(chunk=pair.chunk)
        .select_related("chunk__evalset")
    )


def read_before(assessor: Assessor, pair: BatchPair) -> list[Likeness]:
    """The chunks that the assessor graded for the question, the ones that share most words with this one first."""
    here = _text(pair.chunk_id, pair.revision)
    words = set(here.casefold().split())
    found: dict[int, Likeness] = {}
    for judgment in _graded(assessor, pair).order_by("-judged_at"):
        there = _text(judgment.chunk_id, judgment.revision)
        shared, all_words = words & set(there.casefold().split()), words | set(there.casefold().split())
        share = len(shared) / len(all_words) if all_words else 0.0
        found.setdefault(
            judgment.chunk_id, Likeness(judgment.chunk, share, [], "", judgment.grade, uuid.uuid4())
        )
    likest = sorted(found.values(), key=lambda item: -item.share)[:SHOWN]
    return [
        item._replace(
            pieces=difference(here, _text(item.chunk.pk, item.chunk.revision)),
            said=_said(pair.chunk, item.chunk),
        )
        for item in likest
    ]


def _said(here: Chunk, there: Chunk) -> str:
    """What a verdict says of the two already, as the page puts it."""
    standing = standing_verdict(here, there)
    if standing is None:
        return ""
    if standing.verdict in (Verdict.SAME, Verdict.DIFFERENT):
        return standing.get_verdict_display()
    newer = standing.first_id if standing.verdict == Verdict.FIRST_NEWER else standing.second_id
    return "the one on the desk replaces it" if newer == here.pk else "it replaces the one on the desk"


def _text(chunk: int, revision: int) -> str:
    return (
        ChunkRevision.objects.filter(chunk=chunk, number=revision).values_list("text", flat=True).first()
        or ""
    )

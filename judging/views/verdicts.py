"""Verdicts from the desk: what the chunk on it is to those that the same assessor read for the same question."""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.differences import Piece, difference
from evalsets.errors import BadInput, Refused
from evalsets.models import Chunk, EvalSet
from judging.desk import texts_of
from judging.models import Assessor, Batch, BatchPair, Judgment, PairVerdict
from judging.near_copies import MOST_COMPARED, said_of
from judging.services.verdicts import give_verdict
from judging.views.desk import _batch_for, _my_pairs, _wants_json

Verdict = PairVerdict.Verdict
SHOWN = 10
VERDICT = re.compile(r"(?P<said>same|first-newer|second-newer|different):(?P<other>\d{1,9})", re.ASCII)
SAID = {
    Verdict.SAME: "the same content",
    Verdict.FIRST_NEWER: "the one on the desk is the newer version",
    Verdict.SECOND_NEWER: "the one on the desk came before",
    Verdict.DIFFERENT: "different content",
}


class Likeness(NamedTuple):
    """A chunk that was read before, with how the one on the desk differs from it.

    `said` is the verdict on the two that holds, with the one on the desk as the first; or nothing.
    """

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
        "text": texts_of({(pair.chunk_id, pair.revision)}).get((pair.chunk_id, pair.revision)),
        "read_before": read_before(assessor, pair),
    }
    response = render(request, "judging/desk_same.html", context)
    add_never_cache_headers(response)
    return response


def _say(request: AuthedRequest, batch: Batch, assessor: Assessor, pair: BatchPair) -> HttpResponse:
    """Each button says "verdict:chunk"; the chunk on the desk is the first of the two."""
    button, key = VERDICT.fullmatch(request.POST.get("verdict", "")), _key(request)
    if button is None or key is None:
        return _refuse(request, batch, pair, "That is no verdict. Choose one of the buttons.", status=400)
    if request.POST.get("as_user", str(request.user.pk)) != str(request.user.pk):
        message = f"You are signed in as {request.user} now; this page belongs to somebody else."
        return _refuse(request, batch, pair, message, status=409)
    chunk = get_object_or_404(_graded(assessor, pair).filter(chunk=int(button["other"]))[:1]).chunk
    verdict = Verdict(button["said"])
    try:
        give_verdict(
            first=pair.chunk, second=chunk, verdict=verdict, by=request.user, question=pair.question, key=key
        )
    except (BadInput, Refused) as refusal:
        return _refuse(request, batch, pair, str(refusal), status=409)
    message = f"Saved: {SAID[verdict]}."
    if _wants_json(request):
        return JsonResponse({"said": message})
    messages.success(request, message)
    return redirect(f"{batch.desk_url}?pair={pair.pk}")


def _key(request: AuthedRequest) -> uuid.UUID | None:
    try:
        return uuid.UUID(request.POST.get("key", ""))
    except ValueError:
        return None


def _refuse(
    request: AuthedRequest, batch: Batch, pair: BatchPair, message: str, *, status: int
) -> HttpResponse:
    if _wants_json(request):
        return JsonResponse({"error": message}, status=status)
    messages.error(request, message)
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
    graded: dict[int, Judgment] = {}
    for judgment in _graded(assessor, pair).order_by("-pk")[:MOST_COMPARED]:
        graded.setdefault(judgment.chunk_id, judgment)
    wanted = {(judgment.chunk_id, judgment.revision) for judgment in graded.values()}
    texts = texts_of({(pair.chunk_id, pair.revision)} | wanted)
    here = texts[pair.chunk_id, pair.revision].text
    words = set(here.casefold().split())

    def share(judgment: Judgment) -> float:
        theirs = set(texts[judgment.chunk_id, judgment.revision].text.casefold().split())
        return len(words & theirs) / len(words | theirs) if words | theirs else 0.0

    likest = sorted(((share(judgment), judgment) for judgment in graded.values()), key=lambda item: -item[0])
    return [
        Likeness(
            chunk=judgment.chunk,
            share=shared,
            pieces=difference(texts[judgment.chunk_id, judgment.revision].text, here),
            said=said_of(pair.chunk, judgment.chunk),
            grade=judgment.grade,
            key=uuid.uuid4(),
        )
        for shared, judgment in likest[:SHOWN]
    ]

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import NamedTuple

from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.differences import Piece, difference
from evalsets.listing import page_of, sorted_by
from evalsets.models import Chunk, ChunkRevision, EvalSet, Question
from judging.models import Assessor, Judgment
from labels.relations import class_of, relations_of
from labels.settling import SettledPair, labels_of_chunk
from labels.views.questions import current_revisions

# What a lead may say of this chunk and another, as this chunk's page puts it.
RELATION_CHOICES = (
    ("same", "has the content of"),
    ("first-newer", "replaces"),
    ("second-newer", "is replaced by"),
    ("different", "differs from"),
)


# A chunk's page names so many of the passages that were cut from it.
MOST_CUT_PASSAGES = 50


@require_GET
@access.reader
def chunk_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    text, only = request.GET.get("q", "").strip(), request.GET.get("only", "")
    # Who looks for a cut passage by its ID finds it among all; else the list is the corpus.
    passages = evalset.chunks.exclude(cut_from=None)
    chunks = (
        passages
        if only == "cut" or (text and passages.filter(external_id=text).exists())
        else evalset.chunks.whole()
    )
    if only == "waiting":
        chunks = chunks.filter(has_text=False)
    elif only == "revised":
        chunks = chunks.filter(revision__gt=1)
    if text:
        chunks = chunks.matching(text)
    columns = {"id": "external_id"}
    if only == "revised":  # few chunks; to sort all by their revisions, all would be read
        columns["revision"] = "revision"
    page = page_of(request, sorted_by(request, chunks, columns, "id"))
    revisions = current_revisions(page)
    context = {
        "evalset": evalset,
        "page": page,
        "rows": [(chunk, revisions.get(chunk.pk)) for chunk in page],
        "q": text,
        "only": only,
    }
    return render(request, "labels/chunk_list.html", context)


class RevisionShown(NamedTuple):
    """A revision and how it differs from the one before it; None for the first."""

    revision: ChunkRevision
    pieces: list[Piece] | None


class GradeShown(NamedTuple):
    """What the chunk settles to for one question, and how many judgments of older texts it has there."""

    question: Question
    settled: SettledPair | None
    on_older_text: int


@require_GET
@access.reader
def chunk_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    chunk = get_object_or_404(evalset.chunks.select_related("evalset", "cut_from__evalset"), pk=pk)
    revisions = list(chunk.revisions.order_by("number"))
    history = [RevisionShown(revision, None) for revision in revisions[:1]]
    history += [RevisionShown(new, difference(old.text, new.text)) for old, new in pairwise(revisions)]
    current = revisions[-1] if revisions else None
    context = {
        "evalset": evalset,
        "chunk": chunk,
        "current": current,
        "history": history[::-1],
        "neighbours": neighbours_of(chunk, current) if current else [],
        "grades": grades_by_question(chunk),
        "cut_passages": chunk.cut_passages.select_related("evalset")[:MOST_CUT_PASSAGES],
        "chunk_class": class_of(chunk),
        "relations": relations_of(chunk),
        "verdicts": RELATION_CHOICES,
        "key": uuid.uuid4(),
    }
    return render(request, "labels/chunk_detail.html", context)


def neighbours_of(chunk: Chunk, current: ChunkRevision) -> list[ChunkRevision]:
    """Current texts of the same parent document in its order, up to three on each side, the chunk itself among them."""
    if not current.doc_id:
        return []
    siblings = (
        ChunkRevision.objects.current()
        .filter(chunk__evalset=chunk.evalset_id, doc_id=current.doc_id)
        .select_related("chunk__evalset")
    )
    ordered = list(siblings.order_by(F("start").asc(nulls_last=True), "chunk__external_id")[:1000])
    here = next((i for i, item in enumerate(ordered) if item.pk == current.pk), 0)
    return ordered[max(0, here - 3) : here + 4]


def grades_by_question(chunk: Chunk) -> list[GradeShown]:
    """One row for each question for which somebody judged the chunk, in whichever of its texts."""
    judged = (
        Judgment.objects.filter(chunk=chunk, replaced_by__isnull=True)
        .exclude(assessor__kind=Assessor.Kind.MODEL)
        .order_by()
        .values_list("question_id", "revision")
    )
    older: dict[int, int] = {}
    for question_id, revision in judged:
        older[question_id] = older.get(question_id, 0) + (revision != chunk.revision)
    settled = labels_of_chunk(chunk)
    questions = chunk.evalset.questions.filter(pk__in=older).order_by("external_id")
    return [GradeShown(question, settled.get(question.pk), older[question.pk]) for question in questions]

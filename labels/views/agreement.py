"""Whether the judgments can be trusted: agreement in an eval set or a batch, and the pairs behind each number."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import number_in, page_of
from evalsets.models import EvalSet
from judging.models import Batch
from judging.reckoning import as_of
from labels.agreement_definitions import DEFINITIONS, OF_COEFFICIENTS
from labels.rated_pairs import GradedAlike, RatedPair
from labels.ratings import Array
from labels.reports import AGREEMENT, RATED
from labels.settling import settled_pairs

Listed = list[tuple[RatedPair, list[int]]]

# The size of a cell of the confusion picture, and of the room for its labels.
CELL_WIDTH, CELL_HEIGHT, ROOM_LEFT, ROOM_ABOVE = 84, 48, 70, 44


@require_GET
@access.lead
def agreement(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The agreement of an eval set, or with `?batch=` of one batch; for the batch's page a summary of it."""
    batch = _batch_of(request, evalset)
    read = AGREEMENT.read(evalset, batch.pk if batch else 0)
    report = read.value
    if report is None:
        missing = {"evalset": evalset, "heading": "Agreement", "as_of": as_of(read)}
        template = "includes/as_of.html" if request.htmx else "includes/not_worked_out.html"
        return render(request, template, missing)
    context = {
        "as_of": as_of(read),
        "evalset": evalset,
        "batch": batch,
        "batches": evalset.batches.all()[:200],
        "report": report,
        "agreement": report.agreement,
        "verdict": report.verdict,
        "coefficients": zip(OF_COEFFICIENTS, report.agreement.coefficients, strict=True),
        "definitions": DEFINITIONS,
        "picture": confusion_picture(report.confusion, half=report.agreement.raters != 2),
        "given": list(zip(evalset.scale, report.agreement.given, strict=True)),
    }
    template = "labels/agreement.html#summary" if request.htmx else "labels/agreement.html"
    return render(request, template, context)


@require_GET
@access.lead
def agreement_pairs(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The pairs that one person graded `?low=` and another `?high=`; it does not say who."""
    batch = _batch_of(request, evalset)
    low, high = sorted(number_in(request.GET.get(name)) for name in ("low", "high"))
    read = RATED.read(evalset, batch.pk if batch else 0)
    found = (read.value or {}).get((low, high), GradedAlike())
    text = request.GET.get("q", "").strip()
    page = page_of(request, _named(evalset, found.listed, text) if text else found.listed)
    questions = evalset.questions.in_bulk([pair.question_id for pair, _ in page])
    chunks = evalset.chunks.in_bulk([pair.chunk_id for pair, _ in page])
    settled = {
        (pair.question_id, pair.chunk_id): pair for pair in settled_pairs(evalset, questions=questions)
    }
    context = {
        "evalset": evalset,
        "batch": batch,
        "low": low,
        "high": high,
        "count": found.count,
        "listed": len(found.listed),
        "q": text,
        "as_of": as_of(read),
        "known": read.value is not None,
        "page": page,
        "rows": [
            (
                questions[pair.question_id],
                chunks[pair.chunk_id],
                pair.revision,
                given,
                settled.get((pair.question_id, pair.chunk_id)),
            )
            for pair, given in page
        ],
    }
    return render(request, "labels/agreement_pairs.html", context)


def _named(evalset: EvalSet, listed: Listed, text: str) -> Listed:
    """Those whose question's or chunk's ID has the text in it."""
    asked = {"external_id__icontains": text}
    questions = evalset.questions.filter(pk__in={pair.question_id for pair, _ in listed}, **asked)
    chunks = evalset.chunks.filter(pk__in={pair.chunk_id for pair, _ in listed}, **asked)
    question_ids, chunk_ids = (set(found.values_list("pk", flat=True)) for found in (questions, chunks))
    return [row for row in listed if row[0].question_id in question_ids or row[0].chunk_id in chunk_ids]


def _batch_of(request: AuthedRequest, evalset: EvalSet) -> Batch | None:
    asked = number_in(request.GET.get("batch"))
    return get_object_or_404(evalset.batches, pk=asked) if asked else None


class Cell(NamedTuple):
    """One cell of the confusion picture: where it stands, what it says, and how strong its hue is, from 0 to 10."""

    x: int
    y: int
    row: int
    column: int
    times: int
    share: float
    step: int


class ConfusionPicture(NamedTuple):
    """`rows` has the cells of each grade, None where a half picture has none."""

    width: int
    height: int
    cell_width: int
    cell_height: int
    rows: list[list[Cell | None]]
    row_labels: list[tuple[int, int]]
    column_labels: list[tuple[int, int]]
    total: int


def confusion_picture(confusion: Array, *, half: bool = False) -> ConfusionPicture:
    """A confusion matrix, or its upper half, as numbers that a template draws. The hue grows with the root of the
    count, so that rare cells show beside the many zeros of a pool."""
    total, most = int(confusion.sum()), int(confusion.max())
    places = range(len(confusion))

    def cell(row: int, column: int) -> Cell | None:
        if half and column < row:
            return None
        count = int(confusion[row, column])
        return Cell(
            x=ROOM_LEFT + column * CELL_WIDTH,
            y=ROOM_ABOVE + row * CELL_HEIGHT,
            row=row,
            column=column,
            times=count,
            share=count / (total or 1),
            step=round(10 * (count / (most or 1)) ** 0.5) or (1 if count else 0),
        )

    return ConfusionPicture(
        width=ROOM_LEFT + len(places) * CELL_WIDTH,
        height=ROOM_ABOVE + len(places) * CELL_HEIGHT,
        cell_width=CELL_WIDTH,
        cell_height=CELL_HEIGHT,
        rows=[[cell(row, column) for column in places] for row in places],
        row_labels=[(ROOM_ABOVE + row * CELL_HEIGHT + CELL_HEIGHT // 2 + 5, row) for row in places],
        column_labels=[(ROOM_LEFT + column * CELL_WIDTH + CELL_WIDTH // 2, column) for column in places],
        total=total,
    )

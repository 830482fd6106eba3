from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of, sorted_by
from evalsets.models import Chunk, ChunkRevision, EvalSet, Question
from judging.models import Assessor, Judgment
from judging.services.adjudication import TAKEN_BACK
from labels.settling import SettledPair, labels_of_question, settled_pairs
from pooling.models import Ranking, Run

# How deep the strips of a question's rankings go.
STRIP_DEPTH = 10
# A row has all that was said of a chunk.
JUDGED_PER_PAGE = 100


@require_GET
@access.reader
def question_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    questions = evalset.questions.all()
    chosen = {name: request.GET.get(name, "").strip() for name in ("q", "slice", "split", "answerable")}
    if text := chosen["q"]:
        questions = questions.filter(Q(external_id__icontains=text) | Q(text__icontains=text))
    if chosen["slice"]:
        questions = questions.filter(slices__contains=[chosen["slice"]])
    if chosen["split"] in Question.Split.values:
        questions = questions.filter(split=chosen["split"])
    if chosen["answerable"] in ("yes", "no"):
        questions = questions.filter(answerable=chosen["answerable"] == "yes")
    page = page_of(request, sorted_by(request, questions, {"id": "external_id", "text": "text"}, "id"))
    pairs = settled_pairs(evalset, questions=[question.pk for question in page])
    judged = Counter(pair.question_id for pair in pairs if pair.grades or pair.label is not None)
    relevant = Counter(
        pair.question_id for pair in pairs if pair.label is not None and pair.label >= evalset.threshold
    )
    context = {
        "evalset": evalset,
        "page": page,
        "rows": [(question, judged[question.pk], relevant[question.pk]) for question in page],
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "slices": slices_of(evalset),
    }
    return render(request, "labels/question_list.html", context)


@require_GET
@access.reader
def question_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    question = get_object_or_404(evalset.questions.select_related("evalset"), pk=pk)
    settled = labels_of_question(question)
    text = request.GET.get("q", "").strip()
    context = {
        "evalset": evalset,
        "question": question,
        "strips": ranking_strips(question, settled),
        "depth": STRIP_DEPTH,
        "page": page_of(request, judged_chunks_shown(question, settled, text), per_page=JUDGED_PER_PAGE),
        "q": text,
    }
    return render(request, "labels/question_detail.html", context)


class Cell(NamedTuple):
    """One position of a ranking: the chunk there, and its label (None: unjudged or contested)."""

    rank: int
    chunk: Chunk
    label: int | None
    judged: bool


class Strip(NamedTuple):
    """A run's ranking of one question, cut for a glance. `cells` is None where the question is missing."""

    run: Run
    cells: list[Cell] | None
    unjudged: int


def ranking_strips(question: Question, settled: dict[int, SettledPair]) -> list[Strip]:
    """The top of each system's latest run for the question, with labels."""
    runs = Run.objects.filter(evalset=question.evalset).latest_of_each_system()
    rankings = dict(
        Ranking.objects.filter(question=question, run__in=runs).values_list("run_id", "chunk_ids")
    )
    tops = {run_id: chunk_ids[:STRIP_DEPTH] for run_id, chunk_ids in rankings.items()}
    chunks = question.evalset.chunks.in_bulk({chunk_id for top in tops.values() for chunk_id in top})
    strips = []
    for run in runs:
        if run.pk not in tops:
            strips.append(Strip(run, None, 0))
            continue
        cells = [
            cell_of(rank, chunks[chunk_id], settled) for rank, chunk_id in enumerate(tops[run.pk], start=1)
        ]
        strips.append(Strip(run, cells, sum(not cell.judged for cell in cells)))
    return strips


def cell_of(rank: int, chunk: Chunk, settled: dict[int, SettledPair]) -> Cell:
    pair = settled.get(chunk.pk)
    return Cell(rank, chunk, pair.label if pair else None, was_judged(pair))


def was_judged(pair: SettledPair | None) -> bool:
    return pair is not None and (bool(pair.grades) or pair.label is not None)


class JudgedChunk(NamedTuple):
    """A chunk with what was judged of it for one question, the current text first among the judgments."""

    chunk: Chunk
    revision: ChunkRevision | None
    settled: SettledPair | None
    judgments: list[Judgment]
    by_models: list[Judgment]


def judged_chunks_shown(
    question: Question, settled: dict[int, SettledPair], text: str = ""
) -> list[JudgedChunk]:
    """Each chunk that somebody judged for the question, best label first, with every current judgment of it.

    Only those with the text in their ID, where there is one.
    What outside judges said stands beside, and brings in no chunk of its own.
    """
    judgments = (
        Judgment.objects.filter(question=question, replaced_by__isnull=True)
        .exclude(TAKEN_BACK)
        .select_related("assessor", "chunk")
        .order_by("-judged_at", "-id")
    )
    by_chunk: dict[int, list[Judgment]] = {}
    by_models: dict[int, list[Judgment]] = {}
    for judgment in judgments:
        of_model = judgment.assessor.kind == Assessor.Kind.MODEL
        (by_models if of_model else by_chunk).setdefault(judgment.chunk_id, []).append(judgment)
    named = question.evalset.chunks.filter(external_id__icontains=text)
    chunks = named.in_bulk(by_chunk)
    revisions = current_revisions(chunks.values())
    shown = [
        JudgedChunk(
            chunk,
            revisions.get(chunk.pk),
            settled.get(chunk.pk),
            by_chunk[chunk.pk],
            by_models.get(chunk.pk, []),
        )
        for chunk in chunks.values()
    ]
    return sorted(shown, key=lambda item: (-_label_of(item), item.chunk.external_id))


def _label_of(item: JudgedChunk) -> int:
    return -1 if item.settled is None or item.settled.label is None else item.settled.label


def current_revisions(chunks: Iterable[Chunk]) -> dict[int, ChunkRevision]:
    """The current text of each chunk that has one, by Chunk.id."""
    revisions = ChunkRevision.objects.current().filter(chunk__in=[chunk.pk for chunk in chunks])
    return {revision.chunk_id: revision for revision in revisions}


def slices_of(evalset: EvalSet) -> list[str]:
    """All slice names of the eval set's questions, sorted."""
    return sorted({name for names in evalset.questions.values_list("slices", flat=True) for name in names})

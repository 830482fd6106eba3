"""Pools: what they cost before they are built, the building, and the remainder for teams that judge elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.documents import Document, answer
from evalsets.api.inputs import Input, Name
from evalsets.api.jobs import JobOut, accepted
from evalsets.api.paging import PageOf, Paging, page_of
from evalsets.models import EvalSet
from judging.services.pools import pool_document
from judging.services.remainder import remainder_lines
from pooling.models import Pool
from pooling.rankings import RunToDepth
from pooling.services.finding import find_pool, find_runs
from pooling.services.pool_jobs import BUILT_AT_ONCE, start_building
from pooling.services.pools import build_specified_pool
from pooling.specifying import PoolSpecification, specification_of, specify_pool

router = Router(tags=["Pools"])


class RunAt(Input):
    run: Name = Field(description="A run, or a system for its latest run.", examples=["bm25"])
    k: int | None = Field(
        None, ge=1, le=1_000_000, description="The depth it is cut at; else the common `k`."
    )


class PoolRequest(Input):
    """A pool, as `manage.py build_pool` describes it."""

    runs: list[RunAt] = Field(
        min_length=1, max_length=1000, examples=[[{"run": "bm25"}, {"run": "dense", "k": 20}]]
    )
    k: int = Field(20, ge=1, le=1_000_000, description="The depth of the runs that say none.")
    strategy: Name = Field(
        "depth", description="How the union is thinned out: `depth` takes all.", examples=["depth"]
    )
    budget: int | None = Field(
        None, ge=1, le=1_000_000, description="Strategy budget: at most so many pairs a question."
    )
    fusion: Name | None = Field(None, description="Strategy budget: the order, `rrf` where none is given.")
    order: Literal["shuffled", "fused"] | None = Field(
        None, description="Strategy budget: how assessors meet the pairs."
    )
    strata: Name | None = Field(None, description="Strategy stratified, as `1-10:1.0,11-50:0.2`.")
    slice: Name | None = Field(None, description="Only the questions of this slice.")
    split: Literal["dev", "holdout"] | None = Field(None, description="Only the questions of this split.")
    questions: list[Name] = Field([], max_length=100_000, description="Only these questions, by ID.")
    extends: Name | None = Field(None, description="Leave out what the pool of this name covers.")
    seed: int | None = Field(
        None, ge=0, le=2**63 - 1, description="Of the order of reading; else drawn from the pool's content."
    )

    def specification(self, evalset: EvalSet) -> PoolSpecification:
        runs = find_runs(evalset, [item.run for item in self.runs])
        given = self.model_dump(include={"budget", "fusion", "order", "strata"}, exclude_none=True)
        return specify_pool(
            evalset=evalset,
            runs=[RunToDepth(run, item.k or self.k) for run, item in zip(runs, self.runs, strict=True)],
            strategy=self.strategy,
            parameters=given,
            question_filter=self.model_dump(include={"slice", "split", "questions"}),
            extends=find_pool(evalset, self.extends) if self.extends else None,
            seed=self.seed,
        )


class NewPool(PoolRequest):
    name: Name = Field(max_length=200, examples=["bm25 and dense to 20"])


class PoolNumbersOut(Document):
    """What `manage.py build_pool --json` prints."""

    questions: int
    union: int
    judged: int
    queued: int
    waiting_for_text: int
    remainder: int
    seconds: float = Field(description="What judging the remainder takes one assessor.")
    per_question: list[dict[str, Any]] = Field(
        examples=[[{"id": "q1", "union": 14, "judged": 9, "queued": 0, "remainder": 5}]]
    )
    runs: list[dict[str, Any]] = Field(
        examples=[[{"run": "bm25", "k": 20, "returned": 2000, "judged": 1980, "unjudged": 20, "unique": 312}]]
    )
    overlap: list[list[int]]
    warnings: list[str]


class BuiltPool(PoolNumbersOut):
    id: int
    pool: str = Field(description="Its name.")
    seed: int
    written: bool = Field(description="False where this very pool was there already.")
    page: str


class PoolBrief(Schema):
    id: int
    name: str
    strategy: str
    parameters: dict[str, Any]
    runs: list[dict[str, Any]] = Field(examples=[[{"run": "bm25", "k": 20}]])
    extends: str | None
    created_at: datetime
    page: str


def _built(pool: Pool, *, written: bool) -> dict[str, Any]:
    made = {"id": pool.pk, "pool": pool.name, "seed": pool.seed, "page": pool.get_absolute_url()}
    return {**pool_document(specification_of(pool)), **made, "written": written}


@router.post(
    "/preview",
    auth=auth.lead,
    response=PoolNumbersOut,
    url_name="pool-preview",
    summary="What a pool would cost",
)
def pool_preview(request: ApiRequest, body: PoolRequest) -> JsonResponse:
    """The numbers of a pool that need not exist: union, judged, queued, remainder, and what each run adds. Writes
    nothing."""
    return answer(pool_document(body.specification(request.auth.evalset)))


@router.post(
    "",
    auth=auth.lead,
    response={200: BuiltPool, 201: BuiltPool, 202: JobOut},
    url_name="pool-new",
    summary="Build a pool",
)
def pool_new(request: ApiRequest, response: HttpResponse, body: NewPool) -> Any:
    """Build a pool. The same pool again answers 200 with the one that is there, under the name it has; a very large one
    answers 202 with a job."""
    specification = body.specification(request.auth.evalset)
    if specification.reads_at_most > BUILT_AT_ONCE:
        return accepted(
            start_building(specification=specification, name=body.name, by=request.auth.user), response
        )
    pool, created = build_specified_pool(specification=specification, name=body.name, by=request.auth.user)
    return answer(_built(pool, written=created), status=201 if created else 200)


def _pools(request: ApiRequest) -> Any:
    return Pool.objects.filter(evalset=request.auth.evalset).select_related("evalset", "extends")


@router.get("", auth=auth.reader, response=PageOf[PoolBrief], url_name="pool-list", summary="Pools")
def pool_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The pools of the eval set, the latest first."""
    return page_of(_pools(request).prefetch_related("pool_runs__run"), paging, _brief)


def _brief(pool: Pool) -> dict[str, Any]:
    return {
        **{name: getattr(pool, name) for name in ("id", "name", "strategy", "parameters", "created_at")},
        "runs": [{"run": item.run.name, "k": item.k} for item in pool.pool_runs.all()],
        "extends": pool.extends.name if pool.extends else None,
        "page": pool.get_absolute_url(),
    }


@router.get("/{int:pk}", auth=auth.reader, response=BuiltPool, url_name="pool", summary="A pool")
def pool_detail(request: ApiRequest, pk: int) -> JsonResponse:
    """The numbers of a built pool as they stand now, counted anew from its runs and the judgments."""
    return answer(_built(get_object_or_404(_pools(request), pk=pk), written=True))


_REMAINDER = {
    "responses": {
        200: {
            "description": "One pair a line: `question_id`, `question`, `chunk_id`, `text`, `revision`, and `grade` to "
            "fill in.",
            "content": {"application/jsonl": {"schema": {"type": "string"}}},
        }
    }
}


@router.get(
    "/{int:pk}/remainder",
    auth=auth.lead,
    url_name="pool-remainder",
    summary="What is left to judge",
    openapi_extra=_REMAINDER,
)
def pool_remainder(request: ApiRequest, pk: int, without_copies: bool = False) -> HttpResponseBase:
    """Stream the pool's remainder as JSONL, for a team that judges elsewhere. Fill in `grade` (or `cannot_judge`) and
    bring it back by `POST /imports/verdicts`. It names neither system nor rank. `without_copies` leaves out chunks of
    a class of which another member is judged for the question."""
    pool = get_object_or_404(_pools(request), pk=pk)
    return StreamingHttpResponse(
        remainder_lines(pool, without_copies=without_copies), content_type="application/jsonl"
    )

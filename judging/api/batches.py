"""Batches: handing out what is left of a pool, and how far it is. Assessors judge blind: they see their own alone."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema
from ninja.responses import Status

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.inputs import Input, Name, Text
from evalsets.api.paging import PageOf, Paging, page_of
from evalsets.errors import BadInput
from evalsets.models import User
from judging.models import Batch, BatchQuerySet
from judging.services.batches import make_batch
from judging.services.gold import Gold
from pooling.services.finding import find_pool

router = Router(tags=["Batches"])


class NewBatch(Input):
    pool: Name = Field(
        description="What is left of it goes into the batch.", examples=["bm25 and dense to 20"]
    )
    name: Name = Field(
        max_length=200, description="Assessors see it: name no system.", examples=["March, first week"]
    )
    assessors: list[Name] = Field(
        min_length=1,
        max_length=200,
        description="Names of members who judge in it.",
        examples=[["alice", "bob"]],
    )
    sharing: Batch.Sharing = Field(Batch.Sharing.BY_QUESTION, description="How the work is shared.")
    overlap: int = Field(1, ge=1, le=50, description="Independent judgments of an overlapping pair.")
    overlap_share: float = Field(
        0.0, ge=0, le=1, allow_inf_nan=False, description="Share of pairs that overlap."
    )
    again: bool = Field(
        False,
        description="As large a share of the pairs with fewer judgments than `overlap` goes in for those they lack.",
    )
    gold_share: float | None = Field(
        None,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="Mix in pairs whose answer a lead has decided, as this share of each one's work.",
    )
    without_copies: bool = Field(False, description="Leave out copies of chunks that are judged already.")
    due_on: date | None = None
    instructions: Text | None = Field(
        None, description="Markdown that goes into the rubric. Default: the latest rubric's."
    )
    lease_minutes: int = Field(30, ge=1, le=10_000, description="Idle for so long, open work goes back.")
    seed: int | None = Field(None, ge=0, le=2**63 - 1, description="Of the choice of overlapping pairs.")


class BatchOut(Schema):
    id: int
    name: str
    pool: str | None = Field(description="Null for an assessor's token: a pool's name may name systems.")
    sharing: str
    due_on: date | None
    questions: int
    pairs: int
    filled: int = Field(description="Pairs that have all their judgments.")
    judgments: int = Field(description="Judgments asked for.")
    paused: bool
    cancelled: bool
    created_at: datetime


def _batches(request: ApiRequest) -> BatchQuerySet:
    caller = request.auth
    batches = Batch.objects.filter(evalset=caller.evalset).with_progress().select_related("pool")
    return batches.for_assessor(caller.user) if caller.is_blind else batches


def _as_json(request: ApiRequest, batch: Any) -> dict[str, Any]:
    return {
        **{name: getattr(batch, name) for name in ("id", "name", "sharing", "due_on", "created_at")},
        "pool": None if request.auth.is_blind else batch.pool.name,
        "questions": batch.question_count,
        "pairs": batch.pair_count,
        "filled": batch.filled_count,
        "judgments": batch.wanted_count,
        "paused": batch.paused_at is not None,
        "cancelled": batch.cancelled_at is not None,
    }


@router.get("", auth=auth.member, response=PageOf[BatchOut], url_name="batch-list", summary="Batches")
def batch_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The batches of the eval set, the latest first; to an assessor's token, those that its maker judges in."""
    return page_of(_batches(request), paging, lambda batch: _as_json(request, batch))


@router.post("", auth=auth.lead, response={201: BatchOut}, url_name="batch-new", summary="Make a batch")
def batch_new(request: ApiRequest, body: NewBatch) -> Status:
    """Hand what is left of a pool to named assessors. Pairs that others have in open batches are left out."""
    evalset, by = request.auth.evalset, request.auth.user
    settings = body.model_dump(exclude={"pool", "assessors", "gold_share"})
    batch = make_batch(
        pool=find_pool(evalset, body.pool),
        by=by,
        assessors=_people(body.assessors),
        gold=Gold(body.gold_share) if body.gold_share else None,
        **settings,
    )
    return Status(201, _as_json(request, _batches(request).get(pk=batch.pk)))


def _people(names: list[str]) -> list[User]:
    """The users of these names; whether they may judge, `make_batch` says."""
    found = {user.username: user for user in User.objects.filter(username__in=names)}
    if missing := [name for name in names if name not in found]:
        raise BadInput(f"Nobody is called {', '.join(missing)}.")
    return [found[name] for name in dict.fromkeys(names)]


@router.get("/{int:pk}", auth=auth.member, response=BatchOut, url_name="batch", summary="A batch")
def batch_detail(request: ApiRequest, pk: int) -> dict[str, Any]:
    """How far a batch is."""
    return _as_json(request, get_object_or_404(_batches(request), pk=pk))

"""Runs, as they were imported."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.inputs import Name
from evalsets.api.paging import PageOf, Paging, page_of
from pooling.models import Run

router = Router(tags=["Runs"])


class RunOut(Schema):
    id: int = Field(examples=[7])
    name: str = Field(examples=["bm25"])
    system: str = Field(examples=["bm25"])
    stage: str = Field(examples=["reranked"])
    k: int | None = Field(description="How many chunks were asked for.", examples=[100])
    version: str
    date: date
    config: dict[str, Any] = Field(examples=[{"model": "bm25", "k1": 0.9}])
    hash: str = Field(description="SHA-256 over the ordered rankings.")
    warnings: list[Any] = Field(description="What its import warned of.")
    created_at: datetime
    page: str


def run_json(run: Run) -> dict[str, Any]:
    names = ("id", "name", "stage", "k", "version", "date", "config", "warnings", "created_at")
    return {
        **{name: getattr(run, name) for name in names},
        "system": run.system.name,
        "hash": run.content_hash,
        "page": run.get_absolute_url(),
    }


@router.get("", auth=auth.reader, response=PageOf[RunOut], url_name="run-list", summary="Runs")
def run_list(request: ApiRequest, paging: Query[Paging], system: Name | None = None) -> dict[str, Any]:
    """The runs of the eval set, or of one system, the latest first."""
    runs = Run.objects.filter(evalset=request.auth.evalset).select_related("system", "evalset")
    if system is not None:
        runs = runs.filter(system__name=system)
    return page_of(runs, paging, run_json)


@router.get("/{int:pk}", auth=auth.reader, response=RunOut, url_name="run", summary="A run")
def run_detail(request: ApiRequest, pk: int) -> dict[str, Any]:
    """What is recorded of a run. Its rankings are compared and scored, not listed here."""
    runs = Run.objects.filter(evalset=request.auth.evalset).select_related("system", "evalset")
    return run_json(get_object_or_404(runs, pk=pk))

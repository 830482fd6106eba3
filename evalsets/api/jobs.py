"""Long work: how far it is, what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Query, Router, Schema
from ninja.responses import Status

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.paging import PageOf, Paging, page_of
from evalsets.api.problems import problem
from evalsets.models import Job
from evalsets.services.jobs import request_cancel, retry_job

router = Router(tags=["Jobs"])


class JobOut(Schema):
    """A job, and how far it is."""

    id: int = Field(examples=[12])
    title: str = Field(examples=["Import run.trec (run)"])
    state: str = Field(
        description="`waiting`, `running`, `lost` (its worker is silent), `done`, `failed` or `cancelled`.",
        examples=["running"],
    )
    no_worker_answers: bool = Field(description="It waits, and no worker has picked it up.")
    phase: str = Field(description="What it is doing now.", examples=["reading"])
    done: int = Field(description="Units of work done in this phase.", examples=[524288])
    total: int | None = Field(description="Units in this phase, where known.", examples=[1048576])
    seconds_left: float | None
    begun_by: str = Field(examples=["token ci of Carol"])
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str = Field(description="Why it failed, for people; empty otherwise.")
    result: Any = Field(
        description="What came of it; of an import, its report, also where it failed by faults."
    )
    page: str = Field(description="The page on which its outcome can be seen.")


def job_json(job: Job) -> dict[str, Any]:
    names = (
        "id",
        "title",
        "phase",
        "done",
        "total",
        "created_at",
        "started_at",
        "finished_at",
        "error",
        "result",
    )
    return {
        **{name: getattr(job, name) for name in names},
        "state": job.state.value,
        "no_worker_answers": job.no_worker_answers,
        "seconds_left": None if job.finished_at else job.seconds_left,
        "begun_by": job.actor,
        "page": job.result_url or job.get_absolute_url(),
    }


def accepted(job: Job, response: HttpResponse) -> Status:
    """The answer 202 of a route that began a job; `response` is the one that ninja passes to the route."""
    response["Location"] = reverse("api:job", args=[job.evalset.slug, job.pk])
    return Status(202, job_json(job))


def _job(request: ApiRequest, pk: int) -> Job:
    return get_object_or_404(
        request.auth.evalset.jobs.select_related("evalset", "created_by", "token__user"), pk=pk
    )


@router.get("", auth=auth.lead, response=PageOf[JobOut], url_name="job-list", summary="Jobs")
def job_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The jobs of the eval set, the latest first."""
    jobs = request.auth.evalset.jobs.select_related("evalset", "created_by", "token__user")
    return page_of(jobs, paging, job_json)


@router.get("/{int:pk}", auth=auth.lead, response=JobOut, url_name="job", summary="A job")
def job_detail(request: ApiRequest, pk: int) -> dict[str, Any]:
    """Ask every second or so until `state` is `done`, `failed` or `cancelled`."""
    return job_json(_job(request, pk))


@router.get(
    "/{int:pk}/result", auth=auth.lead, response=Any, url_name="job-result", summary="What came of a job"
)
def job_result(request: ApiRequest, pk: int) -> Any:
    """The result of a job that is done. One that failed answers 422 with the same report that its page shows, one
    that has not ended or was cancelled 409."""
    job = _job(request, pk)
    if job.state == Job.State.FAILED:
        return problem(422, job.error, **({} if job.result is None else {"report": job.result}))
    if job.state != Job.State.DONE:
        return problem(409, f"The job is {job.state.label}: it has no result.")
    return job.result


@router.post(
    "/{int:pk}/cancel", auth=auth.lead, response=JobOut, url_name="job-cancel", summary="Cancel a job"
)
def job_cancel(request: ApiRequest, pk: int) -> dict[str, Any]:
    """Ask the job to stop. Nothing of it is kept. One that has ended already answers 409."""
    request_cancel(job=_job(request, pk), by=request.auth.user)
    return job_json(_job(request, pk))


@router.post(
    "/{int:pk}/retry", auth=auth.lead, response=JobOut, url_name="job-retry", summary="Try a job again"
)
def job_retry(request: ApiRequest, pk: int) -> dict[str, Any]:
    """Hand a job that was lost, failed, cancelled or never picked up to a worker again; others answer 409."""
    retry_job(job=_job(request, pk), by=request.auth.user)
    return job_json(_job(request, pk))

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import Refused
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet, Job
from evalsets.services.jobs import request_cancel, retry_job


@require_GET
@access.lead
def job_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    jobs = evalset.jobs.select_related("created_by", "token__user")
    if text := request.GET.get("q", "").strip():
        jobs = jobs.filter(title__icontains=text)
    state = filter_by(request, "state", "State", Job.State.choices)
    if state.chosen:
        jobs = jobs.in_state(state.chosen)
    page = page_of(request, sorted_by(request, jobs, {"job": "title", "when": "created_at"}, "-when"))
    context = {"evalset": evalset, "page": page, "q": text, "filter": state}
    return render(request, "evalsets/job_list.html", context)


@require_GET
@access.lead
def job_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    job = get_object_or_404(evalset.jobs.select_related("created_by", "token__user"), pk=pk)
    template = "evalsets/job_detail.html"
    if request.htmx:
        # Whoever watched a job to its end is brought to what came of it.
        if job.finished_at:
            return HttpResponse(headers={"HX-Redirect": job.result_url or job.get_absolute_url()})
        template += "#progress"
    return render(request, template, {"evalset": evalset, "job": job})


@require_POST
@access.lead
def job_cancel(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    job = get_object_or_404(evalset.jobs, pk=pk)
    try:
        request_cancel(job=job, by=request.user)
        messages.success(request, "The job was asked to stop. Nothing of it is kept.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect(job)


@require_POST
@access.lead
def job_retry(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    job: Job = get_object_or_404(evalset.jobs, pk=pk)
    try:
        retry_job(job=job, by=request.user)
        messages.success(request, "The job waits for a worker again.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect(job)

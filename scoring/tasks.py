from __future__ import annotations

from celery import shared_task

from evalsets.models import Job
from evalsets.progress import Progress
from evalsets.services.jobs import JobOutcome, run_job
from scoring.services.requests import perform


@shared_task(name="scoring.perform")
def perform_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        outcome = perform(
            evalset=job.evalset,
            kind=job.parameters["kind"],
            parameters=job.parameters,
            by=job.created_by,
            progress=progress,
        )
        return JobOutcome(outcome.result, outcome.url)

    run_job(job_id, work)

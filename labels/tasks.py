from __future__ import annotations

from celery import shared_task

from evalsets.models import Job
from evalsets.progress import Progress
from evalsets.services.jobs import JobOutcome, run_job
from labels.services.publishing import publish_release


@shared_task(name="labels.publish_release")
def publish_release_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        published = publish_release(
            evalset=job.evalset, by=job.created_by, progress=progress, **job.parameters
        )
        return JobOutcome(published.as_json(), published.release.get_absolute_url())

    run_job(job_id, work)

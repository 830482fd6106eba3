from __future__ import annotations

from celery import shared_task
from django.urls import reverse

from evalsets.models import Job
from evalsets.progress import Progress
from evalsets.services.jobs import JobOutcome, run_job
from labels.services.carrying import carry_by_rule
from labels.services.duplicates import find_duplicates, join_equal
from labels.services.mapping import find_mappings
from labels.services.publishing import publish_release
from labels.services.reckoning import reckon


@shared_task(name="labels.publish_release")
def publish_release_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        published = publish_release(
            evalset=job.evalset, by=job.created_by, progress=progress, **job.parameters
        )
        return JobOutcome(published.as_json(), published.release.get_absolute_url())

    run_job(job_id, work)


@shared_task(name="labels.find_duplicates")
def find_duplicates_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        found = find_duplicates(evalset=job.evalset, by=job.created_by, progress=progress)
        return JobOutcome(found._asdict(), reverse("labels:duplicate-list", args=[job.evalset.slug]))

    run_job(job_id, work)


@shared_task(name="labels.join_equal")
def join_equal_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        joined = join_equal(evalset=job.evalset, by=job.created_by, progress=progress)
        return JobOutcome(joined._asdict(), reverse("labels:duplicate-list", args=[job.evalset.slug]))

    run_job(job_id, work)


@shared_task(name="labels.find_mappings")
def find_mappings_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        found = find_mappings(evalset=job.evalset, by=job.created_by, progress=progress)
        return JobOutcome(found._asdict(), reverse("labels:mapping-list", args=[job.evalset.slug]))

    run_job(job_id, work)


@shared_task(name="labels.carry_by_rule")
def carry_by_rule_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        carried = carry_by_rule(evalset=job.evalset, by=job.created_by, progress=progress)
        return JobOutcome(carried._asdict(), reverse("labels:mapping-list", args=[job.evalset.slug]))

    run_job(job_id, work)


@shared_task(name="labels.reckon")
def reckon_job(job_id: int) -> None:
    def work(job: Job, progress: Progress) -> JobOutcome:
        reports, back = job.parameters["reports"], job.parameters["back"]
        reckon(evalset=job.evalset, reports=reports, progress=progress)
        return JobOutcome({"reports": reports}, back)

    run_job(job_id, work)

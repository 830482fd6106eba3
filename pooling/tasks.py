from celery import shared_task

from evalsets.services.jobs import run_job
from pooling.services.pool_jobs import build_pool_for_job


@shared_task(name="pooling.build_pool")
def build_pool_job(job_id: int) -> None:
    run_job(job_id, build_pool_for_job)

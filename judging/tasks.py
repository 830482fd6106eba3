from celery import shared_task

from evalsets.services.jobs import run_job
from judging.services.import_uploads import import_upload as work


@shared_task
def import_upload(job_id: int) -> None:
    run_job(job_id, work)

import logging

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from evalsets.models import Question
from evalsets.services.jobs import run_job
from judging.services.import_uploads import import_upload as work
from judging.services.reordering import reorder_question as reorder
from judging.services.simulating import simulate_for_job
from pooling.models import Pool

logger = logging.getLogger(__name__)


@shared_task
def import_upload(job_id: int) -> None:
    run_job(job_id, work)


@shared_task
def simulate_strategies(job_id: int) -> None:
    run_job(job_id, simulate_for_job)


# Late it is of no use: the next grade asks anew.
@shared_task(expires=300)
def reorder_question(pool_id: int, question_id: int) -> None:
    pool = Pool.objects.select_related("evalset").get(pk=pool_id)
    reorder(pool=pool, question=Question.objects.get(pk=question_id))


def reorder_soon(*, pool_id: int, question_id: int) -> None:
    """Hand the question to a worker once the grade is committed. Without a broker the order stays, and nothing else."""

    def enqueue() -> None:
        try:
            reorder_question.delay(pool_id, question_id)
        except OperationalError:
            logger.warning("The broker cannot be reached; question %s keeps its order", question_id)

    transaction.on_commit(enqueue)

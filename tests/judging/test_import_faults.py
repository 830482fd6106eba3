"""The worker dies in the middle of an import: nothing is half-done, and the job can be tried again."""

import time
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from evalsets.models import Job
from evalsets.services.jobs import retry_job
from judging.services.import_uploads import receive_upload, start_import
from pooling.models import Ranking, Run
from tests.conftest import make_questions

LINES = 300_000
QUESTIONS = 100


@pytest.fixture
def job(evalset, carol, transactional_db) -> Job:
    make_questions(evalset, *(f"q{number}" for number in range(QUESTIONS)))
    content = "".join(
        f"q{line % QUESTIONS} Q0 chunk-{line % 5000}-{line // QUESTIONS} 1 {LINES - line} big\n"
        for line in range(LINES)
    )
    upload = receive_upload(evalset=evalset, file=SimpleUploadedFile("big.trec", content.encode()), by=carol)
    return start_import(evalset=evalset, upload=upload, kind="run", options={}, check=False, by=carol)


def wait_for(job: Job, reached, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job.refresh_from_db()
        if reached(job):
            return
        time.sleep(0.01)
    pytest.fail(f"the job stayed {job.state}, {job.phase!r}, {job.error!r}")


@pytest.mark.kill
def test_worker_killed_in_the_middle_of_an_import(evalset, carol, job, worker) -> None:
    # The job was sent to the broker before this worker emptied it: hand it over anew.
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    job.refresh_from_db()
    retry_job(job=job, by=carol)
    wait_for(job, lambda job: job.phase != "")
    worker.kill()
    job.refresh_from_db()
    assert job.finished_at is None, "it ended before the worker was killed: make the file larger"
    assert (Run.objects.count(), Ranking.objects.count()) == (0, 0)

    long_ago = timezone.now() - timedelta(minutes=5)
    Job.objects.filter(pk=job.pk).update(heartbeat_at=long_ago)
    job.refresh_from_db()
    assert job.state == Job.State.LOST
    worker.start()
    retry_job(job=job, by=carol)
    wait_for(job, lambda job: job.finished_at is not None)
    assert (job.state, job.attempt) == (Job.State.DONE, 2)
    assert Ranking.objects.count() == QUESTIONS
    assert sum(len(ranking.chunk_ids) for ranking in Ranking.objects.all()) == LINES

"""Two web servers and two workers on one Postgres and one broker: what they do, log and count together."""

import contextlib
import json
import urllib.request
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from config.embedded.home import free_port
from evalsets.models import EvalSet, Job, Upload, User
from judging.models import Batch, Judgment
from judging.services.import_uploads import TASK, receive_upload
from pooling.models import Run
from tests.conftest import make_questions
from tests.judging.batches import batch_of, places_by_pair
from tests.judging.test_batch_over_http import Browser
from tests.servers import running_web, running_worker
from tests.waiting import wait_until

REQUEST_ID = uuid.uuid4().hex
TOKEN = {"Authorization": "Bearer the figures please"}


def judge_to_the_end(browser: Browser, batch: Batch) -> None:
    answer = browser.post(reverse("judging:desk-next", args=["handbook", batch.pk]))
    while answer["next"]:
        fields = {
            "pair": answer["next"][0]["pair"],
            "key": uuid.uuid4(),
            "as_user": browser.user.pk,
            "act": "grade:1",
        }
        answer = browser.post(reverse("judging:desk-save", args=["handbook", batch.pk]), **fields)


def figures(url: str, **headers: str) -> dict[str, float]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
        lines = response.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def json_lines(log: Path) -> list[dict]:
    """The lines of a server's log; all but what Python says before logging begins must be JSON."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def waiting_import(evalset: EvalSet, upload: Upload, by: User) -> Job:
    """An import that no worker has picked up for a minute."""
    return Job.objects.create(
        evalset=evalset,
        task=TASK,
        title="Import",
        created_by=by,
        upload=upload,
        parameters={"kind": "run", "options": {}, "check": False},
        created_at=timezone.now() - timedelta(minutes=1),
    )


def try_again(browser: Browser, job: Job) -> None:
    address = reverse("evalsets:job-retry", args=["handbook", job.pk])
    headers = {**browser.headers, "X-Request-ID": REQUEST_ID}
    browser.connection.request("POST", address, "", headers)
    response = browser.connection.getresponse()
    response.read()
    assert (response.status, response.headers["X-Request-ID"]) == (302, REQUEST_ID)


@pytest.mark.django_db(transaction=True)
def test_one_batch_and_many_jobs_over_two_of_each(
    broker, static_root, tmp_path, worker, evalset, alice, bob, carol
) -> None:
    make_questions(evalset, "q1")
    batch = batch_of(
        evalset,
        {"q1": [f"c{n}" for n in range(12)]},
        by=carol,
        assessors=[alice, bob],
        overlap=2,
        overlap_share=1.0,
    )
    port = free_port(23000)
    with contextlib.ExitStack() as stack:
        webs = [
            stack.enter_context(
                running_web(
                    broker, tmp_path, static_root, f"web{n}", workers=2, METRICS_TOKEN="the figures please"
                )
            )
            for n in range(2)
        ]
        second = running_worker(broker, tmp_path, "second", WORKER_METRICS_PORT=str(port))
        workers = [worker, stack.enter_context(second)]

        # Each of the two judges half of the time here and half of the time there.
        browsers = [Browser(web.url, user) for web in webs for user in (alice, bob)]
        lead = [Browser(web.url, carol) for web in webs]
        stack.callback(lambda: [browser.connection.close() for browser in browsers + lead])
        connection.close()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda browser: judge_to_the_end(browser, batch), browsers))
        assert set(places_by_pair(batch).values()) == {2}
        assert Judgment.objects.count() == 24

        # Jobs begun on either web server, with the ID of their request.
        for number in range(8):
            content = f"q1 Q0 c1 1 1 run{number}\n".encode()
            file = SimpleUploadedFile(f"{number}.trec", content)
            upload = receive_upload(evalset=evalset, file=file, by=carol)
            job = waiting_import(evalset, upload, carol)
            try_again(lead[number % 2], job)
        wait_until(lambda: Job.objects.filter(finished_at__isnull=True).count() == 0)
        assert Counter(job.state for job in Job.objects.all()) == {"done": 8}
        assert Run.objects.count() == 8

        # Every line is JSON; the jobs' lines carry the request's ID, user and eval set.
        lines = [line for process in workers for line in json_lines(process.log)]
        ends = [line for line in lines if line["logger"] == "fairpool.job"]
        assert len(ends) == 8
        assert {(line["request_id"], line["user"], line["evalset"]) for line in ends} == {
            (REQUEST_ID, carol.pk, "handbook")
        }
        asked = [line for web in webs for line in json_lines(web.log) if line["logger"] == "fairpool.request"]
        assert Counter(line["request_id"] for line in asked)[REQUEST_ID] == 8

        # Each server sums up its own two processes.
        saved = 'fairpool_requests_total{method="POST",route="judging:desk-save",status="200"}'
        told = [figures(f"{web.url}/metrics", **TOKEN) for web in webs]
        saves = sum(line.get("route") == "judging:desk-save" for line in asked)
        assert sum(item[saved] for item in told) == saves >= 24
        assert told[0]["fairpool_workers_alive"] >= 2
        assert told[0]["fairpool_queue_length"] == 0
        assert told[0]['fairpool_database_connections{state="idle"}'] >= 1
        by_second = figures(f"http://127.0.0.1:{port}/metrics")
        done = [value for name, value in by_second.items() if name.startswith("fairpool_job_seconds_count")]
        assert sum(done) == sum(line["logger"] == "fairpool.job" for line in json_lines(workers[1].log))

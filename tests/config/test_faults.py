"""Postgres ends a connection, a worker is killed, the broker is away, the disk is full: in the middle of each long act.

A lock that the test holds keeps an act in its middle for as long as the test wants.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from config.embedded.home import free_port
from evalsets.models import Job, Upload
from evalsets.services.jobs import retry_job
from judging.models import Judgment
from judging.services.import_uploads import TASK as IMPORT
from judging.services.import_uploads import receive_upload
from labels.models import Release, ReleaseQuestion
from labels.services.publishing import publish_release
from pooling.models import Pool, PoolQuestion, PoolRun, Ranking, Run
from pooling.services.pool_jobs import TASK as BUILD_POOL
from tests.config.api import API, token_for
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.batches import batch_of
from tests.judging.test_batch_over_http import Browser
from tests.labels.builders import judge
from tests.servers import running_web
from tests.waiting import wait_until

pytestmark = [pytest.mark.kill, pytest.mark.django_db(transaction=True)]

PUBLISH = "labels.publish_release"


@contextlib.contextmanager
def locked(table: str, mode: str = "SHARE ROW EXCLUSIVE") -> Iterator[None]:
    """Nobody else can write to the table inside this block, or with "ACCESS EXCLUSIVE" even read it."""
    link = psycopg.connect(**{**connection.get_connection_params(), "autocommit": False})
    with contextlib.closing(link):
        link.execute(f"LOCK TABLE {table} IN {mode} MODE")
        yield


def stuck() -> list[int]:
    """The Postgres processes that wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return [pid for (pid,) in cursor.fetchall()]


def end_connections(pids: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids])


def end_all_other_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def ended(job: Job) -> bool:
    job.refresh_from_db()
    return job.finished_at is not None


def send(browser: Browser, path: str, **fields: object) -> tuple[int, str]:
    browser.connection.request("POST", path, urllib.parse.urlencode(fields), browser.headers)
    response = browser.connection.getresponse()
    return response.status, response.read().decode()


# --- grades ---


def test_connections_ended_in_the_middle_of_a_grade(web, evalset, alice, carol) -> None:
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    browser = Browser(web.url, alice)
    save = reverse("judging:desk-save", args=["handbook", batch.pk])
    with contextlib.closing(browser.connection):
        pair = browser.post(reverse("judging:desk-next", args=["handbook", batch.pk]))["next"][0]["pair"]
        fields = {"pair": pair, "key": uuid.uuid4(), "as_user": alice.pk, "act": "grade:1"}
        with locked("judging_judgment"):
            browser.connection.request("POST", save, urllib.parse.urlencode(fields), browser.headers)
            wait_until(stuck)
            end_connections(stuck())
            response = browser.connection.getresponse()
            said = response.read().decode()
        assert response.status == 503
        assert "The database does not answer" in said
        assert response.headers["X-Request-ID"] in said
        assert not Judgment.objects.exists()

        end_all_other_connections()  # those that lie idle in the pool: the next request must not meet one
        for _ in range(2):  # the browser sends what was not confirmed again, here even twice
            assert send(browser, save, **fields)[0] == 200
    assert Judgment.objects.get().pair_id == pair


def test_connections_ended_in_the_middle_of_a_call_of_the_api(web, evalset, carol) -> None:
    address = urllib.parse.urlsplit(web.url).netloc
    headers = {"Authorization": f"Bearer {token_for(evalset, carol)}"}
    with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as program:
        with locked("pooling_pool", "ACCESS EXCLUSIVE"):
            program.request("GET", f"{API}/pools", headers=headers)
            wait_until(stuck)
            end_connections(stuck())
            response = program.getresponse()
            assert response.status == 503
            assert "The database does not answer" in json.load(response)["detail"]
        program.request("GET", f"{API}/pools", headers=headers)
        assert program.getresponse().status == 200


# --- jobs ---


@pytest.fixture
def jobs(evalset, alice, carol) -> Callable[[], dict[str, Job]]:
    """An import, a pool build and a publication, each waiting for a worker; made anew at each call."""
    [question] = make_questions(evalset, "q1")
    [chunk, _] = make_chunks(evalset, "c1", "c2")
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2"]})
    judge(question, chunk, 2, by=alice)
    file = SimpleUploadedFile("dense.trec", b"q1 Q0 c1 1 1 dense\n")
    upload = receive_upload(evalset=evalset, file=file, by=carol)
    whole = {
        IMPORT: {"kind": "run", "options": {}, "check": False},
        BUILD_POOL: {
            "name": "depth 10",
            "runs": [[run.pk, 10]],
            "strategy": "depth",
            "parameters": {},
            "question_filter": {},
            "extends": None,
            "seed": 1,
        },
        PUBLISH: {"notes": ""},
    }

    def waiting() -> dict[str, Job]:
        return {
            task: Job.objects.create(
                evalset=evalset,
                task=task,
                title=task,
                created_by=carol,
                upload=upload if task == IMPORT else None,
                parameters=parameters,
                created_at=timezone.now() - timedelta(minutes=1),
            )
            for task, parameters in whole.items()
        }

    return waiting


# The table that is written in the middle of each, and what there is when it is done: one run, pool, release more.
MIDDLE = {IMPORT: "pooling_ranking", BUILD_POOL: "pooling_poolquestion", PUBLISH: "labels_releasequestion"}
MADE = (Run, Ranking, Pool, PoolRun, PoolQuestion, Release, ReleaseQuestion)


def counts() -> list[int]:
    return [model.objects.count() for model in MADE]


def test_connections_ended_in_the_middle_of_each_job(jobs, worker, carol) -> None:
    for task, job in jobs().items():
        before = counts()
        with locked(MIDDLE[task]):
            retry_job(job=job, by=carol)
            wait_until(stuck)
            end_connections(stuck())
            wait_until(lambda job=job: ended(job))
        assert (job.state, job.can_retry) == ("failed", True)
        assert "Nothing was written" in job.error
        assert counts() == before
        retry_job(job=job, by=carol)
        wait_until(lambda job=job: ended(job))
        assert (job.state, job.attempt) == ("done", 2), job.error
        assert counts() != before


def test_worker_killed_in_the_middle_of_a_pool_and_a_publication(jobs, worker, carol) -> None:
    for task, job in jobs().items():
        if task == IMPORT:
            continue  # tests/judging/test_import_faults.py
        before = counts()
        with locked(MIDDLE[task]):
            retry_job(job=job, by=carol)
            wait_until(stuck)
            worker.kill()
        wait_until(lambda: not stuck())
        assert counts() == before
        Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))
        job.refresh_from_db()
        assert (job.state, job.can_retry) == ("lost", True)
        worker.start()
        retry_job(job=job, by=carol)
        wait_until(lambda job=job: ended(job))
        assert (job.state, job.attempt) == ("done", 2), job.error


# --- the broker ---


def test_without_a_broker_pages_work_and_jobs_wait(
    broker, static_root, tmp_path, jobs, evalset, alice, carol, worker
) -> None:
    nowhere = f"redis://127.0.0.1:{free_port(25000)}/0"
    job = jobs()[BUILD_POOL]
    with running_web(nowhere, tmp_path, static_root, ready_address="/health/") as web:
        lead = Browser(web.url, carol)
        with contextlib.closing(lead.connection):
            begun = time.monotonic()
            status, _ = send(lead, reverse("evalsets:job-retry", args=["handbook", job.pk]))
            assert (status, time.monotonic() - begun < 15) == (302, True)
            Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=1))
            page = get(lead, job.get_absolute_url())
            assert "No worker has picked this up" in page
            assert "Try again" in page
            assert "missing: broker" in get(lead, "/health/ready/", status=503)
            assert get(lead, "/e/handbook/")
    job.refresh_from_db()
    retry_job(job=job, by=carol)  # the broker is back
    wait_until(lambda: ended(job))
    assert (job.state, job.attempt) == ("done", 1), job.error


def get(browser: Browser, path: str, status: int = 200) -> str:
    browser.connection.request("GET", path, headers={**browser.headers, "Accept": "text/html"})
    response = browser.connection.getresponse()
    body = response.read().decode()
    assert response.status == status, body[:500]
    return body


# --- the disk ---


def multipart(content: bytes) -> tuple[bytes, str]:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="big.trec"\r\n\r\n'
    return head + content + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# Small files are received in memory and meet the full disk in the folder of uploads, large ones on the way there.
@pytest.mark.parametrize("megabytes", [2, 4])
def test_a_full_disk_is_said_and_keeps_nothing(megabytes, web, evalset, carol, tmp_path) -> None:
    lead = Browser(web.url, carol)
    body, form = multipart(b"q1 Q0 c1 1 1 dense\n" * (megabytes * 2**20 // 19))
    with contextlib.closing(lead.connection):
        get(lead, "/e/handbook/import/")
        [process] = children(web.pid)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
        headers = {**lead.headers, "Accept": "text/html", "Content-Type": form}
        lead.connection.request("POST", "/e/handbook/import/run/", body, headers)
        response = lead.connection.getresponse()
        page = response.read().decode()
        assert response.status == 507
        assert "File too large" in page
        assert (Upload.objects.count(), Job.objects.count()) == (0, 0)
        assert [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()] == []
        get(lead, "/e/handbook/import/")


@pytest.mark.parametrize("form", [False, True])
def test_a_full_disk_is_said_to_programs_that_are_still_sending(form, web, evalset, carol, tmp_path) -> None:
    body, kind = b"q1 Q0 c1 1 1 dense\n" * (8 * 2**20 // 19), "text/plain"
    if form:
        body, kind = multipart(body)
    headers = {"Authorization": f"Bearer {token_for(evalset, carol)}", "Content-Type": kind}
    program = http.client.HTTPConnection(urllib.parse.urlsplit(web.url).netloc, timeout=60)
    with contextlib.closing(program):
        [process] = children(web.pid)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (2**20, resource.RLIM_INFINITY))
        program.request("POST", f"{API}/imports/run", body, headers)
        response = program.getresponse()
        said = json.load(response)
        assert (response.status, response.headers["Content-Type"]) == (507, "application/problem+json")
        assert said["detail"].startswith(
            "The server cannot keep the file: File too large. Nothing of it was kept."
        )
        assert (Upload.objects.count(), Job.objects.count()) == (0, 0)
        assert [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()] == []
        resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        program.request(
            "POST", f"{API}/imports/run", b"q1 Q0 c1 1 1 dense\n", {**headers, "Content-Type": "text/plain"}
        )
        assert program.getresponse().status == 202


def test_a_folder_that_cannot_be_written_is_said(settings, tmp_path, evalset, carol, client_for) -> None:
    settings.MEDIA_ROOT = tmp_path / "not-a-folder"
    settings.MEDIA_ROOT.write_text("")
    upload = SimpleUploadedFile("dense.trec", b"q1 Q0 c1 1 1 dense\n")
    response = client_for(carol).post("/e/handbook/import/run/", {"file": upload})
    assert response.status_code == 507
    assert "The server cannot keep the file" in response.content.decode()
    assert str(tmp_path) not in response.content.decode()
    assert (Upload.objects.count(), Job.objects.count()) == (0, 0)


def test_a_full_disk_leaves_an_export_as_it_was(tmp_path, evalset, alice, carol) -> None:
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 2, by=alice)
    publish_release(evalset=evalset, by=carol)
    target = tmp_path / "labels.qrels"
    target.write_text("what was there")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))
    try:
        with pytest.raises(CommandError) as refused:
            call_command("export", "handbook", "--output", str(target))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refused.value.returncode == 3
    assert "File too large. Nothing of it was kept." in str(refused.value)
    assert target.read_text() == "what was there"
    assert [path.name for path in tmp_path.iterdir() if "labels" in path.name] == ["labels.qrels"]

"""Files in over the API, and the jobs that read them."""

from __future__ import annotations

import gzip
import socket
import urllib.parse

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evalsets.models import Chunk, Job, Question, Upload
from judging.models import Judgment
from judging.tasks import import_upload
from pooling.models import Ranking, Run
from tests.config.api import ApiClient, token_for
from tests.config.test_api import assert_problem
from tests.conftest import make_chunks, make_questions

# A job reports over a second connection, so its row must be committed.
committed = pytest.mark.django_db(transaction=True)

RUN = b"q1 Q0 c1 1 2.0 bm25\nq1 Q0 c2 2 1.0 bm25\n"


@pytest.fixture
def lead(evalset, carol) -> ApiClient:
    return ApiClient(token_for(evalset, carol, name="ci"))


def push(client: ApiClient, address: str, body: bytes, **options) -> dict:
    """Send the body, let a worker do the job, and return the job as the API tells it afterwards."""
    response = client.call("post", f"/imports/{address}", body, **{"content_type": "text/plain", **options})
    assert response.status_code == 202, response.content
    job = response.json()
    assert job["state"] == "waiting"
    import_upload(job["id"])
    assert response["Location"] == f"/api/v1/evalsets/handbook/jobs/{job['id']}"
    return client.get(response["Location"]).json()


@committed
def test_everything_goes_in(evalset, lead) -> None:
    questions = b'{"_id": "q1", "text": "What is q1?"}\n'
    job = push(lead, "questions", questions)
    assert (job["state"], job["result"]["new"], job["result"]["written"]) == ("done", 1, True)
    assert job["begun_by"] == "token ci of Carol"
    push(
        lead,
        "chunks?file_name=corpus.jsonl",
        b'{"_id": "c1", "text": "One."}\n{"_id": "c2", "text": "Two."}\n',
    )
    push(lead, "run?system=bm25&k=2&stage=candidates&config=%7B%22k1%22:0.9%7D", RUN)
    push(lead, "qrels", b"q1 0 c1 2\n")
    assert (Question.objects.count(), Chunk.objects.count(), Judgment.objects.count()) == (1, 2, 1)
    run = Run.objects.get()
    assert (run.name, run.k, run.stage, run.config) == ("bm25", 2, "candidates", {"k1": 0.9})
    assert len(Ranking.objects.get().chunk_ids) == 2
    assert {event.actor for event in evalset.events.exclude(verb="token-made")} == {"token ci of Carol"}
    assert list(Upload.objects.order_by("pk").values_list("original_name", flat=True))[:2] == [
        "questions",
        "corpus.jsonl",
    ]


@committed
def test_the_same_file_again_changes_nothing(evalset, lead) -> None:
    make_questions(evalset, "q1")
    push(lead, "run", RUN)
    again = push(lead, "run", RUN)
    assert (again["state"], again["result"]["written"], again["result"]["new"]) == ("done", False, 0)
    assert Run.objects.count() == 1


@committed
def test_a_check_writes_nothing(evalset, lead) -> None:
    make_questions(evalset, "q1")
    job = push(lead, "run?check=true", RUN)
    assert (job["state"], job["result"]["written"], job["result"]["new"]) == ("done", False, 1)
    assert not Run.objects.exists()


@committed
def test_faults_come_with_line_numbers(evalset, lead) -> None:
    make_questions(evalset, "q1")
    wrong = b"q1 Q0 c1 1 2.0 bm25\nq1 Q0 c2 2 high bm25\n"
    job = push(lead, "run", wrong)
    assert job["state"] == "failed"
    document = assert_problem(lead.call("get", f"/jobs/{job['id']}/result"), 422, "cannot be imported")
    [fault] = document["report"]["faults"]
    assert fault["examples"][0]["line"] == 2
    assert fault["examples"][0]["value"] == "high"
    assert job["result"]["faults"] == document["report"]["faults"]
    checked = push(lead, "run?check=true", wrong)
    assert checked["state"] == "done"
    assert lead.call("get", f"/jobs/{checked['id']}/result").json()["faults"] == document["report"]["faults"]


@committed
def test_a_form_with_a_file_and_options(evalset, lead) -> None:
    make_questions(evalset, "q1")
    file = SimpleUploadedFile("../../etc/ru\x07n.trec.gz", gzip.compress(RUN))
    response = lead.post(
        f"{lead.base}/imports/run", {"file": file, "system": "dense", "config": '{"model": "e5"}'}
    )
    assert response.status_code == 202, response.content
    import_upload(response.json()["id"])
    run = Run.objects.get()
    assert (run.system.name, run.config) == ("dense", {"model": "e5"})
    assert Upload.objects.get().original_name == "run.trec.gz"


@committed
@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "application/octet-stream", "application/json"]
)
def test_the_body_is_the_file_whatever_its_type_is_called(content_type, evalset, lead) -> None:
    make_questions(evalset, "q1")
    assert push(lead, "run", RUN, content_type=content_type)["result"]["new"] == 1


@pytest.mark.parametrize(
    ("address", "field", "message"),
    [
        ("run?stage=last", "stage", "not one of the available choices"),
        ("run?check=perhaps", "check", "Write true or false"),
        ("run?k=99999999999", "k", "less than or equal to 1000000"),
        ("run?k=0", "k", "greater than or equal to 1"),
        ("run?config=%5B%5D", "config", "JSON object"),
        ("run?unknown_question=skip", "unknown_question", "no such option"),
        ("run?file_name=%00", "file_name", "Null characters"),
        ("verdicts", "assessor", "required"),
        ("verdicts?assessor=victor", "assessor", "not one of the available choices"),
        ("qrels?negative=maybe", "negative", "not one of the available choices"),
    ],
)
def test_wrong_options(address, field, message, evalset, victor, lead) -> None:
    response = lead.call("post", f"/imports/{address}", RUN, content_type="text/plain")
    document = assert_problem(response, 422)
    [error] = [item for item in document["errors"] if item["field"] == field]
    assert message in error["message"]
    assert not Job.objects.exists()


def test_no_file(lead) -> None:
    assert_problem(lead.call("post", "/imports/run", b"", content_type="text/plain"), 422, "Send the file")
    assert_problem(lead.post(f"{lead.base}/imports/run", {"system": "x"}), 422, "Send the file")
    assert_problem(lead.call("post", "/imports/nothing", RUN, content_type="text/plain"), 404)


def test_a_file_larger_than_what_may_be_held_in_memory(lead, settings) -> None:
    large = b"# a comment\n" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 10)
    assert lead.call("post", "/imports/run", large, content_type="text/plain").status_code == 202
    assert (
        lead.post(f"{lead.base}/imports/run", {"file": SimpleUploadedFile("a.trec", large)}).status_code
        == 202
    )
    assert list(Upload.objects.values_list("size", flat=True)) == [len(large)] * 2


def test_a_form_that_cannot_be_read(lead) -> None:
    response = lead.call("post", "/imports/run", RUN, content_type="multipart/form-data")
    assert_problem(response, 400, "Invalid boundary")


def test_a_file_over_the_limit_is_refused(evalset, lead, settings) -> None:
    settings.UPLOAD_LIMIT = 20
    assert_problem(lead.call("post", "/imports/run", RUN, content_type="text/plain"), 413, "the limit is")
    assert not Upload.objects.exists()


@committed
def test_a_bomb_is_stopped(evalset, lead, settings) -> None:
    make_questions(evalset, "q1")
    settings.DECOMPRESSED_LIMIT = 1000
    job = push(lead, "run", gzip.compress(RUN * 1000))
    assert job["state"] == "failed"
    assert "1,000" in job["error"]


def test_jobs_are_listed_cancelled_and_tried_again(evalset, carol, lead) -> None:
    make_questions(evalset, "q1")
    first = lead.call("post", "/imports/run", RUN, content_type="text/plain").json()
    second = lead.call("post", "/imports/run", RUN, content_type="text/plain").json()
    listed = lead.call("get", "/jobs?per_page=1").json()
    assert ([item["id"] for item in listed["items"]], listed["next"]) == ([second["id"]], 2)
    listed = lead.call("get", "/jobs?per_page=1&page=2").json()
    assert ([item["id"] for item in listed["items"]], listed["next"]) == ([first["id"]], None)
    assert_problem(lead.call("get", f"/jobs/{first['id']}/result"), 409, "waiting")
    assert lead.call("post", f"/jobs/{first['id']}/cancel").json()["state"] == "cancelled"
    assert_problem(lead.call("post", f"/jobs/{first['id']}/cancel"), 409, "ended already")
    assert lead.call("post", f"/jobs/{first['id']}/retry").json()["state"] == "waiting"
    assert_problem(lead.call("post", f"/jobs/{first['id']}/retry"), 409)


# Over a real server: what only the wire can show.


def _raw(web, token: str, head: str, *blocks: bytes) -> bytes:
    """The answer to a request written by hand; the connection is closed for writing after the last block."""
    address = urllib.parse.urlsplit(web.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as link:
        lines = (
            "POST /api/v1/evalsets/handbook/imports/run HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        )
        link.sendall(f"{lines}Authorization: Bearer {token}\r\n{head}\r\n\r\n".encode())
        for block in blocks:
            link.sendall(block)
        link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(65536), b""))


def test_a_body_in_chunks_and_one_that_breaks_off(web, evalset, carol) -> None:
    make_questions(evalset, "q1")
    make_chunks(evalset, "c1")
    token = token_for(evalset, carol)
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (RUN[:15], RUN[15:])]
    answer = _raw(web, token, "Transfer-Encoding: chunked", *chunks, b"0\r\n\r\n")
    assert b" 202 " in answer
    with Upload.objects.get().file.open() as file:
        assert file.read() == RUN
    broken = _raw(web, token, f"Content-Length: {len(RUN) + 10}", RUN)
    assert b" 202 " not in broken
    assert Upload.objects.count() == 1

"""Web server and worker that share no folder, but an S3-compatible store: the one that S3_BUCKET and S3_… name.

Without S3_BUCKET this is skipped. docs/operations.md says how to try it against a store on this machine.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from config.embedded.home import free_port
from evalsets.models import Question, Upload
from tests.config.api import token_for
from tests.config.test_pgbouncer import Program
from tests.servers import running_web, running_worker
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not os.environ.get("S3_BUCKET"), reason="S3_BUCKET names no store to try this with"),
]

FILE = b"".join(b'{"_id": "q%d", "text": "What is q%d?"}\n' % (number, number) for number in range(3000))


@pytest.fixture
def nowhere() -> dict[str, str]:
    """Settings of a store that does not answer."""
    return {"S3_ENDPOINT_URL": f"http://127.0.0.1:{free_port(27000)}"}


@pytest.fixture
def folders(tmp_path) -> list[dict[str, str]]:
    """Two processes' own folders for temporary files."""
    found = [tmp_path / name for name in ("web-tmp", "worker-tmp")]
    for folder in found:
        folder.mkdir()
    return [{"TMPDIR": str(folder), "UPLOAD_TEMP_DIR": str(folder)} for folder in found]


def test_what_one_receives_another_reads(
    broker, static_root, tmp_path, folders, evalset, carol, nowhere
) -> None:
    at_web, at_worker = folders
    token = token_for(evalset, carol)
    connection.close()
    with running_web(broker, tmp_path, static_root, **at_web) as web:
        program = Program(web.url, token)
        with running_worker(broker, tmp_path, "away", **at_worker, **nowhere):
            job = json.loads(program.call("POST", "/imports/questions", FILE, status=202))["id"]
            wait_until(lambda: json.loads(program.call("GET", f"/jobs/{job}"))["finished_at"])
            told = json.loads(program.call("GET", f"/jobs/{job}"))
            assert told["state"] == "failed"
            assert told["error"].startswith(
                "The file that was sent cannot be fetched: the store of files does"
            )
            assert not Question.objects.exists()
        with running_worker(broker, tmp_path, **at_worker):
            program.call("POST", f"/jobs/{job}/retry")
            wait_until(lambda: json.loads(program.call("GET", f"/jobs/{job}"))["finished_at"])
            assert json.loads(program.call("GET", f"/jobs/{job}/result"))["new"] == 3000
    for folder in folders:
        assert [path for path in Path(folder["TMPDIR"]).rglob("*") if path.is_file()] == []

    upload = Upload.objects.get()
    name = upload.file.name
    assert name
    assert default_storage.exists(name)
    Upload.objects.update(created_at=timezone.now() - timedelta(days=31))
    call_command("clean_uploads")
    assert not default_storage.exists(name)


def test_a_store_that_is_away_is_said(broker, static_root, tmp_path, evalset, carol, nowhere) -> None:
    token = token_for(evalset, carol)
    connection.close()
    with running_web(broker, tmp_path, static_root, **nowhere) as web:
        said = json.loads(Program(web.url, token).call("POST", "/imports/questions", FILE, status=507))
    assert said["detail"].startswith("The server cannot keep the file: the store of files does not answer.")
    assert not Upload.objects.exists()


def test_cleaning_up_says_what_the_store_says(evalset, carol, monkeypatch) -> None:
    monkeypatch.setattr(default_storage, "_bucket", None)
    monkeypatch.setattr(default_storage, "bucket_name", "there-is-no-such-bucket")
    with pytest.raises(CommandError, match="The store of uploads says: The specified bucket does not exist"):
        call_command("clean_uploads")

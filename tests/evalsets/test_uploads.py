"""Files that were sent, when they are old; and such as nobody knows any more."""

from __future__ import annotations

import io
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from evalsets.models import Job, Upload
from evalsets.services.jobs import retry_job
from judging.services.import_uploads import TASK, receive_upload
from judging.tasks import import_upload
from tests.config.api import ApiClient, token_for
from tests.config.test_api import assert_problem

OLD = timedelta(days=40)


def sent(evalset, by, *, days: int, ended: bool = True) -> Job:
    """A job over a file that was sent so many days ago."""
    file = SimpleUploadedFile("questions.jsonl", b'{"_id": "q1", "text": "What?"}\n')
    upload = receive_upload(evalset=evalset, file=file, by=by)
    then = timezone.now() - timedelta(days=days)
    Upload.objects.filter(pk=upload.pk).update(created_at=then)
    return Job.objects.create(
        evalset=evalset, task=TASK, title="Import", created_by=by, upload=upload, finished_at=then if ended else None,
        created_at=then, cancel_requested_at=then if ended else None,
        parameters={"kind": "questions", "options": {}, "check": False},
    )  # fmt: skip


def clean(*options: str) -> dict:
    out = io.StringIO()
    call_command("clean_uploads", "--json", *options, stdout=out)
    return json.loads(out.getvalue())


def stored(settings) -> list[Path]:
    return sorted(path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file())


@pytest.mark.django_db(transaction=True)
def test_old_files_go_and_what_may_be_needed_stays(settings, evalset, carol) -> None:
    old, new, waits = (
        sent(evalset, carol, days=31),
        sent(evalset, carol, days=29),
        sent(evalset, carol, days=90, ended=False),
    )
    folder = Path(waits.upload.file.path).parent
    stray, fresh_stray, others = (
        folder / name for name in ("upload-left", "upload-being-received", "notes.txt")
    )
    for path in (stray, fresh_stray, others):
        path.write_text("x")
    for path in (stray, others):
        long_ago = (timezone.now() - OLD).timestamp()
        os.utime(path, (long_ago, long_ago))

    told = {"uploads": 1, "strays": 1, "size": old.upload.size}
    assert clean("--check") == {**told, "deleted": False}
    assert len(stored(settings)) == 6
    assert clean() == {**told, "deleted": True}
    kept = {Path(new.upload.file.path), Path(waits.upload.file.path), fresh_stray, others}
    assert set(stored(settings)) == kept
    assert clean() == {"uploads": 0, "strays": 0, "size": 0, "deleted": True}

    # The upload is known still; to try its job again says what became of the file.
    retry_job(job=old, by=carol)
    import_upload(old.pk)
    old.refresh_from_db()
    assert (old.state, old.can_retry) == ("failed", True)
    assert old.error == "The file was deleted when old uploads were cleaned up. Send it again."
    assert str(old.upload) == "questions.jsonl"


def test_days_that_are_none(db) -> None:
    with pytest.raises(CommandError, match="--days is a whole number from 0 to 36500; got -1"):
        call_command("clean_uploads", "--days", "-1")


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_read_is_said_and_the_job_can_be_tried_again(evalset, carol) -> None:
    job = sent(evalset, carol, days=0, ended=False)
    path = Path(job.upload.file.path)
    path.rename(path.with_suffix(".away"))
    import_upload(job.pk)
    job.refresh_from_db()
    assert (job.state, job.can_retry) == ("failed", True)
    assert job.error.startswith("The file that was sent cannot be fetched: No such file or directory.")
    path.with_suffix(".away").rename(path)
    retry_job(job=job, by=carol)
    import_upload(job.pk)
    job.refresh_from_db()
    assert job.state == "done"


def test_the_api_says_that_a_folder_cannot_be_written(settings, tmp_path, evalset, carol) -> None:
    settings.MEDIA_ROOT = tmp_path / "not-a-folder"
    settings.MEDIA_ROOT.write_text("")
    program = ApiClient(token_for(evalset, carol))
    answer = program.call("post", "/imports/run", b"q1 Q0 c1 1 1 dense\n", content_type="text/plain")
    said = assert_problem(answer, 507)
    assert said["detail"].startswith("The server cannot keep the file: ")
    assert str(tmp_path) not in said["detail"]
    assert not Upload.objects.exists()

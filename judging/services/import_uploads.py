"""Imports from the page: a file that was sent is checked first and written when a person says so, both as jobs."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.urls import reverse

from evalsets.errors import CannotStore
from evalsets.models import EvalSet, Job, Upload, User
from evalsets.progress import Progress
from evalsets.services.jobs import JobOutcome, start_job
from evalsets.storing import cannot_keep, store_faults, why
from judging.services.import_judge import import_judge
from judging.services.import_qrels import import_qrels, import_verdicts
from pooling.services.importing import import_chunks, import_questions, import_run

logger = logging.getLogger(__name__)

IMPORTERS: dict[str, Callable[..., Any]] = {
    "questions": import_questions,
    "chunks": import_chunks,
    "run": import_run,
    "qrels": import_qrels,
    "verdicts": import_verdicts,
    "judge": import_judge,
}
TASK = "judging.tasks.import_upload"


@transaction.atomic
def receive_upload(*, evalset: EvalSet, file: UploadedFile, by: User) -> Upload:
    """Keep a file that was sent. Its own name is only a label; where it is stored is named by us.

    Raises CannotStore when the disk is full or the store does not answer; nothing of the file stays then.
    """
    upload = Upload(
        evalset=evalset,
        original_name=Path(file.name or "file").name[:255],
        size=file.size or 0,
        created_by=by,
    )
    name = f"upload-{uuid.uuid4().hex}"
    try:
        upload.file.save(name, file, save=False)
    except store_faults() as fault:
        storage = upload.file.storage
        with contextlib.suppress(*store_faults()):
            storage.delete(upload.file.field.generate_filename(upload, name))
        logger.exception("An upload cannot be kept")
        raise CannotStore(cannot_keep(fault)) from fault
    upload.save()
    return upload


def start_import(
    *, evalset: EvalSet, upload: Upload, kind: str, options: dict[str, Any], check: bool, by: User
) -> Job:
    """Begin to check the upload, or to write it. `options` are keyword arguments of the kind's import service."""
    verb = "Check" if check else "Import"
    return start_job(
        evalset=evalset,
        task=TASK,
        title=f"{verb} {upload.original_name} ({kind})"[:300],
        by=by,
        upload=upload,
        parameters={"kind": kind, "options": options, "check": check},
    )


def import_upload(job: Job, progress: Progress) -> JobOutcome:
    """The work of an import job: the report of checking or writing its upload."""
    assert job.upload is not None
    kind, options = job.parameters["kind"], job.parameters["options"]
    with local_copy(job.upload) as path:
        report = IMPORTERS[kind](
            evalset=job.evalset,
            source=path,
            file_name=job.upload.original_name,
            by=job.created_by,
            check=job.parameters["check"],
            progress=progress,
            **options,
        )
    return JobOutcome(report.as_json(), reverse("judging:import-report", args=[job.evalset.slug, job.pk]))


@contextmanager
def local_copy(upload: Upload) -> Iterator[Path]:
    """The upload as a file on this machine; one from a shared store is fetched for the time of its use.

    Raises CannotStore where it cannot be had; the job can be tried again then.
    """
    if not upload.file:
        raise CannotStore("The file was deleted when old uploads were cleaned up. Send it again.")
    with ExitStack() as stack:
        try:
            path = _on_this_machine(upload, stack)
        except store_faults() as fault:
            logger.exception("An upload cannot be fetched")
            raise CannotStore(
                f"The file that was sent cannot be fetched: {why(fault)}. Nothing was written. "
                "Tell whoever runs this server, and try again then."
            ) from fault
        yield path


def _on_this_machine(upload: Upload, stack: ExitStack) -> Path:
    try:
        path = Path(upload.file.path)
    except NotImplementedError:  # the store is no folder
        copy = tempfile.NamedTemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 (the stack closes it)
        stack.enter_context(copy)
        with upload.file.open("rb") as stored:
            shutil.copyfileobj(stored, copy)
        copy.flush()
        return Path(copy.name)
    path.open("rb").close()  # that it can be read is found out here
    return path

"""Cleaning up files that were sent: they are needed only until their import is done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.core.files.storage import Storage, default_storage
from django.db.models import Exists, OuterRef, QuerySet

from evalsets.models import Job, Upload

FOLDER = "uploads"
OUR_NAMES = "upload-"


@dataclass(frozen=True)
class Cleaned:
    """How many files were deleted, of uploads and such as belong to none; `size` in bytes of the former."""

    uploads: int
    strays: int
    size: int


def clean_uploads(*, before: datetime, check: bool = False) -> Cleaned:
    """Delete the files that were sent before that time and whose jobs have all ended; with `check` only count them.

    The row of an upload stays: jobs and reports name it. So go files that belong to no upload, which a process left
    that was killed while it received them.
    """
    old = _old_uploads(before)
    known = set(Upload.objects.exclude(file="").values_list("file", flat=True))
    strays = [
        name
        for name in _names(default_storage, FOLDER)
        if name not in known and default_storage.get_modified_time(name) < before
    ]
    cleaned = Cleaned(len(old), len(strays), sum(upload.size for upload in old))
    if not check:
        for upload in old:
            upload.file.delete(save=False)
            Upload.objects.filter(pk=upload.pk).update(file="")
        for name in strays:
            default_storage.delete(name)
    return cleaned


def _old_uploads(before: datetime) -> QuerySet[Upload]:
    unfinished = Job.objects.filter(upload=OuterRef("pk"), finished_at__isnull=True)
    return Upload.objects.filter(~Exists(unfinished), created_at__lt=before).exclude(file="")


def _names(storage: Storage, folder: str) -> Iterator[str]:
    """The files of our own making in the folder and those below it, by their names in the store."""
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{file}" for file in files if file.startswith(OUR_NAMES))
    for inner in folders:
        yield from _names(storage, f"{folder}/{inner}")

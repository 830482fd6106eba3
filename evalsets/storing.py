"""What can go wrong where files that were sent are kept: on a disk, or in an S3-compatible store."""

from __future__ import annotations

import contextlib
import errno

from django.conf import settings
from django.http import HttpRequest

# A full or write-protected disk.
DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES}


def store_faults() -> tuple[type[Exception], ...]:
    """The exceptions by which the store of uploads says that it cannot keep or give a file."""
    if not settings.S3_BUCKET:
        return (OSError,)
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return OSError, Boto3Error, BotoCoreError, ClientError


def why(fault: Exception) -> str:
    """What a fault of the store says, without addresses and paths of the server."""
    if isinstance(fault, OSError):
        return fault.strerror or "it cannot be written"
    answer = getattr(fault, "response", None)
    if answer:  # the store's own words
        return str(answer.get("Error", {}).get("Message") or answer.get("Error", {}).get("Code"))
    return "the store of files does not answer"


def cannot_keep(fault: Exception) -> str:
    """What to tell who sent a file, and what to do."""
    return (
        f"The server cannot keep the file: {why(fault)}. Nothing of it was kept. "
        "Tell whoever runs this server, and send it again then."
    )


def read_to_the_end(request: HttpRequest) -> None:
    """Throw away what is still being sent: who is still sending reads no answer."""
    # Django takes a body without a length for an empty one; a server that marks the end of any says so.
    body = request.META["wsgi.input"] if request.META.get("wsgi.input_terminated") else request
    with contextlib.suppress(OSError):
        while body.read(2**16):
            pass

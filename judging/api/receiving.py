"""A file as a caller sends it: as the body itself, or as the field `file` of a form. Neither is ever held in memory."""

from __future__ import annotations

from typing import BinaryIO, cast

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest, QueryDict
from django.template.defaultfilters import filesizeformat
from ninja.errors import HttpError

from evalsets.errors import BadInput

BLOCK = 1024 * 1024
NO_FILE = "Send the file as the body of the request, or as the field “file” of a multipart form."


def said_with(request: HttpRequest) -> QueryDict:
    """What the address says and, where the file comes in a form, the form's other fields."""
    said = request.GET.copy()
    if _is_form(request):
        said.update(request.POST)
    return said


def received(request: HttpRequest) -> UploadedFile:
    """The file that came with the request. BadInput where there is none."""
    if not _is_form(request):
        return _body(request)
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        raise BadInput(NO_FILE)
    return file


def _is_form(request: HttpRequest) -> bool:
    return request.content_type == "multipart/form-data"


def _body(request: HttpRequest) -> UploadedFile:
    """The body in a file of its own, which goes away when it is closed."""
    said_length = request.META.get("CONTENT_LENGTH") or ""
    length = int(said_length) if said_length.isdecimal() else 0
    # A body sent in chunks has no length. The server marks where it ends; Django would take it for an empty one.
    chunked = not length and request.META.get("wsgi.input_terminated")
    source = cast(BinaryIO, request.META["wsgi.input"] if chunked else request)
    file = TemporaryUploadedFile("body", request.content_type, 0, None)
    size = 0
    while block := source.read(BLOCK):
        size += len(block)
        if size > settings.UPLOAD_LIMIT:
            raise HttpError(
                413, f"The file is larger than the limit of {filesizeformat(settings.UPLOAD_LIMIT)}."
            )
        file.write(block)
    if length and size < length:
        raise HttpError(400, f"The connection ended after {size:,} of {length:,} bytes; nothing was kept.")
    if not size:
        raise BadInput(NO_FILE)
    file.size = size
    file.seek(0)
    return file

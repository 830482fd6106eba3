"""Errors as problem details (RFC 9457). An import's faults and other reports come along as `report`."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from pydantic import Field

from evalsets.errors import BadInput, CannotStore, Refused
from evalsets.storing import DISK_FAULTS, cannot_keep, read_to_the_end

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class FieldError(Schema):
    field: str = Field(description="Where, such as `runs.0.k`.", examples=["runs.0.k"])
    message: str = Field(examples=["Input should be greater than or equal to 1"])


class Problem(Schema):
    """What went wrong, in the form of RFC 9457."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(description="The name of the status.", examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(
        description="What is wrong, and what would be right, for people.",
        examples=["handbook has no run 'bm52'. Known: bm25, dense."],
    )
    errors: list[FieldError] | None = Field(None, description="The fields of the request that are wrong.")
    report: dict[str, Any] | None = Field(
        None,
        description="The whole account where there is one, such as an import's faults with line numbers.",
    )


def problem(status: int, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> HttpResponse:
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JsonResponse({**document, **more}, status=status, content_type=MEDIA_TYPE, headers=headers)


def not_found(request: HttpRequest) -> HttpResponse:
    """The answer to any address under /api/ that is none."""
    return problem(404, f"There is nothing at {request.path}. /api/v1/openapi.json lists what there is.")


def answer_errors_of(api: NinjaAPI) -> None:
    """Let `api` answer every exception as a problem."""

    @api.exception_handler(BadInput)
    def _bad_input(request: HttpRequest, error: BadInput) -> HttpResponse:
        more = {} if error.report is None else {"report": error.report}
        return problem(422, str(error), **more)

    @api.exception_handler(Refused)
    def _refused(request: HttpRequest, error: Refused) -> HttpResponse:
        return problem(409, str(error))

    @api.exception_handler(CannotStore)
    def _not_stored(request: HttpRequest, error: CannotStore) -> HttpResponse:
        return problem(507, str(error))

    @api.exception_handler(ValidationError)
    def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        errors = [{"field": _place(item["loc"]), "message": item["msg"]} for item in error.errors]
        said = "; ".join(f"{item['field']}: {item['message'].rstrip('.')}" for item in errors[:5])
        return problem(422, f"The request is not as described: {said}.", errors=errors)

    @api.exception_handler(AuthenticationError)
    def _unknown_caller(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        why = "" if str(error) == "Unauthorized" else f"{error} "
        detail = f"{why}Send a token of this eval set in the header “Authorization: Bearer …”."
        return problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="Fairpool"'})

    @api.exception_handler(PermissionDenied)
    def _forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
        return problem(403, str(error))

    @api.exception_handler(Http404)
    def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
        said = str(error)
        if not said or said.endswith("matches the given query."):  # Django's own words name a class
            said = f"There is nothing at {request.path}."
        return problem(404, said)

    @api.exception_handler(Throttled)
    def _throttled(request: HttpRequest, error: Throttled) -> HttpResponse:
        detail = f"Too many wrong tokens came from this address. Try again in {error.wait} seconds."
        return problem(429, detail, headers={"Retry-After": str(error.wait)})

    @api.exception_handler(HttpError)
    def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
        if isinstance(error.__cause__, ValueError | RecursionError):  # of the JSON parser: it says where
            return problem(
                400,
                f"The body is not JSON: {error.__cause__}. Send one JSON document in UTF-8, as "
                "/api/v1/openapi.json describes it.",
            )
        return problem(error.status_code, str(error))

    @api.exception_handler(RequestDataTooBig)
    def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
        return problem(413, "The body is too large for JSON; files go to /imports/.")

    @api.exception_handler(SuspiciousOperation)
    def _suspicious(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
        return problem(400, f"The request cannot be read: {error}")

    @api.exception_handler(MultiPartParserError)
    def _broken_form(request: HttpRequest, error: MultiPartParserError) -> HttpResponse:
        return problem(400, f"The form cannot be read: {error}")

    @api.exception_handler(OperationalError)
    @api.exception_handler(InterfaceError)
    def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        return problem(503, "The database does not answer. Nothing was half-done; try again in a moment.")

    @api.exception_handler(UnreadablePostError)
    def _cut_off(request: HttpRequest, error: UnreadablePostError) -> HttpResponse:
        return problem(400, "The connection ended before the whole request was here; nothing was kept.")

    @api.exception_handler(OSError)
    def _disk(request: HttpRequest, error: OSError) -> HttpResponse:
        if error.errno not in DISK_FAULTS:
            return _fault(request, error)
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        read_to_the_end(request)
        return problem(507, cannot_keep(error))

    @api.exception_handler(Exception)
    def _fault(request: HttpRequest, error: Exception) -> HttpResponse:
        logger.exception("%s %s failed", request.method, request.path, exc_info=error)
        return problem(500, "It failed through a fault of ours; the log has the details.")


def _place(location: tuple[str | int, ...]) -> str:
    """("body", "data", "runs", 0, "k") as runs.0.k: where it came from and our name for the whole are left out."""
    inside = location[2:] if location[0] == "body" else location[1:]
    return ".".join(map(str, inside)) or str(location[0])

"""Releases and their files. An assessor's token is told that a release was made and how large it is, and no more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import condition
from ninja import Field, Path, Query, Router, Schema
from ninja.responses import Status

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.inputs import Input, Name, Text
from evalsets.api.jobs import JobOut, accepted
from evalsets.api.paging import PageOf, Paging, page_of
from labels.exports.formats import FORMATS
from labels.models import Release
from labels.services.publishing import start_publishing

router = Router(tags=["Releases"])


class ReleaseBrief(Schema):
    number: int = Field(examples=[3])
    hash: str = Field(description="SHA-256 over all that is frozen.")
    published_at: datetime
    questions: int
    labels: int
    relevant: int


class ReleaseFile(Schema):
    format: str = Field(examples=["qrels"])
    name: str = Field(examples=["handbook-r3-qrels.txt"])
    purpose: str
    url: str = Field(examples=["/api/v1/evalsets/handbook/releases/3/files/qrels"])


class ReleaseOut(ReleaseBrief):
    """A release. Of what is below `labels`, an assessor's token sees nulls: it names systems and others' grades."""

    notes: str | None
    published_by: str | None
    threshold: int
    gain: str
    scale: list[Any]
    judges: list[str] = Field(
        description="Outside judges whose grades are labels in it; `counts` says of how many."
    )
    counts: dict[str, Any] | None = Field(description="Labels by grade, contested, skipped only, classes, …")
    provenance: dict[str, Any] | None = Field(
        description="Pools, runs with their coverage, and the run it was born from."
    )
    files: list[ReleaseFile]
    page: str


class Publish(Input):
    notes: Text = Field("", description="What readers of the release should know.")
    judges: list[Name] = Field(
        [],
        max_length=100,
        description="Outside judges whose grades become labels where no person gave one; such labels are marked.",
    )


def _brief(release: Release) -> dict[str, Any]:
    return {
        "number": release.number,
        "hash": release.content_hash,
        "published_at": release.published_at,
        **{name: release.counts[name] for name in ("questions", "labels", "relevant")},
    }


@router.get("", auth=auth.member, response=PageOf[ReleaseBrief], url_name="release-list", summary="Releases")
def release_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The releases of the eval set, the latest first."""
    return page_of(request.auth.evalset.releases.all(), paging, _brief)


@router.post("", auth=auth.lead, response={202: JobOut}, url_name="release-new", summary="Publish a release")
def release_new(request: ApiRequest, response: HttpResponse, body: Publish) -> Status:
    """Freeze the labels as the next release, as a job. Where nothing has changed since the latest release, none is
    made: the job's `result` names that one and has `created` false."""
    asked = body.model_dump()
    return accepted(start_publishing(evalset=request.auth.evalset, by=request.auth.user, **asked), response)


def _release(request: HttpRequest, number: int) -> Release:
    releases = request.auth.evalset.releases.select_related("evalset", "published_by")  # type: ignore[attr-defined]
    release: Release = get_object_or_404(releases, number=number)
    return release


@router.get("/{int:number}", auth=auth.member, response=ReleaseOut, url_name="release", summary="A release")
def release_detail(request: ApiRequest, number: int) -> dict[str, Any]:
    """What a release holds, whom it is fair to, and its files."""
    release = _release(request, number)
    blind = request.auth.is_blind
    slug = release.evalset.slug
    return {
        **_brief(release),
        "threshold": release.threshold,
        "gain": release.gain,
        "scale": release.scale,
        "notes": None if blind else release.notes,
        "published_by": None if blind or not release.published_by else release.published_by.username,
        "judges": release.judges,
        "counts": None if blind else release.counts,
        "provenance": None if blind else release.provenance,
        "files": []
        if blind
        else [
            {
                "format": form.name,
                "name": form.file_name(release),
                "purpose": form.purpose,
                "url": reverse("api:release-file", args=[slug, number, form.name]),
            }
            for form in FORMATS.values()
        ],
        "page": release.get_absolute_url(),
    }


_FILE = {
    "responses": {
        200: {
            "description": "The file. The same release has the same bytes and the same ETag.",
            "headers": {"ETag": {"schema": {"type": "string"}}},
            "content": {form.content_type.partition(";")[0]: {"schema": {}} for form in FORMATS.values()},
        },
        304: {"description": "The caller has these bytes already, as its If-None-Match says."},
    }
}


@router.get(
    "/{int:number}/files/{name}",
    auth=auth.reader,
    url_name="release-file",
    summary="A file of a release",
    openapi_extra=_FILE,
)
def release_file(
    request: ApiRequest,
    number: int,
    name: str = Path(..., description="One of the formats that the release lists.", examples=list(FORMATS)),
) -> HttpResponseBase:
    """Stream a release as qrels, label JSON, a BEIR folder, …: the formats that the release lists under `files`.
    One that cannot be written, such as qrels with white space in IDs, answers 422 and says why."""
    release = _release(request, number)
    if name not in FORMATS:
        raise Http404(f"There is no format {name}. Known: {', '.join(FORMATS)}.")
    return _stream(request, release, name)


def _stream(request: HttpRequest, release: Release, name: str) -> HttpResponseBase:
    form = FORMATS[name]

    @condition(etag_func=lambda request: form.etag(release))
    def answer(request: HttpRequest) -> HttpResponseBase:
        return StreamingHttpResponse(
            form.stream(release),
            content_type=form.content_type,
            headers={"Content-Disposition": content_disposition_header(True, form.file_name(release)) or ""},
        )

    return answer(request)

"""Releases: the list, one release, what publishing would freeze, and its files.

An assessor may see that a release was made and how large it is, but neither systems nor files: those name systems and
other people's grades, and assessors judge blind.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import condition, require_GET, require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import filter_by, number_in, page_of, sorted_by
from evalsets.models import EvalSet, Member
from judging.models import Assessor
from judging.reckoning import as_of
from labels.differences import kept_difference, pairs_of_page
from labels.exports.formats import FORMATS
from labels.exports.trec import NAMED_IDS, run_lines
from labels.forms import PublishForm
from labels.models import Release
from labels.paging import PagedRows
from labels.reports import CHANGES, LABELS_OF_JUDGES, STANDING
from labels.services.freezing import latest_release
from labels.services.provenance import UNPOOLED_DEPTH
from labels.services.publishing import start_publishing
from pooling.models import Run


@require_GET
@access.member
def release_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    releases = evalset.releases.select_related("published_by")
    if text := request.GET.get("q", "").strip():
        releases = releases.filter(notes__icontains=text)
    columns = {"release": "number", "published": "published_at"}
    page = page_of(request, sorted_by(request, releases, columns, "-release"))
    context = {"evalset": evalset, "page": page, "q": text, "blind": _blind(request)}
    return render(request, "labels/release_list.html", context)


class Coverage(NamedTuple):
    """A run as a release covers it: `run` as in Release.provenance, the rate without a label, and what that allows."""

    run: dict[str, Any]
    rate: float | None
    fair: bool


@require_GET
@access.member
def release_detail(request: AuthedRequest, evalset: EvalSet, number: int) -> HttpResponse:
    release = get_object_or_404(evalset.releases.select_related("evalset", "published_by"), number=number)
    covered = [
        Coverage(run, rate, rate is not None and rate <= evalset.low_unjudged_rate)
        for run in release.provenance["runs"]
        for rate in [run["unlabelled"] / run["returned"] if run["returned"] else None]
    ]
    context = {
        "evalset": evalset,
        "release": release,
        "blind": _blind(request),
        "pooled": [item for item in covered if item.run["pooled"]],
        "unpooled": [item for item in covered if not item.run["pooled"]],
        "born_from": release.provenance["born_from"],
        "by_grade": [(item, release.counts["by_grade"][str(item["grade"])]) for item in release.scale],
        "formats": [(item, item.file_name(release)) for item in FORMATS.values()],
        "spaced_shown": release.spaced_ids[:NAMED_IDS],
        "earlier": evalset.releases.filter(number__lt=number).first(),
        "others": evalset.releases.exclude(number=number).values_list("number", flat=True)[:50],
        "low_rate": evalset.low_unjudged_rate,
        "unpooled_depth": UNPOOLED_DEPTH,
    }
    return render(request, "labels/release_detail.html", context)


def _blind(request: AuthedRequest) -> bool:
    return request.role == Member.Role.ASSESSOR


@require_http_methods(["GET", "POST"])
@access.lead
def release_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What would be frozen now; a POST starts the job that does it."""
    judges = list(evalset.assessors.filter(kind=Assessor.Kind.MODEL).order_by("name"))
    form = PublishForm(request.POST or None, judges=[judge.name for judge in judges])
    if request.method == "POST" and form.is_valid():
        return redirect(start_publishing(evalset=evalset, by=request.user, **form.cleaned_data))
    latest = latest_release(evalset)
    standing, changes, by_judges = (
        STANDING.read(evalset),
        CHANGES.read(evalset),
        LABELS_OF_JUDGES.read(evalset),
    )
    adds = by_judges.value.by_judge if by_judges.value else {}
    context = {
        "evalset": evalset,
        "as_of": as_of(standing, changes, by_judges),
        "form": form,
        "judges": [(box, adds.get(judge.name)) for box, judge in zip(form["judges"], judges, strict=True)],
        "together": by_judges.value and by_judges.value.together,
        "standing": standing.value,
        "latest": latest,
        "changes": changes.value,
        "next_number": latest.number + 1 if latest else 1,
    }
    return render(request, "labels/release_new.html", context)


@require_GET
@access.reader
def release_unlabelled(request: AuthedRequest, evalset: EvalSet, number: int) -> HttpResponse:
    """The contested and skipped-only pairs of a release, as they were when it was published."""
    release = get_object_or_404(evalset.releases, number=number)
    why = filter_by(request, "why", "Why", [("contested", "contested"), ("skipped-only", "skipped only")])
    text = request.GET.get("q", "").strip()
    part = text.lower()
    rows = [
        (question_id, external_id, item)
        for question_id, external_id, items in release.release_questions.exclude(unlabelled=[]).values_list(
            "question_id", "external_id", "unlabelled"
        )
        for item in items
        if why.chosen in ("", item["why"]) and (part in external_id.lower() or part in item["id"].lower())
    ]
    context = {
        "evalset": evalset,
        "release": release,
        "page": page_of(request, rows),
        "q": text,
        "filter": why,
    }
    return render(request, "labels/release_unlabelled.html", context)


@require_GET
@access.reader
def release_difference(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What differs between two releases, `?from=1&to=2`; the two latest where the address does not say.

    `?q=` narrows the list of labels by question ID.
    """
    text = request.GET.get("q", "").strip()
    numbers = list(evalset.releases.values_list("number", flat=True))
    before = _asked(request, evalset, "from", numbers[1] if len(numbers) > 1 else None)
    after = _asked(request, evalset, "to", numbers[0] if len(numbers) > 1 else None)
    context: dict[str, Any] = {
        "evalset": evalset,
        "numbers": numbers,
        "before": before,
        "after": after,
        "q": text,
    }
    if before and after:
        found = kept_difference(before, after)
        listed = found.of_questions(_named(evalset, text)) if text else found
        length = sum(listed.pairs_by_question.values())
        pairs = PagedRows(length, partial(pairs_of_page, before, after, listed))
        context |= {
            "difference": found,
            "page": page_of(request, pairs),
            "regraded": sorted(found.counts.regraded.items()),
            "settings": found.settings.items(),
        }
    return render(request, "labels/release_difference.html", context)


def _named(evalset: EvalSet, text: str) -> set[int]:
    """The questions with that in their ID, by Question.id."""
    return set(evalset.questions.filter(external_id__icontains=text).values_list("pk", flat=True))


def _asked(request: AuthedRequest, evalset: EvalSet, name: str, default: int | None) -> Release | None:
    asked = request.GET.get(name, "")
    if not asked:
        return evalset.releases.filter(number=default).first() if default else None
    return get_object_or_404(evalset.releases, number=number_in(asked))


def _etag(request: HttpRequest, evalset: EvalSet, number: int, name: str) -> str | None:
    release = evalset.releases.filter(number=number).first()
    return FORMATS[name].etag(release) if release and name in FORMATS else None


@require_GET
@access.reader
@condition(etag_func=_etag)
def release_file(request: AuthedRequest, evalset: EvalSet, number: int, name: str) -> HttpResponseBase:
    """A release as one of the files of `FORMATS`, streamed. The same release has the same bytes and the same ETag."""
    release = get_object_or_404(evalset.releases.select_related("evalset"), number=number)
    if name not in FORMATS:
        raise Http404(f"There is no format {name}.")
    form = FORMATS[name]
    try:
        stream = form.stream(release)
    except BadInput as refusal:
        return render(
            request,
            "labels/file_refused.html",
            {"evalset": evalset, "why": refusal, "back": release},
            status=409,
        )
    return _download(stream, form.content_type, form.file_name(release))


def _download(stream: Iterator[bytes], content_type: str, file_name: str) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        stream,
        content_type=content_type,
        headers={"Content-Disposition": content_disposition_header(True, file_name) or "attachment"},
    )


@require_GET
@access.reader
def run_file(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponseBase:
    """A run in TREC form with strictly falling scores, so that every tool sees one order."""
    run: Run = get_object_or_404(evalset.runs, pk=pk)
    try:
        stream = run_lines(run)
    except BadInput as refusal:
        return render(
            request, "labels/file_refused.html", {"evalset": evalset, "why": refusal, "back": run}, status=409
        )
    return _download(stream, "text/plain; charset=utf-8", f"{evalset.slug}-run-{run.pk}.txt")

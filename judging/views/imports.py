from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import CannotStore
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet, ImportedFile, Job
from judging.import_forms import FORMS, ImportForm
from judging.services.import_uploads import TASK, receive_upload, start_import
from pooling.formats import FORMATS


@require_GET
@access.lead
def import_page(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Choose what a file holds, and send it."""
    kind = request.GET.get("kind", "")
    if kind not in FORMS:
        kind = "run" if evalset.questions.exists() else "questions"
    return _page(request, evalset, FORMS[kind](evalset=evalset))


@require_POST
@access.lead
def import_start(request: AuthedRequest, evalset: EvalSet, kind: str) -> HttpResponse:
    """Keep the file that was sent and begin to check it."""
    if kind not in FORMS:
        raise Http404
    form = FORMS[kind](request.POST, request.FILES, evalset=evalset)
    if not form.is_valid():
        return _page(request, evalset, form, status=422)
    try:
        upload = receive_upload(evalset=evalset, file=form.cleaned_data["file"], by=request.user)
    except CannotStore as refusal:
        form.add_error("file", str(refusal))
        return _page(request, evalset, form, status=507)
    job = start_import(
        evalset=evalset, upload=upload, kind=kind, options=form.options(), check=True, by=request.user
    )
    return redirect(job)


@require_GET
@access.lead
def import_report(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """What a check found, or what an import wrote; from a check one goes on to write, or checks with other options."""
    job = _import_job(evalset, pk)
    if job.result is None:
        return redirect(job)
    kind = job.parameters["kind"]
    context = {
        "evalset": evalset,
        "job": job,
        "report": job.result,
        "kind": kind,
        "form": FORMS[kind](evalset=evalset, with_file=False, initial=_as_initial(job.parameters["options"])),
    }
    return render(request, "judging/import_report.html", context)


@require_POST
@access.lead
def import_recheck(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Check the same file again with other options."""
    job = _import_job(evalset, pk)
    kind = job.parameters["kind"]
    form = FORMS[kind](request.POST, evalset=evalset, with_file=False)
    if not form.is_valid():
        context = {"evalset": evalset, "job": job, "report": job.result, "kind": kind, "form": form}
        return render(request, "judging/import_report.html", context, status=422)
    assert job.upload is not None
    again = start_import(
        evalset=evalset, upload=job.upload, kind=kind, options=form.options(), check=True, by=request.user
    )
    return redirect(again)


@require_POST
@access.lead
def import_write(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Write the file that was checked, with the options it was checked with."""
    job = _import_job(evalset, pk)
    assert job.upload is not None
    parameters = job.parameters
    writing = start_import(
        evalset=evalset,
        upload=job.upload,
        kind=parameters["kind"],
        options=parameters["options"],
        check=False,
        by=request.user,
    )
    return redirect(writing)


def _import_job(evalset: EvalSet, pk: int) -> Job:
    return get_object_or_404(evalset.jobs.select_related("upload"), pk=pk, task=TASK)


def _as_initial(options: dict[str, Any]) -> dict[str, Any]:
    """Options as a form shows them: a configuration is text there."""
    shown = dict(options)
    if "config" in shown:
        shown["config"] = json.dumps(shown["config"], ensure_ascii=False)
    return shown


def _page(request: AuthedRequest, evalset: EvalSet, form: ImportForm, status: int = 200) -> HttpResponse:
    imported = evalset.imported_files.select_related("created_by")
    if text := request.GET.get("q", "").strip():
        imported = imported.filter(name__icontains=text)
    holds = filter_by(request, "holds", "Holds", ImportedFile.Kind.choices)
    if holds.chosen:
        imported = imported.filter(kind=holds.chosen)
    columns = {"file": "name", "when": "created_at"}
    context = {
        "evalset": evalset,
        "form": form,
        "kinds": [(kind, known.title) for kind, known in FORMS.items()],
        "formats": FORMATS[form.kind],
        "page": page_of(request, sorted_by(request, imported, columns, "-when"), per_page=20),
        "q": text,
        "filter": holds,
        "list_address": reverse("judging:import", args=[evalset.slug]),
    }
    return render(request, "judging/import_page.html", context, status=status)

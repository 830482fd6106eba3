"""What all acts of the scoring pages have in common: a wrong request goes back to its page and says why."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.models import EvalSet
from scoring.forms import AskForm, StagesForm
from scoring.services.requests import is_long, perform, start_performing


def act(
    request: AuthedRequest, evalset: EvalSet, *, kind: str, form: AskForm | StagesForm, page: str
) -> HttpResponse:
    """Do what the form asks, at once or as a job, and show what came of it; else back to `page` with the reason."""
    if not form.is_valid():
        for reason in errors_of(form):
            messages.error(request, reason)
        return redirect(_back(request, evalset, page))
    parameters = {"kind": kind, **form.parameters()}
    if is_long(parameters):
        return redirect(start_performing(evalset=evalset, parameters=parameters, by=request.user))
    try:
        outcome = perform(evalset=evalset, kind=kind, parameters=parameters, by=request.user)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect(_back(request, evalset, page))
    return redirect(outcome.url)


def errors_of(form: forms.Form) -> list[str]:
    """The form's errors as sentences, each with the field it is about."""
    said = []
    for name, errors in form.errors.items():
        label = form.fields[name].label or name.capitalize() if name in form.fields else ""
        said += [f"{label}: {error}" if label else str(error) for error in errors]
    return said


def _back(request: AuthedRequest, evalset: EvalSet, page: str) -> str:
    query = {key: values for key, values in request.POST.lists() if key != "csrfmiddlewaretoken"}
    return f"{reverse(page, args=[evalset.slug])}?{urlencode(query, doseq=True)}"


def initial(request: AuthedRequest, form: type[AskForm], evalset: EvalSet, **defaults: Any) -> AskForm:
    """The form as the address fills it, with the defaults where it leaves out what is needed.

    Unbound, with the defaults alone, where the address names no release.
    """
    fresh = form(evalset=evalset, initial=defaults)
    if not request.GET.get("release"):
        return fresh
    data = request.GET.copy()
    for name, field in fresh.fields.items():
        if field.required and name not in data:
            value = fresh.get_initial_for_field(field, name)
            data.setlist(name, value if isinstance(value, list) else [value])
    return form(data, evalset=evalset)

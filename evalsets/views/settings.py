from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import Refused
from evalsets.forms import EvalSetSettingsForm
from evalsets.models import EvalSet
from evalsets.services.evalsets import change_settings


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def evalset_settings(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    edited = EvalSet.objects.get(pk=evalset.pk)
    form = EvalSetSettingsForm(request.POST or None, instance=edited)
    if request.method == "POST" and form.is_valid():
        try:
            if form.changed_data:
                change_settings(evalset=edited, by=request.user, changed=form.changed_data)
            messages.success(request, "The settings are saved.")
            return redirect("evalsets:settings", evalset.slug)
        except Refused as refusal:
            form.add_error(None, str(refusal))
    return render(
        request,
        "evalsets/settings.html",
        {"evalset": evalset, "form": form},
        status=422 if form.errors else 200,
    )

"""The button beside figures of a large eval set: have them worked out anew."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.models import EvalSet
from labels.services.reckoning import start_reckoning


@require_POST
@access.lead
def reckon(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Start the job; its page leads back to the one that the button was on."""
    back = request.POST.get("back", "")
    if len(back) > 300 or not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = evalset.get_absolute_url()
    try:
        reports = request.POST.getlist("report")
        return redirect(start_reckoning(evalset=evalset, reports=reports, back=back, by=request.user))
    except BadInput as error:
        messages.error(request, str(error))
        return redirect(back)

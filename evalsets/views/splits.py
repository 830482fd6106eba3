from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import Refused
from evalsets.models import EvalSet, Question
from evalsets.services.splits import draw_split


class SplitForm(forms.Form):
    share = forms.FloatField(
        label="Share of the holdout",
        initial=0.3,
        min_value=0.01,
        max_value=0.99,
        help_text="0.3 keeps three questions of ten aside, in each slice.",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        help_text="Empty: drawn, and written down. The same seed gives the same split.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@access.lead
def split_draw(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = SplitForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            drawn = draw_split(evalset=evalset, by=request.user, **form.cleaned_data)
            messages.success(
                request,
                f"{drawn['dev']} questions are in dev, {drawn['holdout']} in holdout (seed {drawn['seed']}).",
            )
            return redirect("labels:question-list", evalset.slug)
        except Refused as refusal:
            form.add_error(None, str(refusal))
    context = {
        "evalset": evalset,
        "form": form,
        "questions": evalset.questions.count(),
        "in_dev": evalset.questions.filter(split=Question.Split.DEV).count(),
        "in_holdout": evalset.questions.filter(split=Question.Split.HOLDOUT).count(),
    }
    return render(request, "evalsets/split_draw.html", context, status=422 if form.errors else 200)

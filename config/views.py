"""Pages that stand outside or above the apps: sign in, my work, an eval set's home, errors."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.http import require_GET, require_http_methods
from django_guid import get_guid

from config.home import DEPTH, SHALLOW_DEPTH, evalset_overview, next_step
from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.forms import EvalSetForm
from evalsets.listing import page_of
from evalsets.models import EvalSet, Member
from evalsets.services.evalsets import create_evalset
from evalsets.storing import DISK_FAULTS, read_to_the_end
from judging.desk import my_open_batches

EVALSETS_PER_PAGE = 24


class SignIn(auth_views.LoginView):
    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True


class PasswordChange(LoginRequiredMixin, auth_views.PasswordChangeView):
    template_name = "registration/password_change.html"
    success_url = reverse_lazy("my-work")

    def form_valid(self, form):  # type: ignore[no-untyped-def]
        messages.success(self.request, "Your password is changed.")
        return super().form_valid(form)


@require_GET
def my_work(request: AuthedRequest) -> HttpResponse:
    """What waits for the reader, and in which eval set."""
    memberships = Member.objects.filter(user=request.user).select_related("evalset")
    roles = {item.evalset_id: item.get_role_display() for item in memberships}
    visible = EvalSet.objects.visible_to(request.user)
    if text := request.GET.get("q", "").strip():
        visible = visible.filter(
            Q(name__icontains=text) | Q(slug__icontains=text) | Q(description__icontains=text)
        )
    page = page_of(request, visible, per_page=EVALSETS_PER_PAGE)
    evalsets = [{"evalset": item, "role": roles.get(item.pk, "Superuser")} for item in page]
    judges = any(item.role == Member.Role.ASSESSOR for item in memberships)
    context = {
        "evalsets": evalsets,
        "page": page,
        "q": text,
        "work": my_open_batches(request.user),
        "judges": judges,
    }
    return render(request, "config/my_work.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def evalset_new(request: AuthedRequest) -> HttpResponse:
    """Anybody who can sign in may make an eval set and then leads it."""
    form = EvalSetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            evalset = create_evalset(by=request.user, **form.cleaned_data)
            messages.success(request, f"{evalset} is made. Bring in its questions first.")
            return redirect(evalset)
        except BadInput as error:
            form.add_error(None, str(error))
    return render(request, "config/evalset_new.html", {"form": form}, status=422 if form.errors else 200)


@require_GET
@access.member
def evalset_home(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    context: dict[str, Any] = {"evalset": evalset}
    if request.role == Member.Role.ASSESSOR:
        context["work"] = my_open_batches(request.user, evalset=evalset)
    else:
        overview = evalset_overview(evalset)
        context |= {"overview": overview, "depth": DEPTH, "shallow_depth": SHALLOW_DEPTH}
        if request.role == Member.Role.LEAD:
            context["next_step"] = next_step(evalset, overview)
    return render(request, "config/evalset_home.html", context)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "403.html", {"reason": str(exception)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "404.html", status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page of a fault of ours, or of a database or a disk that does not answer, with the ID to quote."""
    error = sys.exc_info()[1]
    context: dict[str, Any] = {"request_id": get_guid()}
    if isinstance(error, (OperationalError, InterfaceError)):
        return render(request, "503.html", context, status=503)
    if isinstance(error, OSError) and error.errno in DISK_FAULTS:
        context["reason"] = error.strerror
        read_to_the_end(request)
        return render(request, "507.html", context, status=507)
    return render(request, "500.html", context, status=500)

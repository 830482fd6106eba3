from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import Refused
from evalsets.forms import MemberForm
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet, Member
from evalsets.services.members import add_member, change_role, remove_member


@require_GET
@access.lead
def member_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    return _page(request, evalset, MemberForm())


@require_POST
@access.lead
def member_add(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, evalset, form, status=422)
    try:
        member = add_member(
            evalset=evalset,
            username=form.cleaned_data["username"],
            role=form.cleaned_data["role"],
            password=form.cleaned_data["password"],
            by=request.user,
        )
    except Refused as refusal:
        form.add_error("username", str(refusal))
        return _page(request, evalset, form, status=422)
    except ValidationError as error:
        form.add_error("password", error)
        return _page(request, evalset, form, status=422)
    messages.success(request, f"{member.user} is {member.get_role_display().lower()} of {evalset} now.")
    return redirect("evalsets:member-list", evalset.slug)


@require_POST
@access.lead
def member_role(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    member = get_object_or_404(evalset.members.select_related("user", "evalset"), pk=pk)
    role = request.POST.get("role")
    if role not in Member.Role.values:
        messages.error(request, "Choose lead, assessor or viewer.")
        return redirect("evalsets:member-list", evalset.slug)
    try:
        change_role(member=member, role=Member.Role(role), by=request.user)
        messages.success(request, f"{member.user} is {member.get_role_display().lower()} now.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("evalsets:member-list", evalset.slug)


@require_POST
@access.lead
def member_remove(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    member = get_object_or_404(evalset.members.select_related("user", "evalset"), pk=pk)
    try:
        remove_member(member=member, by=request.user)
        messages.success(request, f"{member.user} is no longer a member. Their judgments stay.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("evalsets:member-list", evalset.slug)


def _page(request: AuthedRequest, evalset: EvalSet, form: MemberForm, status: int = 200) -> HttpResponse:
    members = evalset.members.select_related("user")
    if text := request.GET.get("q", "").strip():
        members = members.filter(
            Q(user__username__icontains=text)
            | Q(user__first_name__icontains=text)
            | Q(user__last_name__icontains=text)
        )
    role = filter_by(request, "only", "Role", Member.Role.choices)
    if role.chosen:
        members = members.filter(role=role.chosen)
    columns = {"who": "user__username", "role": "role"}
    context = {
        "evalset": evalset,
        "form": form,
        "page": page_of(request, sorted_by(request, members, columns, "who")),
        "q": text,
        "filter": role,
        "roles": Member.Role.choices,
        "list_address": reverse("evalsets:member-list", args=[evalset.slug]),
    }
    return render(request, "evalsets/member_list.html", context, status=status)

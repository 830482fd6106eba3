from __future__ import annotations

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput, Refused
from evalsets.forms import TokenForm
from evalsets.listing import page_of
from evalsets.models import ApiToken, EvalSet, Member
from evalsets.services.tokens import create_token, revoke_token


@require_GET
@access.lead
def token_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    return _page(request, evalset, TokenForm())


@require_POST
@never_cache
@access.lead
def token_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Make a token and show it. There is no redirect: it is shown this once, and kept nowhere to show it from."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, evalset, form, status=422)
    try:
        token, text = create_token(evalset=evalset, by=request.user, **form.settings())
    except BadInput as error:
        form.add_error("name", str(error))
        return _page(request, evalset, form, status=422)
    address = request.build_absolute_uri(reverse("api:evalset", args=[evalset.slug]))
    context = {"evalset": evalset, "token": token, "text": text, "address": address}
    return render(request, "evalsets/token_made.html", context)


@require_POST
@access.lead
def token_revoke(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    token = get_object_or_404(evalset.tokens.select_related("evalset", "user"), pk=pk)
    try:
        revoke_token(token=token, by=request.user)
        messages.success(request, f"The token {token} is revoked: it opens nothing any more.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("evalsets:token-list", evalset.slug)


def _page(request: AuthedRequest, evalset: EvalSet, form: TokenForm, status: int = 200) -> HttpResponse:
    tokens = evalset.tokens.select_related("user", "revoked_by")
    if text := request.GET.get("q", "").strip():
        tokens = tokens.filter(Q(name__icontains=text) | Q(user__username__icontains=text))
    page = page_of(request, tokens)
    roles = dict(Member.objects.filter(evalset=evalset).values_list("user", "role"))
    rows = [(token, _weakened(token, roles.get(token.user_id))) for token in page]
    list_address = reverse("evalsets:token-list", args=[evalset.slug])
    context = {
        "evalset": evalset,
        "form": form,
        "page": page,
        "rows": rows,
        "q": text,
        "list_address": list_address,
    }
    return render(request, "evalsets/token_list.html", context, status=status)


def _weakened(token: ApiToken, role: str | None) -> str:
    """What has become of an active token whose maker may do less than when it was made; "" where nothing has."""
    if token.state != token.State.ACTIVE:
        return ""
    if not token.user.is_active:
        return f"opens nothing: {token.user} can no longer sign in"
    maker = Member.Role.LEAD if token.user.is_superuser else Member.Role(role) if role else None
    now = token.role_under(maker)
    if now == token.role:
        return ""
    if now is None:
        return f"opens nothing: {token.user} may no longer do this"
    return f"only {now.label.lower()} now, as {token.user} is"

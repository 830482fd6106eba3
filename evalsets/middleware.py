"""What every request passes through."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.http import urlencode

from evalsets.api.problems import problem

GetResponse = Callable[[HttpRequest], HttpResponse]


def upload_limit(get_response: GetResponse) -> GetResponse:
    """Refuse a body above the limit before a byte of it is read, saying both sizes."""

    def middleware(request: HttpRequest) -> HttpResponse:
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        if length > settings.UPLOAD_LIMIT:
            context = {"size": filesizeformat(length), "limit": filesizeformat(settings.UPLOAD_LIMIT)}
            if request.path.startswith("/api/"):
                return problem(413, "You sent {size}; the limit is {limit}.".format(**context))
            return render(request, "413.html", context, status=413)
        return get_response(request)

    return middleware


def reader_time_zone(get_response: GetResponse) -> GetResponse:
    """Show times in the reader's zone, which the browser tells in the cookie `tz`."""

    def middleware(request: HttpRequest) -> HttpResponse:
        try:
            zone = zoneinfo.ZoneInfo(request.COOKIES["tz"])
        except (KeyError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            return get_response(request)
        with timezone.override(zone):
            return get_response(request)

    return middleware


def htmx_login_redirect(get_response: GetResponse) -> GetResponse:
    """Send the whole page to sign in when a login has expired, rather than paint a sign-in page into a fragment."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        htmx = getattr(request, "htmx", None)
        sign_in = resolve_url(settings.LOGIN_URL)
        if htmx and response.status_code == 302 and response["Location"].startswith(sign_in):
            back = htmx.current_url_abs_path or request.get_full_path()
            redirect = HttpResponse(status=200)
            redirect["HX-Redirect"] = f"{sign_in}?{urlencode({'next': back})}"
            return redirect
        return response

    return middleware

"""What every request passes through."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render, resolve_url
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

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


def no_nul_in_addresses(get_response: GetResponse) -> GetResponse:
    """Refuse a page's address with a NUL in it, which no text in the database can hold. The API refuses by itself."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if "%00" in request.META["QUERY_STRING"] and not request.path.startswith("/api/"):
            raise BadRequest("The address has a NUL character (%00) in it, which no text here can hold.")
        return get_response(request)

    return middleware


def reader_time_zone(get_response: GetResponse) -> GetResponse:
    """Show times in the reader's zone, which the browser tells in the cookie `tz`."""

    def middleware(request: HttpRequest) -> HttpResponse:
        zone = None
        with suppress(KeyError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            zone = zoneinfo.ZoneInfo(request.COOKIES["tz"])
        with timezone.override(zone):
            return get_response(request)

    return middleware


def back_after_sign_in(get_response: GetResponse) -> GetResponse:
    """Where a login has expired, let sign-in lead back to the page in front, not to a fragment or to a form's address.

    A request of htmx sends the whole page to sign in, rather than paint a sign-in page into a fragment.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        sign_in = resolve_url(settings.LOGIN_URL)
        if response.status_code != 302 or not response["Location"].startswith(f"{sign_in}?"):
            return response
        htmx = getattr(request, "htmx", None)
        if htmx:
            back = htmx.current_url_abs_path or request.get_full_path()
            redirect = HttpResponse(status=200)
            redirect["HX-Redirect"] = f"{sign_in}?{urlencode({'next': back})}"
            return redirect
        if request.method == "POST" and (page := _page_in_front(request)):
            response["Location"] = f"{sign_in}?{urlencode({'next': page})}"
        return response

    return middleware


def _page_in_front(request: HttpRequest) -> str | None:
    """The address on this site from which a form was sent, without the site's name."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}, request.is_secure()):
        return None
    return urlsplit(referer)._replace(scheme="", netloc="", fragment="").geturl()


def forms_address(get_response: GetResponse) -> GetResponse:
    """A page in place of nothing where an address that only takes a form's POST is opened."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed) and request.method == "GET" and not response.content:
            page = render(request, "405.html", status=405)
            page["Allow"] = response["Allow"]
            return page
        return response

    return middleware

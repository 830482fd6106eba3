"""Answers for machines: is this process alive, is everything there that it needs, its figures."""

from __future__ import annotations

import ipaddress
import secrets

import psycopg
import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from config import metrics, stores


@require_safe
@never_cache
@login_not_required
def health(request: HttpRequest) -> HttpResponse:
    """200 while this process answers at all. It asks nobody, so it says nothing of the database."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
@login_not_required
def ready(request: HttpRequest) -> HttpResponse:
    """200 when Postgres, its migrations and the broker are there, else 503 saying what is missing.

    How many workers have given a sign of life lately is told beside it; without any, jobs wait and pages work.
    """
    checks = {"database": "ok", "migrations": "ok", "broker": "ok"}
    try:
        waiting = stores.shipped_migrations() - stores.applied_migrations()
        if waiting:
            checks["migrations"] = f"{len(waiting)} to apply: manage.py migrate"
    except psycopg.Error:
        checks |= {"database": "cannot be reached", "migrations": "not known"}
    workers: int | None = None
    try:
        with stores.broker_client() as link:
            workers = stores.workers_alive(link)
    except redis.RedisError:
        checks["broker"] = "cannot be reached"
    missing = [name for name, outcome in checks.items() if outcome != "ok"]
    status = "missing: " + ", ".join(missing) if missing else "ok"
    return JsonResponse({"status": status, **checks, "workers": workers}, status=503 if missing else 200)


@require_safe
@never_cache
@login_not_required
def metrics_page(request: HttpRequest) -> HttpResponse:
    """The figures, for who shows METRICS_TOKEN; where none is set, for this machine itself without a proxy between."""
    if not _may_see_metrics(request):
        return HttpResponse("Send METRICS_TOKEN as “Authorization: Bearer …”.\n", "text/plain", status=403)
    return HttpResponse(metrics.page(), content_type=CONTENT_TYPE_LATEST)


def _may_see_metrics(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(shown.encode(), settings.METRICS_TOKEN.encode())
    # Everything that a proxy on this machine passes on comes from this machine.
    passed_on = any(name in request.headers for name in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"))
    if settings.BEHIND_PROXY or passed_on:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False

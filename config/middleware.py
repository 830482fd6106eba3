"""The line in the log and the figures that every request leaves behind."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.encoding import escape_uri_path

from config import metrics
from config.logs import current_request

logger = logging.getLogger("fairpool.request")

LONGEST_PATH = 300
# Asked for every few seconds by machines.
QUIET = {"health", "health-ready", "metrics"}


def request_log(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Write one line a request, and count it. A download's time ends where its sending begins."""

    def middleware(request: HttpRequest) -> HttpResponse:
        begun = time.perf_counter()
        token = current_request.set(request)
        try:
            response = get_response(request)
            seconds = time.perf_counter() - begun
            route = request.resolver_match.view_name if request.resolver_match else "none"
            metrics.count_request(request.method or "", route, response.status_code, seconds)
            path = escape_uri_path(request.path)[:LONGEST_PATH]
            logger.log(
                logging.DEBUG if route in QUIET and response.status_code == 200 else logging.INFO,
                "%s %s %s in %.0f ms", request.method, path, response.status_code, seconds * 1000,
                extra={
                    "facts": {
                        "method": request.method,
                        "path": path,
                        "route": route,
                        "status": response.status_code,
                        "ms": round(seconds * 1000, 1),
                    }
                },
            )  # fmt: skip
            return response
        finally:
            current_request.reset(token)

    return middleware

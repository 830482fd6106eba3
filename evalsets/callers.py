"""From where somebody calls: what guessing of passwords and tokens is counted by."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def caller_address(request: HttpRequest) -> str | None:
    """The address that the outermost of our own proxies (PROXY_COUNT) saw; without proxies that of who connected.

    Each proxy appends to X-Forwarded-For whom it saw; what stands before that the caller may have made up. Of an IPv6
    address it is the network of 64 bits, since whoever has one address has all of that.
    """
    address = request.META.get("REMOTE_ADDR", "")
    if settings.PROXY_COUNT:
        seen = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(seen) >= settings.PROXY_COUNT:
            address = seen[-settings.PROXY_COUNT].strip()
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((int(found), 64), strict=False).network_address)
    return str(found)

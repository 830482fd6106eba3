"""Open every page that a superuser can reach by links on the database of DATABASE_URL; print what did not answer.

Run as a program, by tests that have made a database of their own.
"""

from __future__ import annotations

import json
import os
import re
import sys
from html import unescape
from urllib.parse import urljoin, urlsplit

import django

LINK = re.compile(r'<a\b[^>]*\bhref="([^"#]+)')


def crawl(most: int = 2000) -> dict[str, int]:
    """The status of each address within the site, by address."""
    from django.test import Client

    from evalsets.models import User

    user, _ = User.objects.get_or_create(username="crawler", defaults={"is_superuser": True})
    client = Client(raise_request_exception=False, headers={"Host": "localhost"})
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    found: dict[str, int] = {}
    waiting = ["/"]
    kinds: dict[str, int] = {}
    while waiting and len(found) < most:
        address = waiting.pop()
        kind = re.sub(r"\d+", "N", urlsplit(address).path)
        kinds[kind] = kinds.get(kind, 0) + 1
        if address in found or kinds[kind] > 12:  # enough of one kind
            continue
        response = client.get(address)
        found[address] = response.status_code
        if response.get("Content-Type", "").startswith("text/html"):
            for link in LINK.findall(response.content.decode()):
                target = urlsplit(urljoin(address, unescape(link)))
                if not target.netloc:
                    waiting.append(target.path + (f"?{target.query}" if target.query else ""))
        elif response.streaming:
            list(response.streaming_content)
    return found


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from django.conf import settings
    from django.test import override_settings

    plain = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
    with override_settings(STORAGES={**settings.STORAGES, **plain}):  # no collectstatic before it
        addresses = crawl()
    wrong = {address: status for address, status in addresses.items() if status not in (200, 302, 304)}
    print(json.dumps({"looked_at": len(addresses), "wrong": wrong}))

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Django reads all pages' code at the first request; so nobody waits for it, and preloaded processes share it.
from django.urls import reverse  # noqa: E402

reverse("sign-in")

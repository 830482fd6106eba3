"""The Celery application.

State lives in the Job rows, so there is no result backend, and a lost broker loses nothing.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("fairpool")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

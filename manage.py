#!/usr/bin/env python
"""Fairpool's command line: `python manage.py help` lists what it does."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"The settings are wrong: {error}\n")
        sys.exit(70)  # a fault of the installation: 1 and 2 are answers of `compare`

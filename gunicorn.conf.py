"""What gunicorn, started in this folder, does of itself: a folder for the figures of its processes, and its log lines.

How many processes there are and where they listen is said on the command line.
"""

import os
from typing import Any

from config import figures
from config.logs import chosen_form, logging_settings

_folder = figures.make_folder()

logconfig_dict = logging_settings(chosen_form(os.environ), os.environ.get("LOG_LEVEL", "INFO"))


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)


def on_exit(server: Any) -> None:
    figures.remove_folder(_folder)

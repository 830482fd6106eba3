"""What gunicorn, started in this folder, does of itself: a folder for the figures of its processes, and its log lines.

How many processes and where they listen is said on the command line.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from config.logs import chosen_form, logging_settings

# In memory where that is possible: a full disk must not end a process.
_shared_memory = Path("/dev/shm")  # noqa: S108 (a folder of our own is made in it)
_figures = tempfile.mkdtemp(
    prefix="fairpool-figures-", dir=_shared_memory if os.access(_shared_memory, os.W_OK) else None
)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _figures

logconfig_dict = logging_settings(chosen_form(os.environ), os.environ.get("LOG_LEVEL", "INFO"))


def child_exit(server: Any, worker: Any) -> None:
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)


def on_exit(server: Any) -> None:
    shutil.rmtree(_figures, ignore_errors=True)

"""The folder in which the processes of one web server, or of one worker, count together."""

import os
import shutil
import tempfile
from pathlib import Path

# In memory where that is possible: a full disk must not end a process.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of our own is made in it)
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def make_folder() -> str:
    """Make an empty folder and tell this process, and those it will start, to count in it."""
    parent = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="fairpool-figures-", dir=parent)
    os.environ[VARIABLE] = folder
    return folder


def remove_folder(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)

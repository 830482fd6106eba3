"""Ends a program when the process that started it ends, so that a killed parent leaves no orphans behind.

As a command: `python tether.py PROGRAM ARGUMENT …` runs the program tethered to whoever called.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tether(signum: int = signal.SIGTERM) -> None:
    """Ask the kernel to send this process `signum` when its parent dies. Linux only; elsewhere it does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signum)


if __name__ == "__main__":
    tether()
    os.execvp(sys.argv[1], sys.argv[1:])

"""A Chromium to test with: one that is there, else Debian's, else Playwright's own. Never none, quietly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from playwright.sync_api import Browser, Error, Playwright

# The shell first: the same engine without a browser's windows, in which a page opens several times as fast.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def launch(playwright: Playwright) -> Browser:
    """Start a headless Chromium. Raises Error with what to do when there is no way to have one."""
    program = os.environ.get("CHROMIUM") or _found() or _installed_from_debian()
    if program is None:
        _install_playwrights_own()
    # Chromium's sandbox does not work as root; the pages under test are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        return playwright.chromium.launch(executable_path=program, args=arguments)
    except Error as error:
        raise Error(
            f"No Chromium to run the browser tests with ({error.message.splitlines()[0]}). Install one "
            "(Debian and Ubuntu: sudo apt install chromium), or name one: CHROMIUM=/path/to/chromium make test"
        ) from error


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _installed_from_debian() -> str | None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    print("Installing Debian's chromium for the browser tests …", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "-y", "-qq", "--no-install-recommends"]
    for arguments in (["update", "-qq"], [*install, "chromium-headless-shell"], [*install, "chromium"]):
        subprocess.run(["apt-get", *arguments], env=environment, stdin=subprocess.DEVNULL, check=False)
        if program := _found():
            return program
    return None


def _install_playwrights_own() -> None:
    print("Installing Playwright's Chromium for the browser tests …", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)

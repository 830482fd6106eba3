"""The web server and the worker of the demo, kept running by supervisord.

supervisord runs as our child and ends when we do; its own children end when it does (embedded/tether.py), so a kill
anywhere leaves nothing behind.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from config.embedded import tether
from config.embedded.home import Home

CHECKOUT = Path(__file__).resolve().parent.parent
WEB_WORKERS, WEB_THREADS = 2, 4
STOP_SECONDS = 10  # what a request or a job in work has to finish before it is killed

WORKER = [
    "celery", "-A", "config", "worker", "--concurrency", "2", "--loglevel", "INFO",
    # Talk among many workers, which one worker need not wait for.
    "--without-gossip", "--without-mingle",
]  # fmt: skip


def web_arguments(host: str, port: int) -> list[str]:
    return [
        "gunicorn", "config.wsgi", "--bind", f"{host}:{port}", "--workers", str(WEB_WORKERS),
        "--threads", str(WEB_THREADS), "--graceful-timeout", str(STOP_SECONDS - 2), "--no-control-socket",
        "--preload",  # one import of the code for all processes
    ]  # fmt: skip


def write_configuration(home: Home, host: str, port: int) -> Path:
    """Write supervisord's configuration into the home and return its path."""
    programs = {"web": web_arguments(host, port), "worker": WORKER}
    lines = [
        "[supervisord]",
        "nodaemon=true",
        "silent=true",
        f"logfile={_escaped(home.logs / 'supervisord.log')}",
        f"pidfile={_escaped(home.run / 'supervisord.pid')}",
        f"childlogdir={_escaped(home.logs)}",
        f"directory={_escaped(CHECKOUT)}",
    ]
    if os.geteuid() == 0:
        lines.append("user=root")  # said, so that supervisord does not warn of it at every start
    for name, arguments in programs.items():
        command = [sys.executable, tether.__file__, sys.executable, "-m", *arguments]
        lines += [
            "",
            f"[program:{name}]",
            f"command={_escaped(shlex.join(command))}",
            f"directory={_escaped(CHECKOUT)}",
            "autorestart=true",
            "startretries=1000",
            "stopasgroup=true",
            "killasgroup=true",
            f"stopwaitsecs={STOP_SECONDS}",
            "redirect_stderr=true",
            f"stdout_logfile={_escaped(home.logs / f'{name}.log')}",
            "stdout_logfile_maxbytes=20MB",
            "stdout_logfile_backups=1",
        ]
    file = home.run / "supervisord.conf"
    file.write_text("\n".join(lines) + "\n")
    return file


def _escaped(value: object) -> str:
    return str(value).replace("%", "%%")  # supervisord expands %(…)s


class Supervisor:
    """supervisord with the web server and the worker; started again by `check` should it have died."""

    def __init__(self, configuration: Path, environment: dict[str, str]) -> None:
        self.configuration = configuration
        self.environment = environment
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        # A session of its own: Ctrl-C in the terminal reaches us alone, and we stop everything in order.
        return subprocess.Popen(
            [sys.executable, tether.__file__, sys.executable, "-m", "supervisor.supervisord", "-c", self.configuration],
            stdin=subprocess.DEVNULL, cwd=CHECKOUT, start_new_session=True, env=self.environment,
        )  # fmt: skip

    def check(self) -> bool:
        """Start supervisord again if it has died; says whether it was alive."""
        if self.process.poll() is None:
            return True
        self.process = self._start()
        return False

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def is_healthy(url: str) -> bool:
    """Whether the web server answers and has everything that it needs."""
    try:
        with urllib.request.urlopen(f"{url}/health/ready/", timeout=2) as response:  # noqa: S310 (our own http address)
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_until_healthy(url: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_healthy(url):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True

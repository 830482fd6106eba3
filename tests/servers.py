"""Real servers for the tests: the broker for all of them, a worker and a web server for those that ask.

Postgres needs no fixture: the database engine starts the embedded one at the first connection, and pytest makes its
own test database in it. With DATABASE_URL or REDIS_URL set, those servers are used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from celery import current_app
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connection

# Which of several pytest processes this is (`pytest -n 2`), from 0. The test database gets a name for each from
# pytest-django; what else they must not share is told apart by this number.
PROCESS_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
# Not the demo's: a demo in the same home has a worker that must not take the tests' jobs.
BROKER_DATABASE = 9
START_SECONDS = 60


@pytest.fixture(scope="session", autouse=True)
def broker() -> str:
    """The address of a real broker, which the Celery application of the tests uses."""
    if os.environ.get("REDIS_URL"):
        url = urllib.parse.urlsplit(os.environ["REDIS_URL"])
        database = int(url.path.strip("/") or 0)
    else:
        from config import embedded

        valkey = embedded.server(embedded.Valkey, django_settings.FAIRPOOL_HOME)
        valkey.ensure()
        url, database = urllib.parse.urlsplit(valkey.url()), BROKER_DATABASE
    address = url._replace(path=f"/{database + PROCESS_NUMBER}").geturl()
    django_settings.REDIS_URL = django_settings.CELERY_BROKER_URL = address
    current_app.conf.broker_url = address
    with current_app.connection_for_write() as link:
        link.ensure_connection(max_retries=3)
    return address


@pytest.fixture(scope="session", autouse=True)
def _no_collected_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    """WhiteNoise looks into this folder when a handler is made; the tests' pages get their files from static/."""
    django_settings.STATIC_ROOT = tmp_path_factory.mktemp("nothing-collected")


class Process:
    """A server in a process of its own, on the test database; it can be killed and started again."""

    def __init__(
        self, arguments: list[str], environment: dict[str, str], log: Path, ready: Callable[[], bool]
    ):
        self._arguments, self._environment, self._ready = arguments, environment, ready
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> None:
        self._output = self.log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._arguments],
            cwd=django_settings.BASE_DIR,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,  # so that the whole group can be killed
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"{self._arguments[0]} did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it and its children the way a power cut does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it the polite way; kill it after ten seconds."""
        self._end(signal.SIGTERM)

    def _end(self, signum: signal.Signals) -> None:
        if self._process is None:
            return
        try:
            if self._process.poll() is None and signum == signal.SIGTERM:
                self._process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(10)
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process = None
        if self._output:
            self._output.close()

    def restart(self) -> None:
        self.stop()
        self.start()


def server_environment(broker: str, **more: str) -> dict[str, str]:
    """The environment of a process that works on the test database, the uploads and the broker of the tests."""
    address = connection.settings_dict
    connection.ensure_connection()  # the embedded engine knows its port only now
    password = urllib.parse.quote(address["PASSWORD"] or "", safe="")
    account = f"{address['USER']}:{password}@" if address["USER"] else ""
    place = f"{address['HOST'] or ''}:{address['PORT']}" if address["PORT"] else address["HOST"] or ""
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://{account}{place}/{address['NAME']}",
        "REDIS_URL": broker,
        "SECRET_KEY": django_settings.SECRET_KEY,
        "BEHIND_TLS": "0",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "UPLOAD_ROOT": str(django_settings.MEDIA_ROOT),
        "PYTHONWARNINGS": "default",
        **more,
    }


@contextlib.contextmanager
def running_worker(broker: str, folder: Path, name: str = "worker", **environment: str) -> Iterator[Process]:
    """A Celery worker with one child; what it says goes to `name`.log in the folder."""
    host = f"{name}-{os.getpid()}-{folder.name}@localhost"

    def ready() -> bool:
        return bool(current_app.control.ping(destination=[host], timeout=0.5))

    options = [
        "--concurrency=1",
        "--without-gossip",
        "--without-mingle",
        f"--hostname={host}",
        "--loglevel=INFO",
    ]
    process = Process(
        ["celery", "-A", "config", "worker", *options],
        server_environment(broker, **environment),
        folder / f"{name}.log",
        ready,
    )
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def worker(broker: str, transactional_db: None, tmp_path: Path) -> Iterator[Process]:
    """A real Celery worker with one child, working on the committed rows of this test."""
    with current_app.connection_for_write() as link:
        current_app.control.purge(connection=link)
    with running_worker(broker, tmp_path) as process:
        yield process


class WebServer(Process):
    url: str


@contextlib.contextmanager
def running_web(
    broker: str,
    folder: Path,
    static_root: Path,
    name: str = "web",
    workers: int = 1,
    ready_address: str = "/health/ready/",
    **environment: str,
) -> Iterator[WebServer]:
    """gunicorn with as many processes as `workers`; what it says goes to `name`.log in the folder."""
    from config.embedded.home import free_port

    port = free_port(18000 + 100 * PROCESS_NUMBER)  # two that look at once must not find the same one
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            with urllib.request.urlopen(f"{url}{ready_address}", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    options = [
        "--bind",
        f"127.0.0.1:{port}",
        "--workers",
        str(workers),
        "--threads",
        "4",
        "--no-control-socket",
    ]
    process = WebServer(
        ["gunicorn", "config.wsgi", *options],
        server_environment(broker, STATIC_ROOT=str(static_root), **environment),
        folder / f"{name}.log",
        ready,
    )
    process.url = url
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture
def web(broker: str, transactional_db: None, tmp_path: Path, static_root: Path) -> Iterator[WebServer]:
    """Real gunicorn on the committed rows of this test; `web.url` is its address."""
    with running_web(broker, tmp_path, static_root) as process:
        yield process


@pytest.fixture(scope="session")
def static_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static files as a web server of production serves them: collected, hashed, compressed."""
    from django.test import override_settings

    folder = tmp_path_factory.mktemp("static")
    backend = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    with override_settings(STATIC_ROOT=folder, STORAGES={**django_settings.STORAGES, "staticfiles": backend}):
        call_command("collectstatic", interactive=False, verbosity=0)
    return folder

"""`manage.py demo`: the whole product on this machine, with a demo eval set in it."""

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from config import embedded
from config.demo_evalset import SLUG, SignIn, make_demo, sign_ins
from config.embedded.home import EmbeddedError, Home, free_port, open_lock, try_lock
from config.supervise import Supervisor, wait_until_healthy, write_configuration
from evalsets.models import EvalSet

PREFERRED_PORT = 8000
START_SECONDS = 180  # a busy machine takes its time


class Command(BaseCommand):
    help = (
        "Run Fairpool here: the database, the broker, the web server and a worker, with a demo eval set to look at. "
        "Everything it stores is in FAIRPOOL_HOME. Ctrl-C stops it."
    )
    requires_system_checks = []  # the migrations and the web server run them

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="Address to listen on (default: this machine only)."
        )
        parser.add_argument(
            "--port",
            type=int,
            default=PREFERRED_PORT,
            help=f"Port of the web pages (default {PREFERRED_PORT}); the next free one is taken if it is in use.",
        )

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        started = time.monotonic()
        home = Home(settings.FAIRPOOL_HOME)
        try:
            home.prepare()
            lock = open_lock(home.run / "demo.lock")
            if not try_lock(lock, fcntl.LOCK_EX):
                self._say_it_runs(home)
                return
            self._run(home, host, port, started)
        except EmbeddedError as error:
            raise CommandError(str(error)) from error

    def _say_it_runs(self, home: Home) -> None:
        try:
            running = json.loads((home.run / "demo.json").read_text())
        except (OSError, ValueError):
            self.stdout.write(f"Fairpool is starting already, with its data in {home.path}.")
        else:
            self.stdout.write(
                f"Fairpool is running already at {running['url']} (process {running['pid']}), "
                f"with its data in {home.path}."
            )

    def _run(self, home: Home, host: str, port: int, started: float) -> None:
        record = home.run / "demo.json"
        record.unlink(missing_ok=True)
        # SIGINT too: a shell that runs us in the background has it ignored, and that would be inherited.
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, _interrupt)
        servers: list[embedded.Server] = []
        supervisor = None
        try:
            if settings.EMBEDDED:
                servers.append(embedded.server(embedded.Postgres, settings.FAIRPOOL_HOME))
            if not os.environ.get("REDIS_URL"):
                servers.append(embedded.server(embedded.Valkey, settings.FAIRPOOL_HOME))
            for server in servers:
                self._say(f"Starting {server.name} …")
                server.ensure()
            people = self._prepare_database()
            port = free_port(port, host)
            url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"  # noqa: S104 (only compared)
            self._say("Starting the web server and a worker …")
            supervisor = Supervisor(write_configuration(home, host, port), _environment(port))
            if not wait_until_healthy(url, START_SECONDS):
                log = home.logs / "web.log"
                last = "\n".join(log.read_text(errors="replace").splitlines()[-8:]) if log.exists() else ""
                raise CommandError(f"The web server does not answer at {url}. Its log: {log}\n{last}")
            record.write_text(json.dumps({"url": url, "pid": os.getpid()}))
            self._welcome(url, home.path, people, time.monotonic() - started)
            while True:
                time.sleep(1)
                supervisor.check()
                for server in servers:
                    self._ensure(server)
        except KeyboardInterrupt:
            self._say("\nStopping …")
        finally:
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signum, signal.SIG_IGN)
            if supervisor:
                supervisor.stop()
            record.unlink(missing_ok=True)
            for server in servers:
                server.release()
        self._say("Fairpool has stopped. Everything is kept; the next start goes on from here.")

    def _ensure(self, server: embedded.Server) -> None:
        try:
            server.ensure()
        except EmbeddedError as error:
            self.stderr.write(str(error))

    def _prepare_database(self) -> list[SignIn]:
        """Migrate, and make the demo eval set at the first start. Returns who can sign in to it."""
        self._say("Bringing the database up to date …")
        call_command("migrate", interactive=False, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        if not EvalSet.objects.filter(slug=SLUG).exists():
            self._say("Making the demo eval set …")
        people = sign_ins(make_demo())
        database = connections[DEFAULT_DB_ALIAS]
        assert isinstance(database, DatabaseWrapper)
        database.close()
        database.close_pool()  # the rest is the web server's and the worker's work
        return people

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _welcome(self, url: str, home: Path, people: list[SignIn], seconds: float) -> None:
        python = os.path.relpath(sys.executable) if Path.cwd() == settings.BASE_DIR else sys.executable
        self._say(
            f"\nFairpool runs at {url} (ready after {seconds:.1f} s).\n\nSign in to the demo eval set as"
        )
        for person in people:
            self._say(f"  {person.username:8} {person.role:10} password: {person.password or '(their own)'}")
        self._say(
            f"\nMake yourself a user:        {python} manage.py create_user NAME\n"
            f"Make a lead of an eval set:  {python} manage.py create_user NAME --lead-of SLUG\n"
            f"Data, uploads and logs:      {home}\n"
            "Ctrl-C stops everything.\n"
        )


def _environment(port: int) -> dict[str, str]:
    # Browsers keep cookies by host, whatever the port: two homes side by side must not sign each other's people out.
    cookies = {"SESSION_COOKIE_NAME": f"fairpool_session_{port}", "CSRF_COOKIE_NAME": f"fairpool_csrf_{port}"}
    return {**cookies, **os.environ}


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt

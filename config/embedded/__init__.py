"""The built-in servers: a real Postgres and a real Valkey from wheels, for machines that have none.

Nothing here is imported when DATABASE_URL is set. Settings use the three functions below; whoever connects to the
database starts Postgres through the database engine in `base.py`, so that a command which never connects starts
nothing. How long a server lives is told in `server.py`.
"""

from pathlib import Path
from typing import Any, TypeVar

from config.embedded.home import EmbeddedError, Home
from config.embedded.place import folder_outside
from config.embedded.postgres import Postgres
from config.embedded.server import Server
from config.embedded.valkey import Valkey

__all__ = [
    "EmbeddedError",
    "Home",
    "Postgres",
    "Server",
    "Valkey",
    "database_settings",
    "folder_outside",
    "redis_url",
    "secret_key",
    "server",
]

S = TypeVar("S", bound=Server)
_servers: dict[tuple[type[Server], Path], Server] = {}


def server(kind: type[S], home: Path) -> S:
    """This process' one object for the server of `kind` in the folder `home`."""
    found = _servers.setdefault((kind, home), kind(Home(home)))
    assert isinstance(found, kind)
    return found


def database_settings() -> dict[str, Any]:
    """Django's settings of the embedded database. Starts nothing; the engine does that at the first connection."""
    return {"ENGINE": "config.embedded", "NAME": Postgres.DATABASE}


def redis_url(home: Path) -> str:
    """Where the Valkey of `home` listens, or listened last. Starts nothing: `manage.py demo` and the tests do."""
    return server(Valkey, home).url()


def secret_key(home: Path) -> str:
    """Django's SECRET_KEY of this home, made at the first call and kept."""
    return Home(home).secret("secret_key")

"""Django's database engine for the embedded Postgres: starts the server when somebody connects, not before."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.db.backends.postgresql import base
from django.db.backends.postgresql.client import DatabaseClient as PostgresClient

from config.embedded import EmbeddedError, Postgres, server


def ensure_database() -> Postgres:
    """The embedded Postgres of this home, running until this process ends.

    Raises CommandError, which every management command shows as its message alone."""
    postgres = server(Postgres, settings.FAIRPOOL_HOME)
    try:
        postgres.ensure()
    except EmbeddedError as error:
        raise CommandError(str(error)) from error
    return postgres


class DatabaseClient(PostgresClient):
    """`manage.py dbshell` with the psql that comes with the embedded server."""

    def runshell(self, parameters: Iterable[str]) -> None:
        postgres = ensure_database()
        self.connection.settings_dict.update(_address(postgres))
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{Path(postgres.program('psql')).parent}"
        super().runshell(parameters)


class DatabaseWrapper(base.DatabaseWrapper):
    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        self.settings_dict.update(_address(ensure_database()))
        return super().get_connection_params()


def _address(postgres: Postgres) -> dict[str, str]:
    return {
        "HOST": "127.0.0.1",
        "PORT": str(postgres.port),
        "USER": postgres.USER,
        "PASSWORD": postgres.password,
    }

"""Backup and restore of the database with Postgres' own pg_dump and pg_restore."""

import os
import shutil
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection

from evalsets.errors import Refused


def dump(file: Path) -> None:
    """Write a consistent snapshot of the database to `file`, in pg_dump's compressed custom format."""
    # Under another name until it is whole: a backup that was cut off must not look like one.
    draft = file.with_name(f"{file.name}.part")
    try:
        _run("pg_dump", "--format=custom", f"--file={draft}", _database())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def restore(file: Path) -> None:
    """Fill the empty database from a dump. Raises Refused where there are tables already."""
    if not file.is_file():
        raise Refused(f"There is no file {file}.")
    tables = connection.introspection.table_names()
    if tables:
        raise Refused(
            f"The database is not empty: it has {len(tables)} tables. Restoring would mix two states. "
            "Restore into another database or FAIRPOOL_HOME, or move this one's data away first."
        )
    connection.close()
    _run(
        "pg_restore",
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        "--no-comments",  # who does not own an extension may not comment on it
        f"--dbname={_database()}",
        str(file),
    )


def _database() -> str:
    return str(connection.settings_dict["NAME"])


def _run(tool: str, *arguments: str) -> None:
    """Run one of Postgres' tools on the database of the settings. Raises Refused with what it says."""
    connection.ensure_connection()  # the embedded server is started by it, and its address known only then
    address = connection.settings_dict
    names = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}
    environment = {**os.environ, **{names[key]: str(address[key]) for key in names if address[key]}}
    done = subprocess.run(
        [_program(tool), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Refused(f"{tool} failed: {done.stderr.strip()}")


def _program(tool: str) -> str:
    if settings.EMBEDDED:
        from config import embedded

        return embedded.server(embedded.Postgres, settings.FAIRPOOL_HOME).program(tool)
    found = shutil.which(tool)
    if found is None:
        raise Refused(f"{tool} is not installed here (Debian and Ubuntu: apt install postgresql-client).")
    return found

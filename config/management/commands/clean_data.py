"""`manage.py clean_data`: forget everything the embedded mode has stored."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser

from config import embedded


class Command(BaseCommand):
    help = "Delete the embedded database, uploads and logs of this FAIRPOOL_HOME, after asking. There is no way back."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def handle(self, *, yes: bool, **options: Any) -> None:
        home = embedded.Home(settings.FAIRPOOL_HOME)
        servers = [embedded.server(kind, home.path) for kind in (embedded.Postgres, embedded.Valkey)]
        if any(server.is_kept() for server in servers):
            raise CommandError(
                f"Fairpool is running with the data in {home.path}. Stop it first (Ctrl-C there)."
            )
        # What we made, and nothing else: FAIRPOOL_HOME may be a folder that somebody uses for more.
        found = [path for name in embedded.Home.CONTENTS if (path := home.path / name).exists()]
        if os.geteuid() == 0 and embedded.folder_outside(home).exists():
            found.append(embedded.folder_outside(home))
        if not found:
            self.stdout.write("There is nothing to delete.")
            return
        self.stdout.write("This deletes the database with every judgment in it, the uploads and the logs:")
        for path in found:
            self.stdout.write(f"  {path} ({_size(path) / 1024**2:,.1f} MiB)")
        if not yes:
            if not sys.stdin.isatty():
                raise CommandError("Nothing was deleted: run it on a terminal, or with --yes.")
            if input("Type yes to delete them: ").strip() != "yes":
                self.stdout.write("Nothing was deleted.")
                return
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.stdout.write("Deleted.")


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    return sum(file.lstat().st_size for file in (path, *path.rglob("*")) if not file.is_dir())

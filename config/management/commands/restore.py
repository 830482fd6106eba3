from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser

from config.backup import restore
from evalsets.commands import FairpoolCommand


class Command(FairpoolCommand):
    help = "Fill an empty database from a file that `backup` or pg_dump made, and bring it up to date (pg_restore)."
    uses_tables = False

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=Path, metavar="FILE")

    def perform(self, **options: Any) -> dict[str, Any]:
        file: Path = options["file"]
        restore(file)
        call_command("migrate", interactive=False, verbosity=0)
        return {"restored": str(file)}

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(f"Restored from {document['restored']}.")

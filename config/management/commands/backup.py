from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from config.backup import dump
from evalsets.commands import FairpoolCommand


class Command(FairpoolCommand):
    help = "Write a consistent snapshot of the whole database to a file, while everything runs (pg_dump)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=Path, metavar="FILE")

    def perform(self, **options: Any) -> dict[str, Any]:
        file: Path = options["file"]
        dump(file)
        return {"file": str(file), "bytes": file.stat().st_size}

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(f"{document['file']}: {document['bytes'] / 1024**2:,.1f} MiB")

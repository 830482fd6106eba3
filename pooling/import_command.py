"""What the import commands have in common: the file, the format, `--check`, and how the report is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, find_user
from evalsets.errors import BadInput
from evalsets.models import EvalSet, User
from evalsets.progress import Progress, terminal_progress
from pooling.formats import FORMATS, Kind, format_names
from pooling.services.importing import ImportReport, report_text


class ImportCommand(FairpoolCommand):
    """An import from a file. A subclass says which `kind`, adds its own options and calls its service in `bring_in`."""

    kind: Kind

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        kwargs.setdefault("epilog", formats_text(self.kind))
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument(
            "file",
            metavar="FILE",
            help="Plain, gzip, zstd, or a zip with one file in it; told by its content.",
        )
        parser.add_argument(
            "--format",
            metavar="FORMAT",
            help=f"Take the file for this format rather than for what its content looks like: "
            f"{', '.join(format_names(self.kind))}.",
        )
        parser.add_argument("--check", action="store_true", help="Report and write nothing.")
        parser.add_argument("--by", metavar="USER", help="Who is recorded as having done it.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["evalset"])
        by = find_user(options["by"]) if options["by"] else None
        with terminal_progress("byte") as progress:
            report = self.bring_in(evalset, by, progress, options)
        if report.has_faults():  # a check: the services raise it themselves otherwise
            raise BadInput(report_text(report.as_json()), report=report.as_json())
        return report.as_json()

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        raise NotImplementedError

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(report_text(document))

    @staticmethod
    def common(options: dict[str, Any]) -> dict[str, Any]:
        """The arguments that every import service takes from the command line."""
        return {"source": Path(options["file"]), "format": options["format"], "check": options["check"]}


def formats_text(kind: Kind) -> str:
    return "Formats: " + " ".join(f"{known.name}: {known.description}" for known in FORMATS[kind])

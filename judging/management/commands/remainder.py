from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from evalsets.errors import BadInput
from judging.services.remainder import remainder_lines
from pooling.services.finding import find_pool


class Command(FairpoolCommand):
    help = (
        "Write what is left to judge of a pool as JSONL, one pair a line with question and text, for a team that "
        "judges elsewhere. Fill in `grade` (or `cannot_judge`), and bring it back with import_verdicts."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument("--pool", metavar="POOL", required=True, help="The pool's name.")
        parser.add_argument(
            "--output", metavar="FILE", required=True, help="Where to write it; - is standard output."
        )

        parser.add_argument(
            "--without-copies",
            action="store_true",
            help="Leave out chunks of a class of which another member is judged for the question.",
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        pool = find_pool(find_evalset(options["evalset"]), options["pool"])
        lines = remainder_lines(pool, without_copies=options["without_copies"])
        if options["output"] == "-":
            if options["json"]:
                raise BadInput("With --json, standard output is for the document; give --output a file.")
            written = self._copy(lines, sys.stdout)
        else:
            written = self._write(Path(options["output"]), lines)
        return {"pool": pool.name, "remainder": written, "output": options["output"]}

    def _write(self, path: Path, lines: Iterator[str]) -> int:
        # Under another name first, so that a half-written file never stands where a whole one is expected.
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with partial.open("w", encoding="utf-8") as file:
                written = self._copy(lines, file)
            partial.replace(path)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}.") from None
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
        return written

    def _copy(self, lines: Iterator[str], file: TextIO) -> int:
        written = 0
        for written, line in enumerate(lines, 1):  # noqa: B007 (the count of lines is what is wanted)
            file.write(line)
        return written

    def show(self, document: dict[str, Any]) -> None:
        self.stderr.write(f"{document['remainder']:,} pairs of pool {document['pool']} are left to judge.")

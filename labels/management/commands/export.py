from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from evalsets.errors import BadInput
from labels.exports.formats import FORMATS, export_format
from labels.exports.trec import run_lines
from labels.services.finding import find_release, find_run


class Command(FairpoolCommand):
    help = (
        "Write a release's labels, or a run, to a file. The same release gives the same bytes every time. "
        "An existing file is replaced only once the new one is whole."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--release", type=int, metavar="N", help="The release's number; the latest if not given."
        )
        what.add_argument("--run", metavar="RUN", help="Write this run in TREC form instead of labels.")
        purposes = " ".join(f"{item.name}: {item.purpose}" for item in FORMATS.values())
        parser.add_argument(
            "--format", default="qrels", choices=list(FORMATS), help=purposes.replace("%", "%%")
        )
        parser.add_argument(
            "--output",
            required=True,
            metavar="FILE",
            help="Where to write; - is standard output (without --json).",
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        if options["output"] == "-" and options["json"]:
            raise BadInput("--output - and --json would both write to standard output; give a file name.")
        if options["run"]:
            run = find_run(evalset, options["run"])
            size = _write(run_lines(run), options["output"])
            return {"run": run.name, "hash": run.content_hash, "output": options["output"], "bytes": size}
        release = find_release(evalset, options["release"])
        size = _write(export_format(options["format"]).stream(release), options["output"])
        return {
            "release": release.number,
            "hash": release.content_hash,
            "format": options["format"],
            "output": options["output"],
            "bytes": size,
        }

    def show(self, document: dict[str, Any]) -> None:
        what = (
            f"run {document['run']}"
            if "run" in document
            else f"release {document['release']} as {document['format']}"
        )
        self.stderr.write(f"Wrote {what} to {document['output']}: {document['bytes']:,} bytes.")


def _write(stream: Iterator[bytes], output: str) -> int:
    """Write the stream to the file of that name, whole or not at all, and return how many bytes."""
    if output == "-":
        return sum(sys.stdout.buffer.write(block) for block in stream)
    target = Path(output)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise BadInput(f"Cannot write to {target}: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            size = sum(file.write(block) for block in stream)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as error:
        os.unlink(name)
        if isinstance(error, OSError) and error.errno:
            raise BadInput(f"Cannot write to {target}: {error.strerror}. Nothing of it was kept.") from error
        raise
    return size


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

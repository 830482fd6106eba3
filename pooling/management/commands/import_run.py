from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evalsets.errors import BadInput
from evalsets.models import EvalSet, User
from evalsets.progress import Progress
from evalsets.strict_json import parse_document
from pooling.import_command import ImportCommand
from pooling.models import Run
from pooling.services.importing import ImportReport, import_run


class Command(ImportCommand):
    kind = "run"
    help = (
        "Import a run: what one system returned for all questions once. Rankings are ordered by score, highest first; "
        "equal scores by rank, then by line (trec_eval breaks ties by the ID instead; here the order stays the one "
        "that users saw)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--system", metavar="NAME", help="The system; else the file's tag, else its name."
        )
        parser.add_argument(
            "--run",
            metavar="NAME",
            help="The run; else the system's name, with a number where that is taken.",
        )
        parser.add_argument("--stage", choices=Run.Stage.values, help="Default: reranked.")
        parser.add_argument("--k", type=int, metavar="K", help="How many chunks were asked for.")
        parser.add_argument("--system-version", metavar="TEXT", help="The system's version.")
        parser.add_argument("--date", metavar="YYYY-MM-DD", help="The day the system ran. Default: today.")
        parser.add_argument(
            "--config", metavar="FILE", help="A JSON object: model, index, chunker, corpus_snapshot, …"
        )
        parser.add_argument(
            "--order", choices=["score", "rank"], help="What decides the order. Default: score."
        )
        parser.add_argument(
            "--duplicates",
            choices=["keep-first"],
            help="Keep the first place of a chunk that stands twice in a ranking.",
        )
        parser.add_argument(
            "--unknown-questions",
            choices=["skip"],
            help="Leave out questions that the eval set does not have.",
        )
        parser.add_argument(
            "--missing",
            choices=["empty"],
            help="Declare questions that the file does not have to be empty rankings.",
        )

    def bring_in(
        self, evalset: EvalSet, by: User | None, progress: Progress, options: dict[str, Any]
    ) -> ImportReport:
        names = ("system", "run", "stage", "k", "date", "order", "duplicates", "unknown_questions", "missing")
        return import_run(
            evalset=evalset,
            by=by,
            progress=progress,
            version=options["system_version"],
            config=read_config(options["config"]),
            **{name: options[name] for name in names},
            **self.common(options),
        )


def read_config(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        config = parse_document(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"The configuration {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BadInput(f"The configuration {path} is not JSON: {error}.") from None
    if not isinstance(config, dict):
        raise BadInput(f"The configuration {path} is not a JSON object.")
    return config

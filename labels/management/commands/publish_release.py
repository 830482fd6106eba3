from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from evalsets.progress import terminal_progress
from labels.services.publishing import publish_release


class Command(FairpoolCommand):
    help = (
        "Freeze the labels of an eval set as its next numbered release. Where nothing has changed since the latest "
        "release, none is made and that one is named."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "--notes", default="", metavar="TEXT", help="What readers of the release should know."
        )
        parser.add_argument(
            "--include-models",
            action="store_true",
            help="Let grades of outside judges (models) count; every file of the release then says so.",
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        with terminal_progress("question") as progress:
            published = publish_release(
                evalset=evalset,
                by=None,
                notes=options["notes"],
                include_models=options["include_models"],
                progress=progress,
            )
        return published.as_json()

    def show(self, document: dict[str, Any]) -> None:
        if document["created"]:
            self.stdout.write(f"Published release {document['release']} ({document['hash']}).")
        else:
            self.stdout.write(
                f"Nothing has changed since release {document['release']} ({document['hash']})."
            )
        self.stdout.write(
            f"{document['labels']} labels of {document['questions']} questions, {document['classes']} classes; "
            f"without a label: {document['contested']} contested, {document['skipped_only']} skipped only."
        )

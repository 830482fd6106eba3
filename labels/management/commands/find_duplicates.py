from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, find_user
from evalsets.progress import terminal_progress
from labels.services.duplicates import find_duplicates, join_equal


class Command(FairpoolCommand):
    help = (
        "Look for chunks that are copies of each other, among what has been pooled or judged. People decide each "
        "pair on the page Copies; pairs of equal texts can be called the same content here, in a person's name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument(
            "--join-equal",
            metavar="USER",
            help="Say in this user's name of every pair of texts, equal but for case, space and punctuation, that it "
            "has the same content. Pairs that verdicts or periods of validity keep apart are left alone.",
        )

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        user = find_user(options["join_equal"]) if options["join_equal"] else None
        with terminal_progress("chunk") as progress:
            found = find_duplicates(evalset=evalset, by=user, progress=progress)
        document: dict[str, Any] = found._asdict()
        if user is not None:
            with terminal_progress("pair") as progress:
                document |= join_equal(evalset=evalset, by=user, progress=progress)._asdict()
        document["to_decide"] = evalset.duplicate_candidates.open().count()
        return document

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"Looked at {document['chunks']:,} chunks: {document['equal']:,} pairs of equal texts, "
            f"{document['near']:,} of near ones."
        )
        if "joined" in document:
            self.stdout.write(f"{document['joined']:,} pairs were joined.")
            for refusal in document["refused"]:
                self.stdout.write(f"  left apart: {refusal}")
        self.stdout.write(f"{document['to_decide']:,} pairs wait for a person.")

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.template.defaultfilters import filesizeformat
from django.utils import timezone

from evalsets.commands import FairpoolCommand
from evalsets.errors import BadInput, CannotStore
from evalsets.services.uploads import clean_uploads
from evalsets.storing import store_faults, why


class Command(FairpoolCommand):
    help = "Delete files that were sent to be imported, once they are old and their jobs have ended."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--days", type=int, default=30, metavar="N", help="How old, in days (default: 30)."
        )
        parser.add_argument("--check", action="store_true", help="Say what would go; delete nothing.")

    def perform(self, **options: Any) -> dict[str, Any]:
        days: int = options["days"]
        if not 0 <= days <= 36500:
            raise BadInput(f"--days is a whole number from 0 to 36500; got {days}.")
        try:
            cleaned = clean_uploads(before=timezone.now() - timedelta(days=days), check=options["check"])
        except store_faults() as fault:
            raise CannotStore(f"The store of uploads says: {why(fault)}. Run it again.") from fault
        return {**asdict(cleaned), "deleted": not options["check"]}

    def show(self, document: dict[str, Any]) -> None:
        did = "Deleted" if document["deleted"] else "Would delete"
        self.stdout.write(
            f"{did} the files of {document['uploads']} uploads ({filesizeformat(document['size'])}) "
            f"and {document['strays']} that belong to none."
        )

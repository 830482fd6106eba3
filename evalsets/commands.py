"""What all of Fairpool's management commands have in common: `--json`, exit statuses, finding things by name."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsets.errors import BadInput, Refused
from evalsets.models import EvalSet, User

EXIT_BAD_INPUT = 3


class FairpoolCommand(BaseCommand):
    """A command whose `perform` returns a JSON-ready document; `show` prints it for people.

    Exit status 0: done; 3: bad input, with a report. A subclass may set `self.exit_status` to another one.
    """

    exit_status = 0

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json",
            action="store_true",
            help="Print one JSON document on standard output; messages go to standard error.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = self.perform(**options)
        except (BadInput, Refused, EvalSet.DoesNotExist, User.DoesNotExist) as error:
            report = getattr(error, "report", None)
            if options["json"]:
                self.stdout.write(json.dumps(report or {"error": str(error)}, ensure_ascii=False))
            raise CommandError(str(error), returncode=EXIT_BAD_INPUT) from None
        if options["json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False))
        else:
            self.show(document)
        if self.exit_status:
            raise SystemExit(self.exit_status)

    def perform(self, **options: Any) -> dict[str, Any]:
        """Do the work and return the document that `--json` prints."""
        raise NotImplementedError

    def show(self, document: dict[str, Any]) -> None:
        """Print the document for people."""
        raise NotImplementedError


def find_evalset(slug: str) -> EvalSet:
    """The eval set of that slug; BadInput with the known ones where there is none."""
    evalset = EvalSet.objects.filter(slug=slug).first()
    if evalset is None:
        known = ", ".join(EvalSet.objects.order_by("slug").values_list("slug", flat=True)[:20]) or "none yet"
        raise BadInput(f"There is no eval set {slug!r}. Known: {known}.")
    return evalset


def find_user(username: str) -> User:
    """The user of that name; BadInput where there is none."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise BadInput(f"There is no user {username!r}. `manage.py create_user {username}` makes one.")
    return user

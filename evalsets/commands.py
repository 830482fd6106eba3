"""What all of Fairpool's management commands have in common: `--json`, exit statuses, finding things by name."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from evalsets.errors import BadInput, Refused
from evalsets.models import Chunk, EvalSet, Member, User
from evalsets.strict_json import parse_document

EXIT_NO, EXIT_NOT_READ, EXIT_BAD_INPUT = 1, 2, 3
EXIT_FAULT = 70  # of our own, as sysexits.h has it
EXIT_BROKEN_PIPE = 141  # as a shell tells it: 128 + SIGPIPE


class FairpoolCommand(BaseCommand):
    """A command whose `perform` returns a JSON-ready document; `show` prints it for people.

    Exit status 0: done; 3: bad input, with a report; 70: a fault of ours. A subclass may set `self.exit_status` to 1 or
    2 where that is its answer; nothing else ends with these.
    """

    exit_status = 0
    uses_tables = True  # False for a command that needs none, or makes them itself

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--json",
            action="store_true",
            help="Print one JSON document on standard output; messages go to standard error.",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except SystemExit as end:
            if end.code == self.exit_status:
                raise
            if end.code == EXIT_NO:  # Django's own, for what is wrong with us
                raise SystemExit(EXIT_FAULT) from None
            if end.code == EXIT_NOT_READ:  # argparse's, for a wrong call
                raise SystemExit(EXIT_BAD_INPUT) from None
            raise
        except BrokenPipeError:  # whoever read the output has had enough, as `head` has
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(EXIT_BROKEN_PIPE)
        except Exception:
            traceback.print_exc()
            sys.exit(EXIT_FAULT)

    def handle(self, *args: Any, **options: Any) -> None:
        if self.uses_tables:
            make_tables()
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

    def confirm(self, will: str, *, yes: bool) -> None:
        """Say on standard error what cannot be undone, and ask unless `--yes` was given.

        Raises BadInput where nobody agrees, or there is no terminal to ask on: then nothing may be done.
        """
        self.stderr.write(will)
        if yes:
            return
        if not sys.stdin.isatty():
            raise BadInput("Nothing was done: this cannot be undone. Run it on a terminal, or with --yes.")
        self.stderr.write("Type yes to do it.")
        if input().strip() != "yes":
            raise BadInput("Nothing was done.")


def add_yes(parser: CommandParser) -> None:
    """Add the option that answers `FairpoolCommand.confirm`."""
    parser.add_argument("--yes", action="store_true", help="Do not ask before what cannot be undone.")


def add_runs(parser: CommandParser, help: str, *, metavar: str = "RUN") -> None:
    """Add `--run`, which takes several and may be given several times, as the option `runs`."""
    parser.add_argument(
        "--run", dest="runs", nargs="+", action="extend", required=True, metavar=metavar, help=help
    )


def add_by(parser: CommandParser) -> None:
    """Add whose act it is; `lead_of` finds them."""
    parser.add_argument("--by", metavar="USER", help="The lead who is recorded as having done it.")


def make_tables() -> None:
    """Make the tables of a new embedded database; CommandError where a database of one's own has none."""
    if "django_migrations" in connection.introspection.table_names():
        return
    if not settings.EMBEDDED:
        raise CommandError("The database has no tables yet; run `manage.py migrate` first.")
    call_command("migrate", interactive=False, verbosity=0)


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


def find_lead(evalset: EvalSet, username: str) -> User:
    """The user of that name; BadInput where there is none or they do not lead the eval set."""
    user = find_user(username)
    if evalset.role_of(user) != Member.Role.LEAD:
        raise BadInput(f"{username} does not lead {evalset.slug}; this is done by a lead.")
    return user


def lead_of(evalset: EvalSet, options: dict[str, Any]) -> User | None:
    """The lead that `--by` names; None, which stands for the command line, where it was not given."""
    return find_lead(evalset, options["by"]) if options["by"] else None


def find_chunk(evalset: EvalSet, external_id: str) -> Chunk:
    """The chunk of that ID; BadInput where there is none."""
    chunk = evalset.chunks.select_related("evalset").filter(external_id=external_id).first()
    if chunk is None:
        raise BadInput(
            f"There is no chunk {external_id!r} in {evalset.slug}. IDs are exact, upper and lower case too."
        )
    return chunk


def read_scale(path: str) -> Any:
    """The JSON document of a file that holds a scale; BadInput where it cannot be read."""
    try:
        return parse_document(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"The scale {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BadInput(f"The scale {path} is not JSON: {error}.") from None

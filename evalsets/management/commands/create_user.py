from __future__ import annotations

import getpass
import secrets
import sys
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from evalsets.commands import FairpoolCommand, find_evalset
from evalsets.errors import BadInput
from evalsets.models import Member
from evalsets.services.members import add_member
from evalsets.services.users import create_user


class Command(FairpoolCommand):
    help = (
        "Make a user who can sign in, with a role in eval sets. On a terminal it asks for the password; "
        "left empty, or without a terminal, a password is made and printed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("username", metavar="NAME", help="What they sign in with.")
        for role in Member.Role:
            parser.add_argument(
                f"--{role}-of",
                action="append",
                default=[],
                metavar="SLUG",
                help=f"Make them {role.label.lower()} of this eval set; may be given again for others.",
            )
        parser.add_argument(
            "--full-name", default="", help="Shown in place of NAME, for example 'Carol Reyes'."
        )
        parser.add_argument("--email", default="")
        parser.add_argument("--superuser", action="store_true", help="May do everything in every eval set.")
        parser.add_argument("--generate-password", action="store_true", help="Make a password; do not ask.")

    def perform(self, **options: Any) -> dict[str, Any]:
        memberships = [(find_evalset(slug), role) for role in Member.Role for slug in options[f"{role}_of"]]
        ask = sys.stdin.isatty() and not options["generate_password"] and not options["json"]
        typed = _ask_for_password(options["username"]) if ask else ""
        password = typed or secrets.token_urlsafe(12)
        with transaction.atomic():
            user = create_user(
                username=options["username"],
                password=password,
                email=options["email"],
                full_name=options["full_name"],
                superuser=options["superuser"],
            )
            for evalset, role in memberships:
                add_member(evalset=evalset, username=user.username, role=role, by=None)
        return {
            "username": user.username,
            "password": None if typed else password,
            "roles": [{"evalset": evalset.slug, "role": str(role)} for evalset, role in memberships],
        }

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(f"{document['username']} can sign in now.")
        if document["password"]:
            self.stdout.write(f"Password, shown this once: {document['password']}")
        for item in document["roles"]:
            self.stdout.write(f"{item['role'].capitalize()} of {item['evalset']}.")
        if not document["roles"]:
            self.stdout.write("No role in any eval set yet; they can make one of their own and lead it.")


def _ask_for_password(username: str) -> str:
    """What was typed twice, or "" for a password of our making."""
    first = getpass.getpass(f"Password for {username} (empty: make one): ")
    if first and getpass.getpass("Again: ") != first:
        raise BadInput("The two passwords differ; nothing was made.")
    return first

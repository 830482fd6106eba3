from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, find_user
from evalsets.models import Member
from evalsets.services.tokens import create_token


class Command(FairpoolCommand):
    help = (
        "Make an API token for one eval set, in the name of a lead of it. The token is printed this once; only its "
        "hash is stored. What is done with it is recorded as done by the token of that lead."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("--user", required=True, metavar="USER", help="The lead in whose name it acts.")
        parser.add_argument("--name", required=True, help="What it is for, such as 'ci'.")
        parser.add_argument(
            "--role", choices=Member.Role.values, required=True, help="The most that it may do."
        )
        parser.add_argument("--days", type=int, metavar="N", help="It expires after N days. Default: never.")

    def perform(self, **options: Any) -> dict[str, Any]:
        token, text = create_token(
            evalset=find_evalset(options["slug"]),
            by=find_user(options["user"]),
            name=options["name"],
            role=Member.Role(options["role"]),
            days=options["days"],
        )
        return {
            "token": text,
            "name": token.name,
            "evalset": token.evalset.slug,
            "user": token.user.username,
            "role": token.role,
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        }

    def show(self, document: dict[str, Any]) -> None:
        until = f"until {document['expires_at']}" if document["expires_at"] else "until it is revoked"
        self.stderr.write(
            "Token {name} of {user} for {evalset}, as {role}, ".format(**document) + f"{until}."
        )
        self.stderr.write("Shown this once:")
        self.stdout.write(document["token"])

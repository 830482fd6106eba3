from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset, find_user
from evalsets.errors import BadInput
from evalsets.services.tokens import revoke_token


class Command(FairpoolCommand):
    help = "End an API token for good. Programs that still use it are refused from their next request on."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("name", metavar="NAME", help="The token's name.")
        parser.add_argument(
            "--user", metavar="USER", help="Whose token; needed where two leads use one name."
        )
        parser.add_argument("--by", metavar="USER", help="Who is recorded as having done it.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        tokens = evalset.tokens.filter(revoked_at__isnull=True).select_related("evalset", "user")
        found = [token for token in tokens if token.name == options["name"]]
        if options["user"]:
            user = find_user(options["user"])
            found = [token for token in found if token.user == user]
        if not found:
            known = ", ".join(f"{token.name} of {token.user.username}" for token in tokens) or "none"
            raise BadInput(f"{evalset.slug} has no such token that is not revoked. Those are: {known}.")
        if len(found) > 1:
            names = ", ".join(token.user.username for token in found)
            raise BadInput(
                f"Several leads have a token named {options['name']}: {names}. Say which with --user."
            )
        revoke_token(token=found[0], by=find_user(options["by"]) if options["by"] else None)
        return {"name": found[0].name, "evalset": evalset.slug, "user": found[0].user.username}

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write("Token {name} of {user} for {evalset} is revoked.".format(**document))

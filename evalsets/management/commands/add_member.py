from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, find_user, lead_of
from evalsets.models import Member
from evalsets.services.members import add_member


class Command(FairpoolCommand):
    help = "Give somebody who can sign in already a role in an eval set."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", help="The eval set.")
        parser.add_argument(
            "username", help="Somebody who has been made by create_user or on the members page."
        )
        parser.add_argument("--role", choices=Member.Role.values, required=True)
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        user = find_user(options["username"])
        evalset = find_evalset(options["slug"])
        member = add_member(
            evalset=evalset,
            username=user.username,
            role=Member.Role(options["role"]),
            by=lead_of(evalset, options),
        )
        return {"evalset": evalset.slug, "user": user.username, "role": member.role}

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write("{user} is {role} of {evalset} now.".format(**document))

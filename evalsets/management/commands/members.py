from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from evalsets.errors import BadInput
from evalsets.models import EvalSet, Member
from evalsets.services.members import change_role, remove_member


class Command(FairpoolCommand):
    help = "List who belongs to an eval set in which role, after changing one of them. add_member adds one."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("username", metavar="USER", nargs="?", help="The member to change.")
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--role", choices=Member.Role.values, help="The role USER has from now on.")
        act.add_argument("--remove", action="store_true", help="End the membership; USER's judgments stay.")
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        acts = options["role"] is not None or options["remove"]
        if acts != (options["username"] is not None):
            raise BadInput("To change a member name USER and one of --role and --remove.")
        if acts:
            member = _find_member(evalset, options["username"])
            by = lead_of(evalset, options)
            if options["remove"]:
                remove_member(member=member, by=by)
            else:
                change_role(member=member, role=Member.Role(options["role"]), by=by)
        members = evalset.members.select_related("user")
        return {
            "evalset": evalset.slug,
            "members": [{"user": member.user.username, "role": member.role} for member in members],
        }

    def show(self, document: dict[str, Any]) -> None:
        for member in document["members"]:
            self.stdout.write(f"{member['user']}  {member['role']}")


def _find_member(evalset: EvalSet, username: str) -> Member:
    members = evalset.members.select_related("user", "evalset")
    member = members.filter(user__username=username).first()
    if member is None:
        known = ", ".join(members.values_list("user__username", flat=True)[:20]) or "none yet"
        raise BadInput(f"{evalset.slug} has no member {username!r}. Known: {known}.")
    return member

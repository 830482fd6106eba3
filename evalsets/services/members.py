"""Who belongs to an eval set, in which role. An eval set always keeps a lead."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from evalsets.errors import Refused
from evalsets.models import EvalSet, Member, User
from evalsets.services.events import record_event


@transaction.atomic
def add_member(
    *, evalset: EvalSet, username: str, role: Member.Role, by: User | None, password: str = ""
) -> Member:
    """Give a user a role in the eval set; with a password, make the user first.

    Raises ValidationError for a password that is too weak and Refused for somebody who is a member already.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        user = User(username=username)
        User.username_validator(username)
        validate_password(password, user)
        user.set_password(password)
        user.save()
    member, created = Member.objects.get_or_create(evalset=evalset, user=user, defaults={"role": role})
    if not created:
        raise Refused(f"{user} is a member already, as {member.get_role_display().lower()}.")
    record_event(
        evalset=evalset,
        by=by,
        verb="member-added",
        summary=f"{user} became {member.get_role_display().lower()}.",
        details={"user": user.username, "role": role},
    )
    return member


@transaction.atomic
def change_role(*, member: Member, role: Member.Role, by: User | None) -> None:
    """Raises Refused where the set would be left without a lead."""
    _keep_a_lead(member, leaves=role != Member.Role.LEAD)
    before = member.get_role_display().lower()
    member.role = role
    member.save(update_fields=["role"])
    record_event(
        evalset=member.evalset,
        by=by,
        verb="member-role-changed",
        summary=f"{member.user} is {member.get_role_display().lower()} now, before: {before}.",
        details={"user": member.user.username, "role": role},
    )


@transaction.atomic
def remove_member(*, member: Member, by: User | None) -> None:
    """End a membership; what the person judged stays. Raises Refused for the last lead."""
    _keep_a_lead(member, leaves=True)
    record_event(
        evalset=member.evalset,
        by=by,
        verb="member-removed",
        summary=f"{member.user} is no longer a member.",
        details={"user": member.user.username, "role": member.role},
    )
    member.delete()


def _keep_a_lead(member: Member, *, leaves: bool) -> None:
    # The eval set's row is locked, so that two leads cannot each remove the other.
    EvalSet.objects.select_for_update().get(pk=member.evalset_id)
    leads = Member.objects.filter(evalset=member.evalset_id, role=Member.Role.LEAD)
    if leaves and member.role == Member.Role.LEAD and not leads.exclude(pk=member.pk).exists():
        raise Refused(f"{member.user} is the only lead. Make somebody else a lead first.")

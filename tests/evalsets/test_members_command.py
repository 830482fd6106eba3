"""The command `members`: roles changed and memberships ended."""

from __future__ import annotations

import pytest

from tests.commands import call, call_json

pytestmark = pytest.mark.django_db


def test_members_are_listed_and_changed(evalset, alice, carol, victor, capsys):
    _, document = call_json("members", "handbook", capsys=capsys)
    assert [(one["user"], one["role"]) for one in document["members"]] == [
        ("alice", "assessor"),
        ("carol", "lead"),
        ("victor", "viewer"),
    ]
    call("members", "handbook", "alice", "--role", "lead", "--by", "carol", capsys=capsys)
    status, out = call("members", "handbook", "victor", "--remove", capsys=capsys)
    assert (status, out) == (0, "alice  lead\ncarol  lead\n")
    events = evalset.events.order_by("pk").values_list("verb", "by__username")
    assert list(events) == [("member-role-changed", "carol"), ("member-removed", None)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["carol", "--remove"], "Carol is the only lead"),
        (["carol", "--role", "viewer"], "Carol is the only lead"),
        (["nobody", "--remove"], "has no member 'nobody'. Known: carol."),
        (["carol"], "one of --role and --remove"),
        (["--remove"], "name USER"),
    ],
)
def test_members_say_what_is_wrong(evalset, carol, capsys, arguments, message):
    status, document = call_json("members", "handbook", *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]

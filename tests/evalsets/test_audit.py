"""The audit page: what was done is found by words, by person and by day."""

from datetime import UTC, datetime

import pytest

AUDIT = "/e/handbook/audit/"


@pytest.fixture
def listed(evalset, alice, carol, client_for):
    """Lists the audit as an address asks for; three acts are in it, on three days of March."""
    for day, by, verb in ((1, alice, "first"), (2, carol, "second"), (3, carol, "third")):
        at = datetime(2026, 3, day, 23, 59, 59, tzinfo=UTC)
        evalset.events.create(by=by, verb=verb, summary=f"Did the {verb}.", at=at)
    client = client_for(carol)
    return lambda **address: [event.verb for event in client.get(AUDIT, address).context["page"]]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ({}, ["third", "second", "first"]),
        ({"sort": "when"}, ["first", "second", "third"]),
        ({"since": "2026-03-02"}, ["third", "second"]),
        ({"until": "2026-03-02"}, ["second", "first"]),
        ({"since": "2026-03-02", "until": "2026-03-02"}, ["second"]),
        ({"since": "2026-03-02", "q": "THIRD"}, ["third"]),
        ({"q": "alice"}, ["first"]),
        ({"since": "2026-02-31", "until": "9999-12-31"}, ["third", "second", "first"]),
        ({"since": "yesterday"}, ["third", "second", "first"]),
    ],
)
def test_what_was_done_is_found(listed, address, found) -> None:
    assert listed(**address) == found


def test_where_nothing_matches_all_is_offered(evalset, carol, client_for) -> None:
    page = client_for(carol).get(AUDIT, {"until": "2026-01-01"}).content.decode()
    assert 'Nothing that was done is like that. <a href="?">Show all</a>' in page
    assert 'name="until" value="2026-01-01"' in page

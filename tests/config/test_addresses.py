"""Addresses that somebody made up: an answer, and never a fault of ours."""

import pytest

pytestmark = pytest.mark.django_db

LISTS = [
    "questions",
    "chunks",
    "duplicates",
    "mappings",
    "systems",
    "pools",
    "batches",
    "releases",
    "jobs",
    "audit",
]


@pytest.mark.parametrize("name", LISTS)
def test_a_nul_in_an_address_is_a_bad_request(evalset, carol, client_for, name) -> None:
    lead = client_for(carol)
    assert lead.get(f"/e/handbook/{name}/?q=a").status_code == 200
    response = lead.get(f"/e/handbook/{name}/?q=a%00b")
    assert (response.status_code, "This request cannot be read" in response.content.decode()) == (400, True)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
@pytest.mark.parametrize(
    "days",
    ["since=0001-01-01&until=9999-12-31", "since=9999-12-30&until=9999-12-30", "since=2026-02-30&until=x"],
)
def test_any_days_of_the_audit_are_answered(evalset, carol, client_for, zone, days) -> None:
    lead = client_for(carol)
    lead.cookies["tz"] = zone
    assert lead.get(f"/e/handbook/audit/?{days}").status_code == 200

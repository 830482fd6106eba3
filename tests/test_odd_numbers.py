"""Numbers in addresses and fields that are none: pages answer as if they were not there."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsets.listing import number_in
from tests.judging.batches import batch_of

ENDLESS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("17", 17), ("0", 0), ("9" * 18, 10**18 - 1), ("9" * 19, 0), (ENDLESS, 0), ("", 0), (None, 0),
        ("-1", 0), ("1.0", 0), ("²", 0), ("١", 0), (" 1", 0), ("1_0", 0),
    ],
)  # fmt: skip
def test_a_number_is_what_an_id_can_be(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize("odd", [ENDLESS, "²", "٣", "1e3", "-1"])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("judging:batch-new", ["pool", "assessors"]),
        ("judging:pool-new", ["extends", "k", "page"]),
        ("labels:agreement", ["batch"]),
        ("labels:agreement-pairs", ["low", "high", "batch"]),
        ("labels:settle-next", ["after"]),
        ("labels:release-difference", ["a", "b"]),
        ("scoring:unjudged", ["release"]),
        ("scoring:reusability", ["analysis"]),
        ("scoring:stages", ["analysis"]),
        ("labels:question-list", ["page"]),
    ],
)
def test_a_page_takes_any_number(evalset, carol, client_for, name, fields, odd):
    query = dict.fromkeys(fields, f"{odd}-{odd}" if fields == ["after"] else odd)
    response = client_for(carol).get(reverse(name, args=[evalset.slug]), query)
    assert response.status_code in (200, 302, 404)


@pytest.mark.parametrize("odd", [ENDLESS, "²", "٣"])
def test_the_desk_takes_any_number(evalset, carol, alice, client_for, odd):
    batch = batch_of(evalset, {"q1": ["c1", "c2"]}, by=carol, assessors=[alice])
    client = client_for(alice)
    address = [evalset.slug, batch.pk]
    assert client.get(reverse("judging:desk", args=address), {"pair": odd}).status_code == 404
    answer = client.post(
        reverse("judging:desk-next", args=address),
        {"have": odd, "known": odd},
        headers={"Accept": "application/json"},
    )
    assert len(answer.json()["next"]) == 2
    highlight = client.post(reverse("judging:desk-highlight", args=address), {"pair": odd})
    assert highlight["Location"] == batch.desk_url

"""How often a grade and the next pair ask the database: the desk's speed rests on it."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judging.models import Batch, Judgment
from tests.judging.batches import batch_of, pair_of
from tests.judging.test_desk import address, ask


def statements(captured: CaptureQueriesContext) -> list[str]:
    """Without those that only mark where a transaction begins and ends."""
    return [
        query["sql"]
        for query in captured.captured_queries
        if query["sql"].split()[0] not in ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")
    ]


@pytest.fixture
def batch(evalset, alice, bob, carol) -> Batch:
    return batch_of(evalset, {"q1": [f"c{n}" for n in range(9)]}, by=carol, assessors=[alice, bob])


def test_a_grade_and_the_next_pair_take_twelve_statements(batch, alice, client_for):
    client = client_for(alice)
    first = ask(client, batch)
    have = [item["pair"] for item in first["next"]]
    question = first["next"][0]["question"]
    for number in range(3):
        fields = {"pair": have[0], "key": uuid.uuid4(), "as_user": alice.pk, "act": f"grade:{number}"}
        fields |= {"have": ",".join(map(str, have[1:])), "known": question, "revision": 1, "spans": "[]"}
        with CaptureQueriesContext(
            connection,
        ) as captured:
            response = client.post(
                address(batch, "desk-save"), fields, headers={"Accept": "application/json"}
            )
        answer = response.json()
        assert [item["pair"] for item in answer["next"]] == [pair_of(batch, "q1", f"c{4 + number}").pk]
        have = [*have[1:], answer["next"][0]["pair"]]
    assert Judgment.objects.count() == 3
    asked = statements(captured)
    assert len(asked) <= 12, "\n".join(asked)

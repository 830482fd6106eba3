"""Whether copies of what is judged are handed out again is the lead's choice, with what it saves beside it."""

import pytest
from django.core.management import call_command

from judging.batch_cost import Plan, batch_cost
from judging.models import Batch, ChunkClass, ClassMember
from judging.pool_report import POOL
from judging.services.batches import make_batch
from pooling.models import Pool
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.test_reading_pages import judge


@pytest.fixture
def pool(evalset, carol, alice) -> Pool:
    [question, _] = make_questions(evalset, "q1", "q2")
    chunks = make_chunks(evalset, "judged", "its-copy", "other")
    run = make_run(evalset, "bm25", {"q1": ["judged", "its-copy", "other"], "q2": ["its-copy"]})
    pool, _ = build_pool(evalset=evalset, name="pool", runs=[(run, 10)], by=carol)
    chunk_class = ChunkClass.objects.create(evalset=evalset)
    for chunk in chunks[:2]:
        ClassMember.objects.create(chunk_class=chunk_class, chunk=chunk)
    judge(evalset, question, "judged", 0)
    return pool


def pairs_of(batch: Batch) -> set[tuple[str, str]]:
    return set(batch.pairs.values_list("question__external_id", "chunk__external_id"))


@pytest.mark.parametrize(
    ("without_copies", "expected"),
    [
        (False, {("q1", "its-copy"), ("q1", "other"), ("q2", "its-copy")}),
        (True, {("q1", "other"), ("q2", "its-copy")}),
    ],
)
def test_a_batch_leaves_copies_out_where_asked(without_copies, expected, pool, carol, alice) -> None:
    cost = batch_cost(
        Plan(pool=pool, people=1, assessors=[], without_copies=without_copies),
        POOL.read(pool.evalset, pool.pk).value,
    )
    batch = make_batch(pool=pool, name="b", by=carol, assessors=[alice], without_copies=without_copies)
    assert pairs_of(batch) == expected
    assert (cost.pairs, cost.copies, cost.questions) == (len(expected), 1, 2)


def test_the_page_says_what_it_saves_and_does_it(pool, evalset, carol, alice, client_for) -> None:
    client = client_for(carol)
    page = client.get("/e/handbook/batches/new/", {"pool": pool.pk}).content.decode()
    assert "Leaving copies out saves it" in page
    data = {
        "pool": pool.pk,
        "name": "b",
        "assessors": [alice.pk],
        "without_copies": "on",
        "sharing": "by-question",
        "overlap": 1,
        "overlap_percent": 0,
        "lease_minutes": 30,
    }
    client.post("/e/handbook/batches/new/", data)
    assert pairs_of(Batch.objects.get()) == {("q1", "other"), ("q2", "its-copy")}


def test_the_pool_page_offers_the_choice_and_hands_it_on(pool, evalset, carol, client_for) -> None:
    client, address = client_for(carol), f"/e/handbook/pools/{pool.pk}/"
    page = client.get(address).content.decode()
    assert "It would save 1 of the 3 pairs" in page
    assert len(list(client.get(f"{address}remainder/").streaming_content)) == 3

    page = client.get(address, {"without_copies": "on"}).content.decode()

    assert "2 of 3 pairs are left to hand out or download: 1 saved." in page
    assert f"?pool={pool.pk}&amp;without_copies=on" in page
    assert len(list(client.get(f"{address}remainder/", {"without_copies": "on"}).streaming_content)) == 2


def test_the_command_does_it(pool, alice) -> None:
    call_command(
        "make_batch", "handbook", "pool", "--name", "b", "--assessor", "alice", "--without-copies", "--json"
    )
    assert pairs_of(Batch.objects.get()) == {("q1", "other"), ("q2", "its-copy")}

"""The eval set's home: where it stands, and the one next thing to do."""

import pytest

from config.home import evalset_overview, next_step
from evalsets.models import EvalSet
from judging.services.batches import make_batch
from labels.services.publishing import publish_release
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.test_reading_pages import judge


def step(evalset: EvalSet) -> str:
    return next_step(evalset, evalset_overview(evalset)).title


def test_the_way_from_nothing_to_a_comparison(evalset, alice, carol) -> None:
    assert step(evalset) == "Bring in the questions"
    [question] = make_questions(evalset, "q1")
    assert step(evalset) == "Bring in runs"
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2"]})
    assert step(evalset) == "Bring in the chunks"
    evalset.chunks.all().delete()
    make_chunks(evalset, "c1", "c2", "c3")
    run.rankings.update(chunk_ids=list(evalset.chunks.values_list("pk", flat=True)[:2]))
    assert step(evalset) == "Judge what bm25 found"
    judge(evalset, question, "c1", 0)
    judge(evalset, question, "c2", 3)
    pool, _ = build_pool(
        evalset=evalset, name="more", runs=[(make_run(evalset, "wide", {"q1": ["c2", "c3"]}), 2)], by=carol
    )
    assert step(evalset) == "Judge what wide found"
    evalset.low_unjudged_rate = 0.5
    make_batch(pool=pool, name="first", by=carol, assessors=[alice])
    assert step(evalset) == "Batch first is being judged"
    evalset.batches.all().delete()
    assert step(evalset) == "Publish a release"
    publish_release(evalset=evalset, by=carol)
    assert step(evalset) == "Compare the systems"


@pytest.mark.parametrize(("who", "sees"), [("carol", True), ("victor", True), ("alice", False)])
def test_an_assessor_does_not_see_systems(who, sees, evalset, request, client_for) -> None:
    user = request.getfixturevalue(who)
    make_questions(evalset, "q1")
    make_run(evalset, "secret-system", {"q1": ["c1"]})
    html = client_for(user).get("/e/handbook/").content.decode()
    assert ("secret-system" in html) == sees


def test_eval_sets_are_searched_and_paged(evalset, carol, client_for) -> None:
    for n in range(30):
        other = EvalSet.objects.create(slug=f"set-{n:02}", name=f"Set {n:02}", description="Leave, pay")
        other.members.create(user=carol, role="viewer")
    client = client_for(carol)

    def listed(**address) -> list[str]:
        return [item["evalset"].slug for item in client.get("/", address).context["evalsets"]]

    assert (len(listed()), len(listed(page="2"))) == (24, 7)
    assert listed(q="HANDB") == ["handbook"]
    assert len(listed(q="leave", page="2")) == 6
    assert "No eval set of yours is called or described so." in client.get("/", {"q": "x"}).content.decode()

"""`--by`: the audit names the lead whose act a command was, as it does for a page."""

from __future__ import annotations

import pytest

from pooling.services.pools import build_pool
from tests.commands import call, call_json
from tests.conftest import make_chunks, make_questions, make_run, make_user
from tests.labels.builders import judge

ACTS = {
    "member-added": ("add_member", "handbook", "dora", "--role", "viewer"),
    "split-drawn": ("draw_split", "handbook"),
    "batch-made": ("make_batch", "handbook", "pool", "--name", "Week 1", "--assessor", "alice"),
    "release-published": ("publish_release", "handbook"),
}


@pytest.fixture
def pooled(evalset, alice, carol):
    make_user("dora")
    question, _ = make_questions(evalset, "q1", "q2")
    chunk, _ = make_chunks(evalset, "c1", "c2")
    judge(question, chunk, 1)
    run = make_run(evalset, "bm25", {"q1": ["c1", "c2"]})
    build_pool(evalset=evalset, name="pool", runs=[(run, 10)], by=None)


@pytest.mark.parametrize(("verb", "act"), ACTS.items())
def test_the_audit_names_the_lead(pooled, evalset, carol, capsys, verb, act):
    assert call(*act, "--by", "carol", capsys=capsys)[0] == 0
    assert evalset.events.get(verb=verb).by == carol


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_who_does_not_lead_does_nothing(pooled, evalset, capsys, act):
    before = evalset.events.count()
    status, document = call_json(*act, "--by", "alice", capsys=capsys)
    assert (status, "alice does not lead handbook" in document["error"]) == (3, True)
    assert evalset.events.count() == before

"""What an assessor says of a gold pair changes no label, and counts for no agreement."""

from __future__ import annotations

import uuid

import pytest

from evalsets.models import EvalSet
from judging.models import Batch
from judging.services.adjudication import adjudicate
from judging.services.batches import cancel_batch
from judging.services.claims import claim_next
from judging.services.gold import Gold
from labels.rated_pairs import rated_pairs
from labels.settling import labels_of_question, settled_counts
from tests.judging.batches import batch_of, grade, pair_of


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    """q1/g1 is decided as 2 and is gold; Alice and Bob both say 0 of it, and Alice 1 of q1/c1."""
    early = batch_of(evalset, {"q1": ["g1"]}, by=carol, assessors=[carol], name="Early")
    question, chunk = evalset.questions.get(), evalset.chunks.get()
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=2, by=carol, key=uuid.uuid4())
    cancel_batch(batch=early, by=carol)
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice, bob], gold=Gold(share=0.5))
    claim_next(batch=batch, by=alice, count=2)
    grade(pair_of(batch, "q1", "g1"), alice, 0)
    grade(pair_of(batch, "q1", "c1"), alice, 1)
    claim_next(batch=batch, by=bob)
    grade(pair_of(batch, "q1", "g1"), bob, 0)
    return batch


@pytest.mark.parametrize("policy", EvalSet.SettlePolicy)
def test_the_known_answer_stays_the_label(evalset, batch, policy):
    evalset.settle_policy = policy
    evalset.save()
    labels = labels_of_question(evalset.questions.get())
    by_chunk = {pair.chunk.external_id: labels[pair.chunk_id].label for pair in batch.pairs.all()}
    assert by_chunk == {"g1": 2, "c1": 1}
    assert settled_counts(evalset).contested == 0


def test_gold_is_no_agreement_between_people(evalset, batch):
    assert rated_pairs(evalset).pairs == []
    assert rated_pairs(evalset, batch).pairs == []

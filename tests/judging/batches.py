"""Builders of batches, and slow, obvious twins of what claims and counts do in SQL."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence

from evalsets.models import EvalSet, User
from judging.models import Batch, BatchPair, Judgment, Task
from judging.services.batches import PairToJudge, make_batch
from judging.services.judgments import Saved, Verdict, save_judgment
from pooling.models import Pool
from tests.conftest import make_chunks, make_questions


def make_pool(evalset: EvalSet, name: str = "pool") -> Pool:
    return Pool.objects.create(
        evalset=evalset, name=name, strategy=Pool.Strategy.DEPTH, seed=1, specification_hash=name
    )


def batch_of(
    evalset: EvalSet, pairs: Mapping[str, Sequence[str]], *, by: User, assessors: Sequence[User], **settings
) -> Batch:
    """A batch of these chunks by question, for example {"q1": ["c1", "c2"]}, in this order. Makes what is missing."""
    questions = {q.external_id: q for q in evalset.questions.all()}
    chunks = {c.external_id: c for c in evalset.chunks.all()}
    todo = []
    for qid, cids in pairs.items():
        if qid not in questions:
            questions[qid] = make_questions(evalset, qid)[0]
        for position, cid in enumerate(cids):
            if cid not in chunks:
                chunks[cid] = make_chunks(evalset, cid)[0]
            todo.append(PairToJudge(questions[qid].pk, chunks[cid].pk, chunks[cid].revision, position))
    name = settings.pop("name", "Week 1")
    pool = settings.pop("pool", None) or make_pool(evalset, f"pool of {name}")
    return make_batch(pool=pool, name=name, by=by, assessors=assessors, pairs=todo, **settings)


def pair_of(batch: Batch, qid: str, cid: str) -> BatchPair:
    return batch.pairs.get(question__external_id=qid, chunk__external_id=cid)


def ids(tasks: Sequence[Task]) -> list[str]:
    """The pairs of the tasks as "q1/c1"."""
    return [f"{task.pair.question.external_id}/{task.pair.chunk.external_id}" for task in tasks]


def grade(pair: BatchPair, by: User, grade: int = 1, *, key: uuid.UUID | None = None, **more) -> Saved:
    note = more.pop("note", "")
    verdict = Verdict(kind=Judgment.Kind.GRADE, grade=grade, note=note)
    return save_judgment(
        batch=pair.batch, pair_id=pair.pk, by=by, verdict=verdict, key=key or uuid.uuid4(), **more
    )


def skip(pair: BatchPair, by: User, reason: str = "needs-expert") -> Saved:
    verdict = Verdict(kind=Judgment.Kind.SKIP, reason=reason)
    return save_judgment(batch=pair.batch, pair_id=pair.pk, by=by, verdict=verdict, key=uuid.uuid4())


def cannot_judge(pair: BatchPair, by: User, reason: str = "broken-text") -> Saved:
    verdict = Verdict(kind=Judgment.Kind.CANNOT_JUDGE, reason=reason)
    return save_judgment(batch=pair.batch, pair_id=pair.pk, by=by, verdict=verdict, key=uuid.uuid4())


def current_judgments(batch: Batch) -> list[Judgment]:
    """The last word of each assessor on each pair, found by walking along the chains."""
    judgments = list(Judgment.objects.filter(pair__batch=batch).select_related("pair"))
    replaced = {judgment.replaces_id for judgment in judgments}
    return [judgment for judgment in judgments if judgment.pk not in replaced]


def places_by_pair(batch: Batch) -> Counter[int]:
    """How many assessors have graded each pair or said that it cannot be judged, extra judgments left out."""
    counts = Counter({pair.pk: 0 for pair in batch.pairs.all()})
    for judgment in current_judgments(batch):
        if judgment.kind != Judgment.Kind.SKIP and not judgment.details.get("extra"):
            counts[judgment.pair_id] += 1
    return counts


def let_leases_end(batch: Batch, user: User | None = None) -> None:
    """As if the assessors (or this one) had been idle for an hour beyond their lease."""
    from datetime import timedelta

    from django.db.models.functions import Now

    tasks = Task.objects.filter(pair__batch=batch)
    if user is not None:
        tasks = tasks.filter(assessor__user=user)
    tasks.update(leased_until=Now() - timedelta(hours=1))

"""With what chance a label came to be known, where pools drew lots."""

from __future__ import annotations

import datetime

import pytest

from labels.services.sampling import Sampled, read_samples
from pooling.models import Pool
from tests.conftest import make_chunks, make_questions
from tests.labels.builders import DAY, judge

pytestmark = pytest.mark.django_db


def test_one_sample() -> None:
    sampled = Sampled()
    sampled.add_sample([(1, 0.2), (2, 1.0)], [(3, 0.2), (4, 0.2)])
    # 3 is labelled, though no lot fell on it; 9 was in no sample.
    assert sampled.inclusion([1, 2, 3, 9]) == [0.2, 1.0, 0.0, 1.0]
    assert sampled.left_out({1, 3}) == [4]


def test_two_samples_are_two_chances() -> None:
    sampled = Sampled()
    sampled.add_sample([(1, 0.5)], [(2, 0.5), (3, 0.5)])
    sampled.add_sample([(2, 0.2)], [(1, 0.2), (3, 0.2)])
    assert sampled.inclusion([1, 2]) == pytest.approx([0.6, 0.6])
    assert sampled.left_out(set()) == [3]


def test_what_another_pool_takes_anyway_is_certain() -> None:
    sampled = Sampled()
    sampled.add_pool([1, 3])
    sampled.add_sample([(1, 0.2), (2, 0.2)], [(3, 0.2), (4, 0.2)])
    assert sampled.inclusion([1, 2, 3]) == [1.0, 0.2, 1.0]
    assert sampled.left_out(set()) == [4]


def make_pool(evalset, name: str, question, chunk_ids, day: int, **fields) -> None:
    pool = Pool.objects.create(
        evalset=evalset, name=name, strategy="depth", seed=1, specification_hash=name.ljust(64, "0")
    )
    Pool.objects.filter(pk=pool.pk).update(created_at=DAY + datetime.timedelta(days=day))
    pool.pool_questions.create(
        question=question,
        chunk_ids=chunk_ids,
        return_counts=[0] * len(chunk_ids),
        returned_by=[],
        returned_rank=[],
        **fields,
    )


def test_what_people_had_judged_before_the_sample_is_certain(evalset) -> None:
    """a: judged before; b: after; c: by a model before, by people after; d: before, but an older text; e: after and not
    drawn; f: before and not drawn. Of q2 nothing was sampled."""
    q1, q2 = make_questions(evalset, "q1", "q2")
    a, b, c, d, e, f = make_chunks(evalset, *"abcdef")
    ids = [chunk.pk for chunk in (a, b, c, d, e, f)]
    make_pool(
        evalset,
        "s",
        q1,
        ids[:4],
        1,
        inclusion=[0.5] * 4,
        unsampled_ids=ids[4:],
        unsampled_inclusion=[0.5] * 2,
    )
    make_pool(evalset, "d", q2, ids, 0)
    day = 24 * 60
    judge(q1, a, 1, at=0)
    judge(q1, b, 1, at=2 * day)
    judge(q1, c, 1, at=0, by="model:gpt")
    judge(q1, c, 1, at=2 * day)
    judge(q1, d, 1, at=0)
    d.revision = 2
    d.save()
    judge(q1, e, 1, at=2 * day)
    judge(q1, f, 1, at=0)
    samples = read_samples([q1.pk, q2.pk])
    assert samples.keys() == {q1.pk}
    assert samples[q1.pk].inclusion(ids) == [1.0, 0.5, 0.5, 0.5, 0.0, 1.0]

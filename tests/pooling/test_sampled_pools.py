"""Pools that draw lots: what is kept of each pair, what a pool that extends one leaves out, what the page shows."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from evalsets.templatetags.fairpool import percent
from judging.services.pools import measure_pool, pairs_of_question
from judging.services.remainder import pairs_to_judge, remainder_lines
from pooling.models import Pool, PoolQuestion
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run

pytestmark = pytest.mark.django_db

CHUNKS = [f"c{number:02}" for number in range(60)]


@pytest.fixture
def runs(evalset):
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, *CHUNKS)
    first = make_run(evalset, "first", {"q1": CHUNKS[:40], "q2": CHUNKS[20:60]})
    second = make_run(evalset, "second", {"q1": CHUNKS[10:50], "q2": []})
    return [(first, 40), (second, 40)]


def sampled(evalset, runs, strata="1-5:1,6-30:0.4", **fields) -> Pool:
    parameters = {"strata": strata}
    values = {"name": "sample", "by": None, **fields}
    return build_pool(evalset=evalset, runs=runs, strategy="stratified", parameters=parameters, **values)[0]


def best_ranks(pool: Pool) -> dict[tuple[int, int], int]:
    best: dict[tuple[int, int], int] = {}
    for item in pool.pool_runs.all():
        for ranking in item.run.rankings.all():
            for rank, chunk in enumerate(ranking.chunk_ids[: item.k], 1):
                key = ranking.question_id, chunk
                best[key] = min(rank, best.get(key, rank))
    return best


def test_each_pair_of_a_stratum_is_kept_with_its_chance_drawn_or_not(evalset, runs) -> None:
    pool = sampled(evalset, runs)
    rates = {rank: 1.0 if rank <= 5 else 0.4 for rank in range(1, 31)}
    kept, drawn = {}, 0
    for row in pool.pool_questions.all():
        assert len(row.returned_by) == sum(row.return_counts)
        drawn += len(row.chunk_ids)
        for ids, chances in ((row.chunk_ids, row.inclusion), (row.unsampled_ids, row.unsampled_inclusion)):
            kept |= {(row.question_id, chunk): chance for chunk, chance in zip(ids, chances, strict=True)}
    assert kept == {key: rates[rank] for key, rank in best_ranks(pool).items() if rank <= 30}
    assert 15 < drawn < len(kept) - 15
    numbers = measure_pool(pool).totals
    assert (numbers.union, numbers.beyond_budget) == (90, 90 - len(kept))
    assert (numbers.pairs, numbers.not_drawn, numbers.remainder) == (drawn, len(kept) - drawn, drawn)
    assert len(list(pairs_to_judge(pool=pool))) == len(list(remainder_lines(pool))) == drawn


def test_the_same_seed_draws_the_same_and_another_one_something_else(evalset, runs) -> None:
    def drawn(pool: Pool) -> list[set[int]]:
        return [set(row.chunk_ids) for row in pool.pool_questions.order_by("question")]

    first = sampled(evalset, runs, seed=1)
    assert sampled(evalset, runs, seed=1, name="again") == first
    second = sampled(evalset, runs, seed=2, name="second")
    assert drawn(first) != drawn(second)
    before = drawn(first)
    Pool.objects.all().delete()
    assert drawn(sampled(evalset, runs, seed=1)) == before


def test_a_pool_that_extends_a_sample_leaves_out_only_what_was_certain(evalset, runs) -> None:
    sample = sampled(evalset, runs[:1])
    rest, _ = build_pool(evalset=evalset, name="rest", runs=runs, by=None, extends=sample)
    certain = {key for key, rank in best_ranks(sample).items() if rank <= 5}
    pooled = {(row.question_id, chunk) for row in rest.pool_questions.all() for chunk in row.chunk_ids}
    assert pooled == best_ranks(rest).keys() - certain


def test_the_question_page_tells_what_was_not_drawn(evalset, runs, carol, client_for) -> None:
    pool = sampled(evalset, runs)
    question = evalset.questions.get(external_id="q1")
    row = pool.pool_questions.get(question=question)
    pairs = pairs_of_question(pool, question)
    states = [(pair.state, pair.chance) for pair in pairs]
    assert len(pairs) == len(row.chunk_ids) + len(row.unsampled_ids)
    assert states.count(("not drawn", 0.4)) == len(row.unsampled_ids) > 0
    body = client_for(carol).get(f"/e/handbook/pools/{pool.pk}/questions/{question.pk}/").content.decode()
    assert "not drawn" in body
    assert f">{percent(0.4)}<" in body
    page = client_for(carol).get(pool.get_absolute_url()).content.decode()
    assert "(1-5:1,6-30:0.4)" in page
    assert "Not drawn" in page
    assert "infAP" in page


def test_the_form_samples(evalset, runs, carol, client_for) -> None:
    sent = {
        "run": [run.pk for run, _ in runs],
        "k": 40,
        "strategy": "stratified",
        "fusion": "rrf",
        "order": "shuffled",
        "strata": "1-5:1,6-30:0.4",
        "name": "by hand",
    }
    lead = client_for(carol)
    wrong = lead.post("/e/handbook/pools/new/", {**sent, "strata": "6-30:1"})
    assert wrong.status_code == 422
    assert "Strata follow each other from rank 1" in wrong.content.decode()
    assert lead.post("/e/handbook/pools/new/", sent).status_code == 302
    assert Pool.objects.get().parameters == {"strata": "1-5:1,6-30:0.4"}


def test_the_command_samples(evalset, runs) -> None:
    def run_command(*arguments: str) -> dict:
        out = StringIO()
        options = ["--run", "first", "--run", "second", "--k", "40", "--strategy", "stratified", *arguments]
        call_command("build_pool", "handbook", "sample", *options, "--json", stdout=out)
        return json.loads(out.getvalue())

    preview = run_command("--strata", "1-5:1.0,6-30:0.4", "--preview")
    built = run_command("--strata", "1-5:1,6-30:0.4")
    assert (
        preview["remainder"]
        == built["remainder"]
        == preview["union"] - built["beyond_budget"] - built["not_drawn"]
    )
    with pytest.raises(CommandError, match="A rate is above 0") as caught:
        run_command("--strata", "1-5:2")
    assert caught.value.returncode == 3


@pytest.mark.parametrize(
    ("constraint", "change"),
    [
        ("pool_question_inclusion_of_other_length", {"inclusion": [0.5]}),
        ("pool_question_unsampled_of_other_length", {"unsampled_inclusion": [0.5]}),
    ],
)
def test_chances_are_as_many_as_their_pairs(evalset, runs, constraint: str, change: dict) -> None:
    pool = sampled(evalset, runs)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        PoolQuestion.objects.filter(pool=pool).update(**change)

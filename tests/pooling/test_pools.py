"""Specifying and building pools, against a slow twin that walks through the rankings one by one."""

from __future__ import annotations

import itertools
import random
import threading

import pytest
from django.db import IntegrityError, connection, connections, transaction

from evalsets.errors import BadInput, Cancelled
from evalsets.models import Event
from pooling.models import Pool, PoolQuestion, PoolRun, Ranking
from pooling.services import pools as pools_module
from pooling.services.pools import build_pool
from pooling.specifying import missing_questions, pool_warnings, specification_of, specify_pool
from tests.conftest import make_chunks, make_questions, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_runs(evalset):
    make_questions(evalset, "q1", "q2")
    old = make_run(evalset, "old", {"q1": ["a", "b", "c"], "q2": ["d"]})
    new = make_run(evalset, "new", {"q1": ["c", "e"], "q2": []})
    return old, new


def told(pool: Pool) -> dict[str, dict[str, list[tuple[str, int]]]]:
    """The pool as text: by question, by chunk, which run returned it at which rank."""
    runs = {item.position: item.run.name for item in pool.pool_runs.select_related("run")}
    names = dict(pool.evalset.chunks.values_list("pk", "external_id"))
    result = {}
    for row in pool.pool_questions.select_related("question"):
        returns = iter(zip(row.returned_by, row.returned_rank, strict=True))
        result[row.question.external_id] = {
            names[chunk]: [(runs[run], rank) for run, rank in (next(returns) for _ in range(count))]
            for chunk, count in zip(row.chunk_ids, row.return_counts, strict=True)
        }
        assert next(returns, None) is None
    return result


def told_slowly(runs, questions, covered=frozenset()) -> dict[str, dict[str, list[tuple[str, int]]]]:
    result = {}
    for question in questions:
        by_chunk = {}
        for run, k in runs:
            ranking = Ranking.objects.filter(run=run, question=question).first()
            for rank, pk in enumerate(ranking.chunk_ids[:k] if ranking else [], 1):
                name = run.evalset.chunks.get(pk=pk).external_id
                if (question.external_id, name) not in covered:
                    by_chunk.setdefault(name, []).append((run.name, rank))
        result[question.external_id] = by_chunk
    return result


def test_a_pool_says_who_returned_each_pair_at_which_rank(evalset, two_runs, carol) -> None:
    old, new = two_runs
    pool, created = build_pool(evalset=evalset, name="First", runs=[(old, 2), (new, 5)], by=carol)
    assert created
    assert told(pool) == {
        "q1": {"a": [("old", 1)], "b": [("old", 2)], "c": [("new", 1)], "e": [("new", 2)]},
        "q2": {"d": [("old", 1)]},
    }
    assert (pool.created_by, pool.strategy, pool.parameters) == (carol, "depth", {})
    event = Event.objects.get(verb="pool-built")
    assert event.summary == "Pool First was built from 2 runs: 5 pairs for 2 questions."


@pytest.mark.parametrize("seed", range(6))
def test_a_pool_equals_its_slow_twin(evalset, seed, monkeypatch) -> None:
    rng = random.Random(seed)
    questions = make_questions(evalset, *(f"q{i}" for i in range(5)))
    chunks = [f"c{i}" for i in range(20)]
    make_chunks(evalset, *rng.sample(chunks, 20))
    runs = []
    for number in range(4):
        rankings = {
            q.external_id: rng.sample(chunks, rng.randint(0, 12)) for q in questions if rng.random() < 0.85
        }
        runs.append((make_run(evalset, f"r{number}", rankings), rng.randint(1, 14)))
    # Whether the work is done in one slice or in many makes no difference.
    monkeypatch.setattr("pooling.rankings.MAX_QUESTIONS", rng.choice([1, 2, 100]))
    first, _ = build_pool(evalset=evalset, name="first", runs=runs[:2], by=None)
    assert told(first) == told_slowly(runs[:2], questions)
    second, _ = build_pool(evalset=evalset, name="second", runs=runs[2:], extends=first, by=None)
    covered = {(q, c) for q, found in told(first).items() for c in found}
    assert told(second) == told_slowly(runs[2:], questions, covered)
    third, _ = build_pool(evalset=evalset, name="third", runs=runs, extends=second, by=None)
    assert {q: {} for q in told(third)} == told(third)  # nothing is left that the chain does not cover


def test_building_twice_is_one_pool(evalset, two_runs) -> None:
    old, new = two_runs
    first, _ = build_pool(evalset=evalset, name="First", runs=[(old, 2), (new, 2)], by=None)
    again, created = build_pool(evalset=evalset, name="Second", runs=[(new, 2), (old, 2)], by=None)
    assert (again, created, again.name) == (first, False, "First")
    assert PoolQuestion.objects.count() == 2
    assert PoolRun.objects.count() == 2
    assert Event.objects.filter(verb="pool-built").count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"k": 3},
        {"strategy": "budget", "parameters": {"budget": 1}},
        {"strategy": "budget", "parameters": {"budget": 1, "fusion": "votes"}},
        {"question_filter": {"questions": ["q1"]}},
        {"seed": 5},
        {"extends": "First"},
    ],
)
def test_another_specification_is_another_pool(evalset, two_runs, change) -> None:
    old, new = two_runs
    first, _ = build_pool(evalset=evalset, name="First", runs=[(old, 2), (new, 2)], by=None)
    k = change.pop("k", 2)
    if "extends" in change:
        change["extends"] = first
    other, created = build_pool(evalset=evalset, name="Other", runs=[(old, k), (new, 2)], by=None, **change)
    assert created
    assert other != first


def test_questions_that_came_later_make_another_pool(evalset, two_runs) -> None:
    runs = [(run, 2) for run in two_runs]
    first, _ = build_pool(evalset=evalset, name="First", runs=runs, by=None)
    make_questions(evalset, "q3")
    second, created = build_pool(evalset=evalset, name="Second", runs=runs, by=None)
    assert created
    assert first.pool_questions.count() == 2
    assert second.pool_questions.count() == 3


def test_a_name_that_another_pool_has_is_refused_and_nothing_is_written(evalset, two_runs) -> None:
    old, _new = two_runs
    build_pool(evalset=evalset, name="First", runs=[(old, 2)], by=None)
    with pytest.raises(BadInput, match="named First already, made of something else"):
        build_pool(evalset=evalset, name="First", runs=[(old, 3)], by=None)
    assert Pool.objects.count() == 1


def test_a_pool_specified_again_from_its_rows_is_the_same(evalset, two_runs) -> None:
    old, new = two_runs
    pool, _ = build_pool(
        evalset=evalset,
        name="First",
        runs=[(old, 2), (new, 2)],
        strategy="budget",
        parameters={"budget": 2},
        question_filter={"questions": ["q1"]},
        by=None,
    )
    assert specification_of(pool).digest == pool.specification_hash


def test_the_seed_decides_the_order_and_nothing_else(evalset) -> None:
    make_questions(evalset, "q1")
    run = make_run(evalset, "r", {"q1": [f"c{i}" for i in range(30)]})
    orders = []
    for seed in (1, 2, 1):
        pool, _ = build_pool(evalset=evalset, name=f"seed {seed}", runs=[(run, 30)], seed=seed, by=None)
        orders.append(pool.pool_questions.get().chunk_ids)
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    ranked = Ranking.objects.get().chunk_ids
    assert orders[0] != ranked
    # Neither is it the ranking backwards, nor cut and swapped: neighbours in the ranking are no neighbours here.
    neighbours = set(itertools.pairwise(ranked))
    assert sum(pair in neighbours for pair in zip(orders[0], orders[0][1:], strict=False)) < 6


def test_a_budget_is_handed_out_in_fused_order_only_where_asked(evalset) -> None:
    make_questions(evalset, "q1")
    run = make_run(evalset, "r", {"q1": [f"c{i}" for i in range(30)]})
    best = Ranking.objects.get().chunk_ids[:20]
    orders = {}
    for order in ("fused", "shuffled"):
        pool, _ = build_pool(
            evalset=evalset,
            name=order,
            runs=[(run, 30)],
            strategy="budget",
            parameters={"budget": 20, "order": order},
            by=None,
        )
        orders[order] = pool.pool_questions.get().chunk_ids
    assert orders["fused"] == best
    assert orders["shuffled"] != best
    assert sorted(orders["shuffled"]) == sorted(best)


def test_one_run_is_warned_of_and_missing_questions_are_named(evalset, two_runs) -> None:
    old, new = two_runs
    make_questions(evalset, "q3")
    alone = specify_pool(evalset=evalset, runs=[(old, 2)])
    warnings = pool_warnings(alone, missing_questions(alone))
    assert "Only one run: the pool belongs to old." in warnings[0]
    assert warnings[1].startswith("Run old has no ranking for 1 question: q3.")
    both = specify_pool(
        evalset=evalset, runs=[(old, 2), (new, 2)], question_filter={"questions": ["q1", "q2"]}
    )
    # The empty ranking of q2 in the second run is a fact, not a gap.
    assert missing_questions(both) == {}
    assert pool_warnings(both, {}) == []


def test_questions_by_slice_split_and_list(evalset) -> None:
    make_questions(evalset, "q1", slices=["legal"], split="dev")
    make_questions(evalset, "q2", slices=["legal", "long"], split="holdout")
    make_questions(evalset, "q3")
    run = make_run(evalset, "r", {})

    def chosen(**question_filter) -> list[str]:
        ids = specify_pool(evalset=evalset, runs=[(run, 1)], question_filter=question_filter).question_ids
        questions = evalset.questions.filter(pk__in=ids.tolist())
        return list(questions.values_list("external_id", flat=True))

    assert chosen() == ["q1", "q2", "q3"]
    assert chosen(slice="legal") == ["q1", "q2"]
    assert chosen(slice="legal", split="dev") == ["q1"]
    assert chosen(questions=["q3", "q1", "q3"]) == ["q1", "q3"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runs": []}, "needs at least one run"),
        ({"runs": "twice"}, "named twice"),
        ({"runs": "k0"}, "at least 1; got 0"),
        ({"runs": "other"}, "belongs to another eval set"),
        ({"strategy": "budget"}, "The budget is a whole number"),
        ({"strategy": "magic"}, "no strategy 'magic'"),
        ({"question_filter": {"slice": "none"}}, "No question matches"),
        (
            {"question_filter": {"questions": ["q1", "q8", "q9"]}},
            "2 of the listed questions are not .* q8, q9",
        ),
        ({"question_filter": {"language": "de"}}, "not by language"),
        ({"extends": "other"}, "belongs to another eval set"),
    ],
)
def test_what_cannot_be_pooled_is_refused(evalset, other_evalset, two_runs, change, said) -> None:
    old, _new = two_runs
    foreign = make_run(other_evalset, "foreign", {})
    make_questions(other_evalset, "q")
    foreign_pool, _ = build_pool(evalset=other_evalset, name="theirs", runs=[(foreign, 1)], by=None)
    choices = {"twice": [(old, 2), (old, 3)], "k0": [(old, 0)], "other": [(foreign, 2)]}
    settings = {"runs": [(old, 2)], **change}
    if isinstance(settings["runs"], str):
        settings["runs"] = choices[settings["runs"]]
    if settings.get("extends"):
        settings["extends"] = foreign_pool
    with pytest.raises(BadInput, match=said):
        specify_pool(evalset=evalset, **settings)


def test_fusing_scores_needs_scores(evalset, two_runs) -> None:
    old, new = two_runs
    Ranking.objects.filter(run=new).update(scores=None)
    budget = {"strategy": "budget", "parameters": {"budget": 1, "fusion": "combsum"}}
    with pytest.raises(BadInput, match="Run new has no scores, so combsum cannot add them up"):
        specify_pool(evalset=evalset, runs=[(old, 1), (new, 1)], **budget)
    pool, _ = build_pool(evalset=evalset, name="scored", runs=[(old, 2)], **budget, by=None)
    assert {q: list(found) for q, found in told(pool).items()} == {"q1": ["a"], "q2": ["d"]}


def test_an_eval_set_without_questions_has_no_pool(evalset) -> None:
    run = make_run(evalset, "r", {})
    with pytest.raises(BadInput, match="no questions yet"):
        specify_pool(evalset=evalset, runs=[(run, 1)])


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_a_pool_needs_a_name(evalset, two_runs, name) -> None:
    with pytest.raises(BadInput, match="name of 1 to 200"):
        build_pool(evalset=evalset, name=name, runs=[(two_runs[0], 1)], by=None)


def test_a_cancelled_build_leaves_nothing(evalset, two_runs) -> None:
    def cancel(done, total=None, phase="") -> None:
        if done == total:
            raise Cancelled

    with pytest.raises(Cancelled):
        build_pool(evalset=evalset, name="First", runs=[(two_runs[0], 1)], by=None, progress=cancel)
    assert (Pool.objects.count(), PoolQuestion.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_two_builds_at_once_make_one_pool(evalset, two_runs, monkeypatch) -> None:
    both_ready = threading.Barrier(2, timeout=20)
    write = pools_module._claimed

    def claim_together(*args):
        both_ready.wait()
        return write(*args)

    monkeypatch.setattr(pools_module, "_claimed", claim_together)
    results = []

    def build(name: str) -> None:
        try:
            results.append(
                build_pool(evalset=evalset, name=name, runs=[(run, 3) for run in two_runs], by=None)
            )
        finally:
            connections.close_all()

    threads = [threading.Thread(target=build, args=[name]) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(created for _, created in results) == [False, True]
    assert len({pool.pk for pool, _ in results}) == 1
    assert PoolQuestion.objects.count() == 2


# Constraints: each has a test that breaks it.


def _pool(evalset, **fields) -> Pool:
    return Pool(
        **{
            "evalset": evalset,
            "name": "P",
            "strategy": "depth",
            "seed": 1,
            "specification_hash": "h",
            **fields,
        }
    )


def test_constraints_of_pools(evalset, two_runs) -> None:
    old, _ = two_runs
    pool = _pool(evalset)
    pool.save()
    question = evalset.questions.first()
    run = {"pool": pool, "run": old, "position": 0, "k": 1}
    PoolRun.objects.create(**run)
    row = {"pool": pool, "question": question, "chunk_ids": [1], "return_counts": [1], "returned_by": [0]}
    PoolQuestion.objects.create(**row, returned_rank=[1])
    breaking = {
        "pool_name_twice_in_evalset": _pool(evalset, specification_hash="other"),
        "pool_built_twice": _pool(evalset, name="Q"),
        "pool_without_name": _pool(evalset, name="", specification_hash="other"),
        "pool_run_twice": PoolRun(**{**run, "position": 1}),
        "pool_run_position_twice": PoolRun(**{**run, "run": two_runs[1]}),
        "pool_run_k_below_one": PoolRun(**{**run, "run": two_runs[1], "position": 1, "k": 0}),
        "pool_question_twice": PoolQuestion(**row, returned_rank=[1]),
        "pool_question_counts_of_other_length": PoolQuestion(
            **{**row, "question": evalset.questions.last(), "return_counts": [1, 1]}, returned_rank=[1]
        ),
        "pool_question_ranks_of_other_length": PoolQuestion(
            **{**row, "question": evalset.questions.last()}, returned_rank=[1, 2]
        ),
    }
    for constraint, instance in breaking.items():
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            instance.save()


def test_chunk_arrays_lie_in_the_row_itself() -> None:
    """Pooling reads a hundred thousand of them; each outside the row would be a look-up of its own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE attrelid = 'pooling_ranking'::regclass AND attname = 'chunk_ids'"
        )
        assert cursor.fetchone()[0] in ("m", b"m")

"""The numbers of a pool and its remainder, against a slow twin, over random histories of judging."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise

import pytest
from django.utils import timezone

from evalsets.models import EvalSet
from judging.models import (
    Assessor,
    Batch,
    BatchPair,
    BatchQuestion,
    ChunkClass,
    ClassMember,
    Judgment,
    Rubric,
)
from judging.pool_numbers import PARTS
from judging.services import remainder as remainder_module
from judging.services.pools import measure_pool, preview_pool, seconds_per_judgment
from judging.services.remainder import pairs_to_judge, pool_remainder, remainder_lines
from pooling.formats.verdicts import read_verdicts
from pooling.models import Pool, Ranking
from pooling.services.pools import build_pool
from pooling.specifying import specify_pool
from tests.conftest import add_revision, make_chunks, make_questions, make_run

pytestmark = pytest.mark.django_db


# Builders of history


def judge(
    evalset: EvalSet, qid: str, cid: str, grade: int | None = 0, *, by: str = "people", **fields
) -> Judgment:
    """A judgment of the chunk's current text; grade None with kind skip or cannot-judge."""
    kind = {"people": "file", "more": "file", "gpt": "model"}[by]
    assessor, _ = Assessor.objects.get_or_create(evalset=evalset, kind=kind, name=by)
    chunk = evalset.chunks.get(external_id=cid)
    values = {"revision": chunk.revision, "source": "import", **fields}
    return Judgment.objects.create(
        evalset=evalset,
        question=evalset.questions.get(external_id=qid),
        chunk=chunk,
        assessor=assessor,
        grade=grade,
        **values,
    )


def queue(pool: Pool, *pairs: tuple[str, str], wanted: int = 1, **fields) -> Batch:
    """A batch of the pool with these pairs, none of them filled."""
    evalset = pool.evalset
    rubric, _ = Rubric.objects.get_or_create(evalset=evalset, version=1, scale=evalset.scale)
    name = f"batch {evalset.batches.count()}"
    batch = Batch.objects.create(evalset=evalset, pool=pool, name=name, rubric=rubric, seed=1, **fields)
    for position, (qid, cid) in enumerate(pairs):
        question, chunk = evalset.questions.get(external_id=qid), evalset.chunks.get(external_id=cid)
        part, _ = BatchQuestion.objects.get_or_create(
            batch=batch, question=question, defaults={"position": position}
        )
        BatchPair.objects.create(
            batch_question=part,
            batch=batch,
            question=question,
            chunk=chunk,
            revision=chunk.revision,
            position=position,
            wanted=wanted,
        )
    return batch


def left(pool: Pool, **options) -> set[tuple[str, str]]:
    """The pairs of the remainder that can be judged, as IDs."""
    questions = dict(pool.evalset.questions.values_list("pk", "external_id"))
    chunks = dict(pool.evalset.chunks.values_list("pk", "external_id"))
    pairs = [(questions[p.question_id], chunks[p.chunk_id]) for p in pairs_to_judge(pool=pool, **options)]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


@pytest.fixture
def pool(evalset) -> Pool:
    """q1: a b c d, q2: a; all with texts."""
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "a", "b", "c", "d")
    runs = [
        (make_run(evalset, "old", {"q1": ["a", "b"], "q2": ["a"]}), 5),
        (make_run(evalset, "new", {"q1": ["c", "b", "d"], "q2": []}), 5),
    ]
    return build_pool(evalset=evalset, name="P", runs=runs, by=None)[0]


ALL = {("q1", "a"), ("q1", "b"), ("q1", "c"), ("q1", "d"), ("q2", "a")}


def test_everything_is_left_before_anybody_judged(pool) -> None:
    assert left(pool) == ALL


def test_a_negative_grade_counts_as_judged(evalset, pool) -> None:
    judge(evalset, "q1", "a", 0)
    assert left(pool) == ALL - {("q1", "a")}


def test_a_judgment_for_one_question_says_nothing_of_another(evalset, pool) -> None:
    judge(evalset, "q2", "a", 3)
    assert ("q1", "a") in left(pool)


def test_a_model_never_counts(evalset, pool) -> None:
    judge(evalset, "q1", "a", 3, by="gpt")
    assert left(pool) == ALL


def test_a_skip_comes_back_and_cannot_judge_does_not(evalset, pool) -> None:
    judge(evalset, "q1", "a", None, kind="skip", reason="other")
    judge(evalset, "q1", "b", None, kind="cannot-judge", reason="broken-text")
    assert left(pool) == ALL - {("q1", "b")}
    totals = measure_pool(pool).totals
    assert (totals.judged, totals.cannot_judge, totals.remainder) == (0, 1, 4)


def test_a_grade_outweighs_anothers_cannot_judge(evalset, pool) -> None:
    judge(evalset, "q1", "b", None, kind="cannot-judge", reason="needs-expert")
    judge(evalset, "q1", "b", 2, by="more")
    totals = measure_pool(pool).totals
    assert (totals.judged, totals.cannot_judge) == (1, 0)


def test_only_the_last_word_counts(evalset, pool) -> None:
    first = judge(evalset, "q1", "a", 2)
    judge(evalset, "q1", "a", None, kind="skip", reason="other", replaces=first)
    assert ("q1", "a") in left(pool)
    second = judge(evalset, "q1", "b", None, kind="cannot-judge", reason="other")
    judge(evalset, "q1", "b", 0, replaces=second)
    assert ("q1", "b") not in left(pool)
    assert measure_pool(pool).totals.cannot_judge == 0


def test_a_judgment_of_an_older_text_is_not_subtracted(evalset, pool) -> None:
    judge(evalset, "q1", "a", 2)
    add_revision(evalset.chunks.get(external_id="a"), "Another text.")
    assert left(pool) == ALL
    judge(evalset, "q1", "a", 1)
    assert left(pool) == ALL - {("q1", "a")}
    assert {p.revision for p in pairs_to_judge(pool=pool)} == {1, 2}


def test_open_batches_queue_and_cancelled_ones_do_not(evalset, pool) -> None:
    batch = queue(pool, ("q1", "a"), ("q1", "b"))
    queue(pool, ("q1", "c"), paused_at=timezone.now())
    assert left(pool) == {("q1", "d"), ("q2", "a")}
    assert measure_pool(pool).totals.queued == 3
    judge(evalset, "q1", "a", 0)
    batch.cancelled_at = timezone.now()
    batch.save()
    assert left(pool) == {("q1", "b"), ("q1", "d"), ("q2", "a")}


def test_a_pair_queued_before_its_text_changed_is_queued_until_somebody_judged_the_older_text(
    evalset, pool
) -> None:
    """An untouched pair takes up the current text when it is handed out; a judged one stays with its own."""
    batch = queue(pool, ("q1", "a"), ("q1", "b"), wanted=2)
    judge(evalset, "q1", "b", 1, pair=batch.pairs.get(chunk__external_id="b"))
    for cid in ("a", "b"):
        add_revision(evalset.chunks.get(external_id=cid), "Another text.")
    assert left(pool) == ALL - {("q1", "a")}


def test_pairs_with_too_few_judgments_come_back_only_when_asked_for(evalset, pool) -> None:
    judge(evalset, "q1", "a", 1)
    judge(evalset, "q1", "b", 1)
    judge(evalset, "q1", "b", 1)  # the same assessor in another batch: not an independent one
    judge(evalset, "q1", "c", 1)
    judge(evalset, "q1", "c", 3, by="more")
    judge(evalset, "q1", "d", 1)
    judge(evalset, "q1", "d", 1, by="gpt")
    assert left(pool) == {("q2", "a")}
    assert left(pool, wanted=2) == {("q1", "a"), ("q1", "b"), ("q1", "d"), ("q2", "a")}
    assert left(pool, wanted=3) == ALL


def test_a_filled_pair_of_an_overlap_comes_back_for_more(evalset, pool) -> None:
    batch = queue(pool, ("q1", "a"))
    judge(evalset, "q1", "a", 1)
    batch.pairs.update(filled_at=timezone.now())
    assert ("q1", "a") not in left(pool)
    assert ("q1", "a") in left(pool, wanted=2)


def test_chunks_without_text_wait(evalset) -> None:
    make_questions(evalset, "q1")
    make_chunks(evalset, "a")
    run = make_run(evalset, "r", {"q1": ["a", "later", "judged"]})
    judge(evalset, "q1", "judged", 2)
    pool, _ = build_pool(evalset=evalset, name="P", runs=[(run, 3)], by=None)
    totals = measure_pool(pool).totals
    assert (totals.judged, totals.waiting_for_text, totals.remainder) == (1, 1, 1)
    assert left(pool) == {("q1", "a")}
    assert [part.has_text.tolist().count(False) for part in pool_remainder(pool)] == [1]
    add_revision(evalset.chunks.get(external_id="later"), "It has arrived.", number=1)
    assert left(pool) == {("q1", "a"), ("q1", "later")}


def test_another_eval_set_is_never_seen(evalset, other_evalset, pool) -> None:
    make_questions(other_evalset, "q1")
    make_chunks(other_evalset, "a")
    judge(other_evalset, "q1", "a", 3)
    assert left(pool) == ALL


def test_pairs_come_in_reading_order(evalset, pool, monkeypatch) -> None:
    monkeypatch.setattr(remainder_module, "QUESTIONS_AT_A_TIME", 1)
    rows = {row.question_id: row.chunk_ids for row in pool.pool_questions.all()}
    judge(evalset, "q1", "b", 0)
    pairs = list(pairs_to_judge(pool=pool))
    assert all(rows[p.question_id][p.position] == p.chunk_id for p in pairs)
    places = [(p.question_id, p.position) for p in pairs]
    assert places == sorted(places)


def test_copies_of_what_is_judged_are_counted_and_left_out_only_where_asked(
    evalset, other_evalset, pool
) -> None:
    def join(owner: EvalSet, *cids: str) -> None:
        chunk_class = ChunkClass.objects.create(evalset=owner)
        for cid in cids:
            ClassMember.objects.create(chunk_class=chunk_class, chunk=owner.chunks.get(external_id=cid))

    make_chunks(other_evalset, "a", "b")
    join(other_evalset, "a", "b")
    join(evalset, "a", "c")
    join(evalset, "b", "d")
    judge(evalset, "q1", "a", 0)
    totals = measure_pool(pool).totals
    assert (totals.judged, totals.remainder, totals.in_judged_class) == (1, 4, 1)
    assert left(pool) == ALL - {("q1", "a")}
    # c is a copy of a; for q2 nothing is judged, and b and d are copies of each other only.
    assert left(pool, without_copies=True) == {("q1", "b"), ("q1", "d"), ("q2", "a")}
    queue(pool, ("q1", "c"))
    assert measure_pool(pool).totals.in_judged_class == 0


# The numbers


def test_the_numbers_of_a_small_pool(evalset, pool) -> None:
    judge(evalset, "q1", "b", 0)
    queue(pool, ("q1", "c"))
    numbers = measure_pool(pool)
    assert vars(numbers.totals) == {
        "union": 5,
        "beyond_budget": 0,
        "covered": 0,
        "not_drawn": 0,
        "judged": 1,
        "cannot_judge": 0,
        "queued": 1,
        "waiting_for_text": 0,
        "remainder": 3,
        "in_judged_class": 0,
    }
    assert [q.counts.remainder for q in numbers.questions] == [2, 1]
    old, new = numbers.runs
    assert vars(old) == {
        "returned": 3,
        "judged": 1,
        "unjudged": 2,
        "unique": 2,
        "added": 3,
        "added_remainder": 2,
    }
    assert vars(new) == {
        "returned": 3,
        "judged": 1,
        "unjudged": 2,
        "unique": 2,
        "added": 2,
        "added_remainder": 1,
    }
    assert numbers.overlap == [[3, 1], [1, 3]]
    assert numbers.seconds == 3 * 25


def test_the_budget_is_taken_before_anything_is_subtracted(evalset) -> None:
    make_questions(evalset, "q1")
    make_chunks(evalset, "a", "b", "c", "d")
    run = make_run(evalset, "r", {"q1": ["a", "b", "c", "d"]})
    judge(evalset, "q1", "a", 1)
    budget = {"strategy": "budget", "parameters": {"budget": 2}}
    pool, _ = build_pool(evalset=evalset, name="P", runs=[(run, 4)], **budget, by=None)
    totals = measure_pool(pool).totals
    assert (totals.union, totals.beyond_budget, totals.pairs, totals.judged) == (4, 2, 2, 1)
    assert left(pool) == {("q1", "b")}


def test_the_pace_is_the_median_at_the_desk_once_there_are_enough(evalset) -> None:
    make_questions(evalset, "q1")
    make_chunks(evalset, "a")
    for seconds in [10.0] * 10 + [30.0] * 9:
        judge(evalset, "q1", "a", 0, source="desk", seconds=seconds)
    judge(evalset, "q1", "a", 0, seconds=900.0)  # judged elsewhere
    assert seconds_per_judgment(evalset) == (25.0, 0)
    judge(evalset, "q1", "a", 0, source="desk", seconds=30.0)
    assert seconds_per_judgment(evalset) == (20.0, 20)


@pytest.mark.parametrize("seed", range(6))
def test_preview_pool_and_slow_twin_agree_over_random_histories(evalset, seed, monkeypatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr("pooling.rankings.MAX_QUESTIONS", rng.choice([1, 2, 100]))
    monkeypatch.setattr(remainder_module, "QUESTIONS_AT_A_TIME", rng.choice([1, 2, 100]))
    qids = [f"q{i}" for i in range(4)]
    cids = [f"c{i}" for i in range(14)]
    make_questions(evalset, *qids)
    make_chunks(evalset, *cids[:11])
    runs = []
    for number in range(rng.randint(2, 5)):
        rankings = {qid: rng.sample(cids, rng.randint(0, 9)) for qid in qids if rng.random() < 0.9}
        runs.append((make_run(evalset, f"r{number}", rankings), rng.randint(1, 8)))
    for cid in cids:  # all are known by now
        evalset.chunks.get_or_create(external_id=cid)
    first, _ = build_pool(evalset=evalset, name="first", runs=runs[:1], by=None)
    random_history(rng, evalset, first, qids, cids)

    extends = rng.choice([None, first])
    specification = specify_pool(evalset=evalset, runs=runs, extends=extends)
    before = preview_pool(specification)
    pool, _ = build_pool(evalset=evalset, name="second", runs=runs, extends=extends, by=None)
    after = measure_pool(pool)
    assert before == after

    covered = set() if extends is None else pairs_of(first)
    for wanted in (1, 2):
        expected = numbers_slowly(evalset, runs, covered, wanted)
        assert left(pool, wanted=wanted) == {pair for pair, part in expected.items() if part == "remainder"}
        if wanted == 1:
            counts = Counter(expected.values())
            assert {part: getattr(after.totals, part) for part in PARTS} == {
                part: counts[part] for part in PARTS
            }
            for row in after.questions:
                qid = evalset.questions.get(pk=row.question_id).external_id
                counts = Counter(part for (q, _), part in expected.items() if q == qid)
                assert {part: getattr(row.counts, part) for part in PARTS} == {p: counts[p] for p in PARTS}
    check_runs_slowly(evalset, runs, after)
    # And what was built is what was counted.
    stored = sum(len(row.chunk_ids) for row in pool.pool_questions.all())
    assert stored == after.totals.pairs == after.totals.union - after.totals.covered


def random_history(
    rng: random.Random, evalset: EvalSet, pool: Pool, qids: list[str], cids: list[str]
) -> None:
    """Judging, regrading, skipping, queueing, cancelling, and texts that change in between."""
    made: list[Judgment] = []
    with_text = cids[:11]
    for _ in range(70):
        act = rng.choice(["judge"] * 6 + ["replace", "replace", "revise", "queue", "cancel"])
        qid, cid = rng.choice(qids), rng.choice(cids)
        kind = rng.choice(["grade"] * 4 + ["skip", "cannot-judge"])
        graded = kind == "grade"
        fields = {
            "kind": kind,
            "grade": rng.randint(0, 3) if graded else None,
            "reason": "" if graded else "other",
        }
        if act == "judge":
            made.append(judge(evalset, qid, cid, by=rng.choice(["people", "more", "gpt"]), **fields))
        elif act == "replace" and made:
            old = made.pop(rng.randrange(len(made)))
            names = (old.question.external_id, old.chunk.external_id)
            made.append(
                judge(evalset, *names, by=old.assessor.name, replaces=old, revision=old.revision, **fields)
            )
        elif act == "revise":
            chunk = evalset.chunks.get(external_id=rng.choice(with_text))
            add_revision(chunk, f"Text {chunk.revision + 1}.")
        elif act == "queue":
            batch = queue(pool, *{(rng.choice(qids), rng.choice(with_text)) for _ in range(3)}, wanted=2)
            for pair in batch.pairs.select_related("question", "chunk"):
                if rng.random() < 0.3:
                    names = (pair.question.external_id, pair.chunk.external_id)
                    made.append(judge(evalset, *names, rng.randint(0, 3), pair=pair))
            if rng.random() < 0.3:
                batch.pairs.filter(pk=batch.pairs.first().pk).update(filled_at=timezone.now())
        elif act == "cancel" and evalset.batches.exists():
            evalset.batches.filter(pk=rng.choice(list(evalset.batches.all())).pk).update(
                cancelled_at=timezone.now()
            )


def pairs_of(pool: Pool) -> set[tuple[str, str]]:
    names = dict(pool.evalset.chunks.values_list("pk", "external_id"))
    rows = pool.pool_questions.select_related("question")
    return {(row.question.external_id, names[chunk]) for row in rows for chunk in row.chunk_ids}


def numbers_slowly(evalset, runs, covered, wanted) -> dict[tuple[str, str], str]:
    """By pair of the union, what it falls into: one pair after the other, over all rows of each table."""
    questions = {question.pk: question.external_id for question in evalset.questions.all()}
    chunks = {chunk.pk: chunk for chunk in evalset.chunks.all()}
    judgments = list(Judgment.objects.select_related("assessor"))
    replaced = {judgment.replaces_id for judgment in judgments}
    queued = list(BatchPair.objects.filter(filled_at=None, batch__cancelled_at=None))
    judged_pairs = {judgment.pair_id for judgment in judgments}
    result = {}
    for run, k in runs:
        for ranking in Ranking.objects.filter(run=run):
            for pk in ranking.chunk_ids[:k]:
                chunk = chunks[pk]
                pair = (questions[ranking.question_id], chunk.external_id)
                current = [
                    judgment
                    for judgment in judgments
                    if (judgment.question_id, judgment.chunk_id) == (ranking.question_id, pk)
                    and judgment.revision == chunk.revision
                    and judgment.assessor.kind != "model"
                    and judgment.pk not in replaced
                ]
                graders = {judgment.assessor for judgment in current if judgment.kind == "grade"}
                waiting = any(
                    (row.question_id, row.chunk_id) == (ranking.question_id, pk)
                    and (row.revision == chunk.revision or row.pk not in judged_pairs)
                    for row in queued
                )
                if pair in covered:
                    result[pair] = "covered"
                elif len(graders) >= wanted:
                    result[pair] = "judged"
                elif any(judgment.kind == "cannot-judge" for judgment in current):
                    result[pair] = "cannot_judge"
                elif waiting:
                    result[pair] = "queued"
                elif not chunk.has_text:
                    result[pair] = "waiting_for_text"
                else:
                    result[pair] = "remainder"
    return result


def check_runs_slowly(evalset, runs, numbers) -> None:
    chunks = dict(evalset.chunks.values_list("pk", "external_id"))
    parts = numbers_slowly(evalset, runs, set(), 1)
    returned = [
        {
            (ranking.question.external_id, chunks[pk])
            for ranking in Ranking.objects.filter(run=run)
            for pk in ranking.chunk_ids[:k]
        }
        for run, k in runs
    ]
    for i, counts in enumerate(numbers.runs):
        others = set().union(*(pairs for j, pairs in enumerate(returned) if j != i))
        judged = sum(parts[pair] == "judged" for pair in returned[i])
        assert (counts.returned, counts.judged) == (len(returned[i]), judged)
        assert counts.unjudged == len(returned[i]) - judged
        assert counts.unique == len(returned[i] - others)
        assert numbers.overlap[i] == [len(returned[i] & other) for other in returned]
    assert sum(counts.added for counts in numbers.runs) == numbers.totals.pairs
    assert sum(counts.added_remainder for counts in numbers.runs) == numbers.totals.remainder


def test_the_cost_of_a_run_is_what_the_runs_before_it_did_not_return(evalset) -> None:
    """Adding runs one after the other as pools of their own costs what the curve of one pool says."""
    rng = random.Random(3)
    make_questions(evalset, "q1", "q2")
    cids = [f"c{i}" for i in range(30)]
    make_chunks(evalset, *cids)
    runs = [
        (make_run(evalset, f"r{i}", {q: rng.sample(cids, 12) for q in ("q1", "q2")}), 10) for i in range(5)
    ]
    whole = preview_pool(specify_pool(evalset=evalset, runs=runs))
    chain, costs = None, []
    for i, run in enumerate(runs):
        chain, _ = build_pool(evalset=evalset, name=f"step {i}", runs=[run], extends=chain, by=None)
        costs.append(measure_pool(chain).totals.remainder)
    assert costs == [counts.added_remainder for counts in whole.runs]
    assert sum(costs) == whole.totals.union
    assert costs[0] == 20
    assert all(later <= costs[0] for _, later in pairwise(costs))


def test_a_judged_pool_covers_scoring_at_its_depth_through_ties(evalset) -> None:
    """A tie across depth k is cut by the stored order, which scoring uses too: a judged pool leaves no hole above k."""
    make_questions(evalset, "q1")
    make_chunks(evalset, *(f"c{i}" for i in range(12)))
    rng = random.Random(1)
    runs = [make_run(evalset, f"r{i}", {"q1": rng.sample([f"c{n}" for n in range(12)], 8)}) for i in range(3)]
    Ranking.objects.update(scores=[0.5] * 8)
    pool, _ = build_pool(evalset=evalset, name="P", runs=[(run, 3) for run in runs], by=None)
    for qid, cid in left(pool):
        judge(evalset, qid, cid, 0)
    assert [counts.unjudged for counts in measure_pool(pool).runs] == [0, 0, 0]
    for depth in (1, 2, 3):
        at_depth = preview_pool(specify_pool(evalset=evalset, runs=[(run, depth) for run in runs]))
        assert at_depth.totals.remainder == 0


# The remainder as a file


def test_the_remainder_as_lines_can_be_answered_and_read_back(evalset, pool, tmp_path) -> None:
    judge(evalset, "q1", "b", 0)
    add_revision(evalset.chunks.get(external_id="a"), "Line one\nline “two”", title="A title")
    lines = list(remainder_lines(pool))
    records = [json.loads(line) for line in lines]
    assert {(r["question_id"], r["chunk_id"]) for r in records} == ALL - {("q1", "b")}
    one = next(r for r in records if (r["question_id"], r["chunk_id"]) == ("q1", "a"))
    assert one == {
        "question_id": "q1",
        "question": "What is q1?",
        "chunk_id": "a",
        "title": "A title",
        "text": "Line one\nline “two”",
        "revision": "2",
        "grade": None,
        "cannot_judge": "",
        "note": "",
    }
    for record in records:
        record["grade"] = 0
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    read = read_verdicts(file)
    assert not read.findings.faults
    assert len(read.records) == 4


def test_the_remainder_tells_neither_system_nor_rank(pool) -> None:
    text = "".join(remainder_lines(pool))
    assert "old" not in text
    assert "new" not in text
    assert "rank" not in text

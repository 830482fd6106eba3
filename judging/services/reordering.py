"""The order of what is left of a pool that goes by the grades, renewed while people judge.

With the first grade of a question, and then whenever `EVERY` of its grades are new, the pairs that wait for a judgment
get the places that the strategy gives them now. Only the order changes, never who holds a pair or how many judgments it
wants, so no pair is shown twice for it. What lies ready in a browser already comes first all the same. A pair that has
one of several wanted judgments keeps its place, and so does a gold pair.

Locks are taken in the order of `judging.services.claims`: the question of each batch, then its pairs by ascending ID.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import F

from evalsets.models import Question
from judging.models import Assessor, BatchPair, BatchQuestion, Judgment
from pooling.adaptive import Graded, judging_order
from pooling.models import Pool, Ranking, Reordering

# As many as lie ready in an assessor's browser: a new order is seen only after those.
EVERY = 4


@transaction.atomic
def reorder_question(*, pool: Pool, question: Question) -> Reordering | None:
    """Order what is left of the question in the pool's batches by the grades so far, and log it.

    Returns None where the latest order knew all but a few of the grades, where nothing is left, and for a pool whose
    strategy does not go by the grades.
    """
    if not pool.is_adaptive:
        return None
    # Two workers take turns here; the second one finds the order of the first.
    parts = list(
        BatchQuestion.objects.select_for_update(no_key=True, of=("self",))
        .filter(batch__pool=pool, question=question, batch__cancelled_at__isnull=True)
        .order_by("pk")
    )
    grades = grades_so_far(pool=pool, question=question)
    latest = pool.reorderings.filter(question=question).first()
    if not grades or (latest and len(set(grades) - set(latest.grades)) < EVERY):
        return None
    pairs = list(
        BatchPair.objects.select_for_update(no_key=True)
        .filter(batch_question__in=parts, filled_at__isnull=True, gold_grade__isnull=True)
        .order_by("pk")
    )
    waiting = {pair.chunk_id for pair in pairs}
    order = _order(pool, question, grades, waiting)
    if not order:
        return None
    _write_places(pairs, order)
    return Reordering.objects.create(
        pool=pool,
        question=question,
        graded_ids=[grade.chunk for grade in grades],
        relevant_ids=[grade.chunk for grade in grades if grade.relevant],
        chunk_ids=order,
    )


def replay(reordering: Reordering) -> list[int]:
    """The order that the strategy gives with what it knew then: that of the log, unless either was tampered with."""
    return _order(reordering.pool, reordering.question, reordering.grades, set(reordering.chunk_ids))


def grades_so_far(*, pool: Pool, question: Question) -> list[Graded]:
    """What people and files say of the chunks' current texts, one grade a chunk, in the order of time.

    Of several people the last word counts, as for a regrade; a lead's decision stands above it.
    """
    said = (
        Judgment.objects.filter(
            evalset=pool.evalset_id,
            question=question,
            kind=Judgment.Kind.GRADE,
            revision=F("chunk__revision"),
            replaced_by__isnull=True,
        )
        .exclude(assessor__kind=Assessor.Kind.MODEL)
        .order_by("pk")
        .values_list("chunk", "grade", "source")
    )
    latest: dict[int, bool] = {}
    decided: set[int] = set()
    for chunk, grade, source in said:
        if source == Judgment.Source.ADJUDICATION:
            decided.add(chunk)
        elif chunk in decided:
            continue
        latest.pop(chunk, None)
        latest[chunk] = grade is not None and grade >= pool.evalset.threshold
    return [Graded(chunk, relevant) for chunk, relevant in latest.items()]


def _order(pool: Pool, question: Question, grades: Sequence[Graded], waiting: set[int]) -> list[int]:
    depths = dict(pool.pool_runs.values_list("run", "k"))
    rankings = Ranking.objects.filter(run__in=depths, question=question).order_by("run")
    chunks_of = rankings.values_list("run", "chunk_ids")  # not the passages' texts: saves wait for this
    return judging_order(
        pool.strategy,
        [chunks[: depths[run]] for run, chunks in chunks_of],
        grades,
        waiting,
        seed=[pool.seed, question.pk],
    )


def _write_places(pairs: Sequence[BatchPair], order: Sequence[int]) -> None:
    """Within each batch the ordered pairs share out the places that they have."""
    place = {chunk: number for number, chunk in enumerate(order)}
    ids: list[int] = []
    positions: list[int] = []
    for part in {pair.batch_question_id for pair in pairs}:
        ordered = sorted(
            (pair for pair in pairs if pair.batch_question_id == part and pair.chunk_id in place),
            key=lambda pair: place[pair.chunk_id],
        )
        ids += [pair.pk for pair in ordered]
        positions += sorted(pair.position for pair in ordered)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE judging_batchpair AS pair SET position = new.position "
            "FROM unnest(%s::bigint[], %s::int[]) AS new (id, position) "
            "WHERE pair.id = new.id AND pair.position <> new.position",
            [ids, positions],
        )

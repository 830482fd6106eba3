"""Who gets which pair: claiming, putting off, giving back. Safe however many assessors ask at once.

What is counted. A pair wants a number of independent judgments. A place among them is *taken* by an assessor whose
current judgment is a grade or a cannot-judge, or who holds a live task. A skip takes no place, and neither does an
extra judgment, one that came after its place had gone to somebody else. An assessor is offered a pair only while
fewer places are taken than wanted, and only if they have made no judgment on it, so a skipped pair goes to the others
and never wanders back and forth; its assessor can open it again from the list of skipped pairs.

A question that is assigned keeps one place of each pair for its owner; others get only what overlap asks beyond.

Locks, always in this order, so that no two transactions can wait for each other:

1. the assessor's **seat**, the row that says they are in the batch: whoever changes an assessor's tasks holds it, so
   two tabs of one person take turns (services that touch several assessors take their seats by ascending ID);
2. the **question** of the batch, when it is handed out as a whole or reassigned;
3. its **pairs**, by ascending ID: places are counted and changed only under the pair's lock.

A claim passes over rows that are locked (SKIP LOCKED), since they are being handed out to somebody else. Only when
nothing else is left does it wait for them, so that nobody is told "nothing left" because of a lock; then it holds
no other pair's lock. Passing over is not quite certain, though: where a row was changed a moment ago, Postgres waits
for whoever holds its new version, SKIP LOCKED or not. Two claims can then wait for each other; Postgres ends one of
them after a second, and that one begins anew.
"""

# ruff: noqa: S608 (the statements are put together from the constants of this file alone)
from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from psycopg.errors import DeadlockDetected

from evalsets.errors import Refused
from evalsets.models import Question, User
from evalsets.statements import Statement
from judging.models import Assessor, Batch, BatchPair, Task

# Past its end a lease is still honoured for so long before its pairs go to others: a renewal that was under way when
# it ended is then certain to be visible.
GRACE = timedelta(seconds=10)

# So many deadlocks in a row are bad luck that a claim begins anew after.
DEADLOCKS = 3

# How many questions a claim looks at, so that some are free though others are being handed out at this moment.
CANDIDATES = 20


def locking(sql: str) -> dict[bool, Statement]:
    """A statement that locks the rows it gives: with True it waits for rows that others have locked, else it passes
    over them."""
    return {True: Statement(sql), False: Statement(sql + " SKIP LOCKED")}


# The assessors other than %(me)s who take a place at pair p, and whether the owner of its question bq is one of them.
TAKEN_BY_OTHERS = """
    SELECT count(*) AS places, coalesce(bool_or(assessor_id = bq.assigned_to_id), false) AS by_owner
    FROM (
        SELECT t.assessor_id FROM judging_task t
        WHERE t.pair_id = p.id AND t.leased_until > statement_timestamp() - %(grace)s
        UNION
        SELECT j.assessor_id FROM judging_judgment j
        WHERE j.pair_id = p.id AND j.kind <> 'skip' AND j.details -> 'extra' IS NULL
          AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    ) taker
    WHERE assessor_id <> %(me)s
"""

# How many places of pair p are gone for %(me)s: those of others, and the one that is kept for the question's owner.
PLACES_GONE = "taken.places + coalesce((bq.assigned_to_id <> %(me)s AND NOT taken.by_owner)::int, 0)"

# The pairs p (of questions bq) of the batch that may be offered to %(me)s, without what they hold already. Near the end
# of a batch most pairs that are open are held by others: of a pair that wants one judgment a look at its tasks tells
# that, before its places are counted.
OPEN_PAIRS = f"""
    FROM judging_batchpair p
    JOIN judging_batchquestion bq ON bq.id = p.batch_question_id
    CROSS JOIN LATERAL ({TAKEN_BY_OTHERS}) taken
    WHERE p.batch_id = %(batch)s
      AND p.filled_at IS NULL
      AND (p.wanted > 1 OR NOT EXISTS (
          SELECT FROM judging_task t
          WHERE t.pair_id = p.id AND t.assessor_id <> %(me)s AND t.leased_until > statement_timestamp() - %(grace)s
      ))
      AND p.wanted > {PLACES_GONE}
      AND CASE WHEN bq.assigned_to_id IS NULL THEN NOT %(only_assigned)s
               ELSE bq.assigned_to_id = %(me)s OR p.wanted > 1 END
      AND NOT EXISTS (
          SELECT FROM judging_task mine
          WHERE mine.pair_id = p.id AND mine.assessor_id = %(me)s AND mine.leased_until > statement_timestamp()
      )
      AND NOT EXISTS (
          SELECT FROM judging_judgment j
          WHERE j.evalset_id = %(evalset)s AND j.question_id = p.question_id AND j.chunk_id = p.chunk_id
            AND j.assessor_id = %(me)s
            AND (j.pair_id = p.id OR (j.revision = p.revision AND j.kind <> 'skip'))
      )
"""

# Which questions to hand out next: those that this assessor has begun, then those that nobody is at, in batch order.
# Looks at one question after the other and stops when it has enough, however large the batch is: the inner ORDER BY
# gives the order (OFFSET 0 keeps it apart), and the LIMIT within makes each question a look for one open pair.
NEXT_QUESTIONS = Statement(
    f"""
    SELECT q.id
    FROM (
        SELECT id, position,
            id IN (
                SELECT p.batch_question_id FROM judging_judgment j JOIN judging_batchpair p ON p.id = j.pair_id
                WHERE p.batch_id = %(batch)s AND j.assessor_id = %(me)s
            ) AS begun,
            id IN (
                SELECT p.batch_question_id FROM judging_task t JOIN judging_batchpair p ON p.id = t.pair_id
                WHERE p.batch_id = %(batch)s AND t.leased_until > statement_timestamp() - %(grace)s
            ) AS held
        FROM judging_batchquestion
        WHERE batch_id = %(batch)s
        ORDER BY begun DESC, held, position
        OFFSET 0
    ) q
    CROSS JOIN LATERAL (SELECT {OPEN_PAIRS} AND p.batch_question_id = q.id LIMIT 1) open_pair
    ORDER BY q.begun DESC, q.held, q.position
    LIMIT {CANDIDATES}
    """
)

LOCK_QUESTION = locking(
    """
    SELECT id FROM judging_batchquestion WHERE id = ANY(%(questions)s::bigint[])
    ORDER BY array_position(%(questions)s::bigint[], id::bigint) LIMIT 1
    FOR NO KEY UPDATE
    """
)

PAIRS_OF_QUESTION = Statement(
    """
    SELECT id FROM judging_batchpair WHERE batch_question_id = %(question)s AND filled_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
    """
)

# Questions of a batch are made in their order, so their IDs serve for it and the index of open pairs gives it.
NEXT_PAIRS = locking(
    f"""
    SELECT p.id {OPEN_PAIRS}
    ORDER BY p.batch_question_id, p.position
    LIMIT %(count)s
    FOR NO KEY UPDATE OF p
    """
)

# A chunk that was revised since the batch was made is judged by its current text, unless somebody has judged the pair
# or has the earlier text on screen. A gold pair stays with the text whose answer is known. The pairs are locked.
TAKE_CURRENT_TEXT = Statement(
    """
    UPDATE judging_batchpair p SET revision = chunk.revision
    FROM evalsets_chunk chunk
    WHERE p.id = ANY(%(pairs)s::bigint[]) AND chunk.id = p.chunk_id AND chunk.revision <> p.revision
      AND p.gold_grade IS NULL
      AND NOT EXISTS (SELECT FROM judging_judgment j WHERE j.pair_id = p.id)
      AND NOT EXISTS (
          SELECT FROM judging_task t
          WHERE t.pair_id = p.id AND t.assessor_id <> %(me)s AND t.leased_until > statement_timestamp() - %(grace)s
      )
    """
)

# Counted anew now that the pairs are locked. A task of mine whose lease had ended is taken up again.
TAKE = Statement(
    f"""
    INSERT INTO judging_task (pair_id, assessor_id, leased_until)
    SELECT p.id, %(me)s, statement_timestamp() + %(lease)s {OPEN_PAIRS} AND p.id = ANY(%(pairs)s::bigint[])
    ON CONFLICT (pair_id, assessor_id)
    DO UPDATE SET leased_until = excluded.leased_until, claimed_at = statement_timestamp(), deferred_at = NULL
    """
)

ANYTHING_OPEN = Statement(f"SELECT EXISTS (SELECT {OPEN_PAIRS})")

PLACES_GONE_AT_PAIR = Statement(
    f"""
    SELECT {PLACES_GONE}
    FROM judging_batchpair p
    JOIN judging_batchquestion bq ON bq.id = p.batch_question_id
    CROSS JOIN LATERAL ({TAKEN_BY_OTHERS}) taken
    WHERE p.id = %(pair)s
    """
)

STOPPED = Statement("SELECT paused_at, cancelled_at FROM judging_batch WHERE id = %(batch)s")


# The assessor's row, by their seat in the batch.
SEAT = Statement(
    """
    SELECT {assessor}
    FROM judging_batch_assessors seat
    JOIN judging_assessor assessor ON assessor.id = seat.assessor_id
    WHERE seat.batch_id = %(batch)s AND assessor.user_id = %(user)s
    FOR NO KEY UPDATE OF seat
    """,
    assessor=Assessor,
)

# What %(me)s holds in the batch, but for leases that were renewed a moment ago.
RENEW = Statement(
    """
    UPDATE judging_task t
    SET leased_until = statement_timestamp() + %(lease)s
    FROM judging_batchpair p
    WHERE p.id = t.pair_id AND p.batch_id = %(batch)s AND t.assessor_id = %(me)s
      AND t.leased_until > statement_timestamp()
      AND t.leased_until < statement_timestamp() + %(fresh)s
    """
)

# What was put off comes last: in a shared batch of all, else of what was claimed with it. Where one mind grades one
# question, "last" is the end of the question, before the next one begins.
NEXT_TASKS = Statement(
    """
    SELECT {task}, {pair}, {question}
    FROM judging_task task
    JOIN judging_batchpair pair ON pair.id = task.pair_id
    JOIN evalsets_question question ON question.id = pair.question_id
    WHERE pair.batch_id = %(batch)s AND task.assessor_id = %(me)s AND task.leased_until > statement_timestamp()
    ORDER BY CASE WHEN %(shared)s THEN task.deferred_at END NULLS FIRST, task.claimed_at,
        task.deferred_at NULLS FIRST, pair.batch_question_id, pair.position
    LIMIT %(count)s
    """,
    task=Task,
    pair=BatchPair,
    question=Question,
)


def take_seat(*, batch: Batch, by: User) -> Assessor:
    """The user's assessor row in this batch, with their seat locked until the transaction ends.

    Raises Refused for somebody who is not an assessor of the batch.
    """
    seated = SEAT.first({"batch": batch.pk, "user": by.pk})
    if seated is None:
        raise Refused(f"You are not an assessor of {batch}. Ask its lead to add you.")
    assessor: Assessor = seated[0]
    return assessor


def claim_next(*, batch: Batch, by: User, count: int = 1) -> list[Task]:
    """Up to `count` tasks that wait for the user, as `next_tasks` gives them; their leases run anew.

    What the user holds already comes first; only if that is fewer than `count`, more is claimed: a whole question,
    or single pairs in a batch that is shared. Empty when nothing is left for this user, or while the batch is paused
    or cancelled. Raises Refused for somebody who is not an assessor of the batch.
    """
    for _ in range(DEADLOCKS):
        try:
            return _claim_next(batch, by, count)
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
    return _claim_next(batch, by, count)


@transaction.atomic
def _claim_next(batch: Batch, by: User, count: int) -> list[Task]:
    assessor = take_seat(batch=batch, by=by)
    batch.paused_at, batch.cancelled_at = STOPPED.one({"batch": batch.pk})
    if not batch.hands_out_pairs:
        return []
    renew_leases(batch=batch, assessor=assessor)
    waiting = next_tasks(batch=batch, assessor=assessor, count=count)
    while len(waiting) < count and _claim_more(batch, assessor, count - len(waiting), wait=not waiting):
        waiting = next_tasks(batch=batch, assessor=assessor, count=count)
    return waiting


def next_tasks(*, batch: Batch, assessor: Assessor, count: int) -> list[Task]:
    """The first of the assessor's queue, in the order in which it is worked off, with their pairs and questions.

    None while nothing is handed out.
    """
    if not batch.hands_out_pairs:
        return []
    shared = batch.sharing == Batch.Sharing.SHARED
    values = {"batch": batch.pk, "me": assessor.pk, "shared": shared, "count": count}
    tasks = []
    for task, pair, question in NEXT_TASKS.all(values):
        task.pair, pair.question = pair, question
        tasks.append(task)
    return tasks


def queue(*, batch: Batch, assessor: Assessor) -> QuerySet[Task]:
    """The live tasks of the assessor, in no order: `next_tasks` knows which comes first."""
    return Task.objects.filter(pair__batch=batch, assessor=assessor, leased_until__gt=Now())


def renew_leases(*, batch: Batch, assessor: Assessor) -> None:
    """An act of the assessor: what they hold stays theirs. The caller holds their seat.

    A lease that was renewed within the last minute is left alone, which spares a row a grade for each pair held.
    """
    lease = timedelta(minutes=batch.lease_minutes)
    fresh = max(lease - timedelta(minutes=1), lease / 2)
    values: dict[str, Any] = {"batch": batch.pk, "me": assessor.pk, "lease": lease, "fresh": fresh}
    RENEW.run(values)


@transaction.atomic
def put_off(*, batch: Batch, pair_id: int, by: User) -> BatchPair:
    """ "Later": the pair, which is returned, stays with the user and comes again at the end of their queue.

    Raises Refused where the user no longer holds it; then it will come again by itself, if it is still open. Raises
    BatchPair.DoesNotExist for a pair that is not in the batch.
    """
    assessor = take_seat(batch=batch, by=by)
    pair = batch.pairs.get(pk=pair_id)
    held = Task.objects.filter(pair=pair, assessor=assessor, leased_until__gt=Now())
    if not held.update(deferred_at=Now()):
        raise Refused("This pair went back while you were away, so there is nothing to put off.")
    renew_leases(batch=batch, assessor=assessor)
    return pair


@transaction.atomic
def give_back(*, batch: Batch, by: User) -> int:
    """End the user's leases in the batch at once, so that others can go on. Returns how many pairs went back."""
    assessor = take_seat(batch=batch, by=by)
    return end_leases(Task.objects.filter(pair__batch=batch, assessor=assessor))


def end_leases(tasks: QuerySet[Task]) -> int:
    """End these tasks now, without the grace. The caller holds the seats of their assessors.

    The rows stay: they say that the pair was once given to that assessor, whose late judgment is then kept.
    """
    return tasks.filter(leased_until__gt=Now() - GRACE).update(leased_until=Now() - 2 * GRACE)


def anything_open(*, batch: Batch, assessor: Assessor) -> bool:
    """Whether a claim would give the assessor something now. Takes no locks and changes nothing."""
    return bool(ANYTHING_OPEN.one(_values(batch, assessor))[0])


def places_gone(*, pair: BatchPair, assessor: Assessor) -> int:
    """Places of the pair that are not open to the assessor. The caller holds the pair's lock."""
    values: dict[str, Any] = {"pair": pair.pk, "me": assessor.pk, "grace": GRACE}
    return int(PLACES_GONE_AT_PAIR.one(values)[0])


def _claim_more(batch: Batch, assessor: Assessor, count: int, *, wait: bool) -> int:
    """Claim the next question, or up to `count` single pairs. Returns how many pairs it got; 0: nothing is left.

    With `wait`, rows that others have locked are waited for when there are no others; without it they are passed over.
    """
    values = {**_values(batch, assessor), "count": count}
    for waiting in (False, True) if wait else (False,):
        while True:
            # Locks that got us nothing are given up with the savepoint: whoever waits, waits empty-handed.
            with transaction.atomic():
                pairs = _lock_next(batch, values, wait=waiting)
                taken = _take(pairs, values) if pairs else 0
                if pairs and not taken:
                    transaction.set_rollback(True)
            if taken:
                return taken
            if not pairs:
                break
            # Others took these pairs between our look and our lock; the next look sees that.
    return 0


def _values(batch: Batch, assessor: Assessor) -> dict[str, Any]:
    return {
        "batch": batch.pk,
        "evalset": batch.evalset_id,
        "me": assessor.pk,
        "only_assigned": batch.sharing == Batch.Sharing.ASSIGNED,
        "grace": GRACE,
        "lease": timedelta(minutes=batch.lease_minutes),
    }


def _take(pairs: Sequence[int], values: dict[str, Any]) -> int:
    """Make tasks of these pairs, as far as they are open still. Returns how many."""
    values = {**values, "pairs": list(pairs)}
    TAKE_CURRENT_TEXT.run(values)
    return TAKE.run(values)


def _lock_next(batch: Batch, values: dict[str, Any], *, wait: bool) -> Sequence[int]:
    """Lock the pairs to take next and return their IDs; none where there are none, or all are locked by others."""
    if batch.sharing == Batch.Sharing.SHARED:
        return [pair for (pair,) in NEXT_PAIRS[wait].all(values)]
    candidates = [question for (question,) in NEXT_QUESTIONS.all(values)]
    locked = LOCK_QUESTION[wait].first({"questions": candidates})
    if locked is None:
        return []
    return [pair for (pair,) in PAIRS_OF_QUESTION.all({"question": locked[0]})]

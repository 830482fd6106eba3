"""What a lead does with batches: make, pause, resume, cancel, reassign, extend."""

from __future__ import annotations

import datetime
import random
import secrets
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.db import connection, transaction
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from evalsets.models import EvalSet, Member, User
from evalsets.services.events import record_event
from judging.models import Assessor, Batch, BatchQuestion, Rubric, Task
from judging.services.assessors import assessor_for
from judging.services.claims import end_leases
from pooling.models import Pool


class PairToJudge(NamedTuple):
    """A pair of a remainder. Pairs come question by question, in the order in which assessors shall meet them."""

    question_id: int
    chunk_id: int
    revision: int
    position: int


@transaction.atomic
def make_batch(
    *,
    pool: Pool,
    name: str,
    by: User | None,
    assessors: Sequence[User],
    pairs: Iterable[PairToJudge] | None = None,
    without_copies: bool = False,
    sharing: Batch.Sharing = Batch.Sharing.BY_QUESTION,
    overlap: int = 1,
    overlap_share: float = 0.0,
    due_on: datetime.date | None = None,
    instructions: str = "",
    lease_minutes: int = 30,
    seed: int | None = None,
) -> Batch:
    """Hand the pool's remainder to the assessors as a batch.

    `pairs` are what to judge; without it, the whole remainder of the pool as it stands now, less the pairs whose text
    is not there yet and, with `without_copies`, less those whose chunk is in a class with a member that is judged for
    the question already. `overlap_share` of them (0 to 1), drawn by `seed`, want `overlap` independent judgments each,
    the others one. Where the lead assigns (`sharing`), the questions are dealt to the assessors in turn, and
    `reassign_questions` changes that.

    Raises BadInput for settings that cannot be met, for a name that would tell assessors of a system, and where
    nothing is left to judge.
    """
    evalset = pool.evalset
    # Batches of one eval set are made one after the other: two leads do not queue the same pair at once.
    EvalSet.objects.select_for_update(no_key=True).get(pk=evalset.pk)
    _check_settings(evalset, pool, name, assessors, overlap, overlap_share, lease_minutes)
    if pairs is None:
        from judging.services.remainder import pairs_to_judge

        pairs = pairs_to_judge(pool=pool, without_copies=without_copies)
    todo = list(pairs)
    if not todo:
        raise BadInput(
            f"Nothing is left to judge in the pool {pool}: every pair is judged, queued in an open batch, "
            "or waits for its text."
        )
    batch = Batch.objects.create(
        evalset=evalset,
        pool=pool,
        name=name,
        rubric=current_rubric(evalset=evalset, instructions=instructions, by=by),
        sharing=sharing,
        overlap=overlap,
        overlap_share=overlap_share,
        due_on=due_on,
        lease_minutes=lease_minutes,
        seed=secrets.randbits(62) if seed is None else seed,
        created_by=by,
    )
    people = [assessor_for(evalset=evalset, user=user) for user in assessors]
    batch.assessors.set(people)
    _write_pairs(batch, todo, people)
    record_event(
        evalset=evalset,
        by=by,
        verb="batch-made",
        summary=f"Batch {name} was made of pool {pool}: {len(todo)} pairs for {_names(assessors)}.",
        details={
            "batch": batch.pk,
            "pool": pool.pk,
            "pairs": len(todo),
            "without_copies": without_copies,
            "overlap": overlap,
            "seed": batch.seed,
        },
    )
    return batch


def current_rubric(*, evalset: EvalSet, instructions: str, by: User | None) -> Rubric:
    """The rubric with the eval set's scale and these instructions: the latest version if it says just that, else a
    new version. The caller holds the eval set's lock."""
    latest = evalset.rubrics.order_by("-version").first()
    if latest is not None and latest.scale == evalset.scale and latest.instructions == instructions:
        return latest
    version = latest.version + 1 if latest else 1
    return Rubric.objects.create(
        evalset=evalset, version=version, scale=evalset.scale, instructions=instructions, created_by=by
    )


@transaction.atomic
def pause_batch(*, batch: Batch, by: User | None) -> None:
    """Hand out nothing more until it is resumed. What assessors send of the pairs on their screens is kept."""
    batch = _locked(batch)
    if batch.paused_at is None:
        batch.paused_at = timezone.now()
        batch.save(update_fields=["paused_at"])
        _record(batch, by, "batch-paused", f"Batch {batch} was paused.")


@transaction.atomic
def resume_batch(*, batch: Batch, by: User | None) -> None:
    batch = _locked(batch)
    if batch.paused_at is not None:
        batch.paused_at = None
        batch.save(update_fields=["paused_at"])
        _record(batch, by, "batch-resumed", f"Batch {batch} was resumed.")


@transaction.atomic
def cancel_batch(*, batch: Batch, by: User | None) -> None:
    """End the batch: its judgments stay, its open pairs go back to the remainder. It cannot be taken up again."""
    batch = _locked(batch)
    batch.cancelled_at = timezone.now()
    batch.save(update_fields=["cancelled_at"])
    left = batch.pairs.filter(filled_at__isnull=True).count()
    _record(batch, by, "batch-cancelled", f"Batch {batch} was cancelled with {left} pairs open.")


@transaction.atomic
def reassign_questions(
    *, batch: Batch, by: User | None, to: Assessor | None, questions: Sequence[BatchQuestion]
) -> int:
    """Give these questions of the batch to one assessor, or to whoever comes (`to` is None).

    What others hold of them goes back at once; what they have judged stays, and what they send late is kept. Returns
    how many pairs went back. Raises Refused where `to` is not an assessor of the batch.
    """
    batch = _locked(batch)
    if to is None and batch.sharing == Batch.Sharing.ASSIGNED:
        raise Refused(f"In batch {batch} every question has its assessor. Name one of them.")
    if to is not None and not batch.assessors.filter(pk=to.pk).exists():
        raise Refused(f"{to} is not an assessor of batch {batch}. Add them first.")
    ids = [question.pk for question in questions]
    # The order of locks is told in judging.services.claims: seats, then questions.
    list(
        Batch.assessors.through.objects.select_for_update(no_key=True)
        .filter(batch=batch)
        .order_by("assessor_id")
    )
    rows = BatchQuestion.objects.filter(batch=batch, pk__in=ids)
    list(rows.select_for_update(no_key=True).order_by("pk"))
    changed = rows.update(assigned_to=to)
    tasks = Task.objects.filter(pair__batch_question__in=ids, pair__batch=batch)
    went_back = end_leases(tasks.exclude(assessor=to) if to else tasks)
    _record(
        batch,
        by,
        "batch-reassigned",
        f"{changed} questions of batch {batch} went to {to or 'whoever comes'}; {went_back} held pairs went back.",
        questions=ids,
    )
    return went_back


@transaction.atomic
def extend_batch(
    *, batch: Batch, by: User | None, assessors: Sequence[User] = (), due_on: datetime.date | None = None
) -> None:
    """Add assessors, and set another due date where one is given. Raises BadInput for somebody who may not judge."""
    batch = _locked(batch)
    _check_may_judge(batch.evalset, assessors)
    batch.assessors.add(*(assessor_for(evalset=batch.evalset, user=user) for user in assessors))
    if due_on is not None:
        batch.due_on = due_on
        batch.save(update_fields=["due_on"])
    said = [f"{_names(assessors)} added"] if assessors else []
    said += [f"due on {due_on}"] if due_on else []
    _record(
        batch, by, "batch-extended", f"Batch {batch} was extended: {', '.join(said) or 'nothing changed'}."
    )


def _locked(batch: Batch) -> Batch:
    """The batch as it stands, locked. Raises Refused where it is cancelled: that is for good."""
    batch = Batch.objects.select_for_update(no_key=True).get(pk=batch.pk)
    if batch.cancelled_at is not None:
        raise Refused(
            f"Batch {batch} was cancelled on {batch.cancelled_at:%d %B %Y}. Make a new one of its pool."
        )
    return batch


def _record(batch: Batch, by: User | None, verb: str, summary: str, **details: object) -> None:
    record_event(
        evalset=batch.evalset, by=by, verb=verb, summary=summary, details={"batch": batch.pk, **details}
    )


def _check_settings(
    evalset: EvalSet,
    pool: Pool,
    name: str,
    assessors: Sequence[User],
    overlap: int,
    overlap_share: float,
    lease_minutes: int,
) -> None:
    if not name.strip():
        raise BadInput("The batch has no name.")
    if evalset.batches.filter(name=name).exists():
        raise BadInput(f"There is a batch called {name!r} already. Give this one another name.")
    told = _system_named_in(name, pool)
    if told:
        raise BadInput(
            f"Assessors see the batch's name, and {name!r} tells them of {told!r}. Name it after its content or date."
        )
    if not assessors:
        raise BadInput("Nobody is named to judge. Give at least one assessor.")
    _check_may_judge(evalset, assessors)
    if not 0 <= overlap_share <= 1:
        raise BadInput(f"The overlap's share is {overlap_share}; it is a number from 0 to 1.")
    if not 1 <= overlap <= len(set(assessors)):
        raise BadInput(
            f"{overlap} independent judgments a pair were asked for, of {len(set(assessors))} assessors; "
            "nobody judges a pair twice, so ask for at most as many."
        )
    if lease_minutes < 1:
        raise BadInput(f"The lease is {lease_minutes} minutes; it lasts at least one.")


def _check_may_judge(evalset: EvalSet, users: Sequence[User]) -> None:
    may_judge = Member.objects.filter(
        evalset=evalset, user__in=users, role__in=[Member.Role.LEAD, Member.Role.ASSESSOR]
    )
    known = set(may_judge.values_list("user_id", flat=True))
    strangers = [user.username for user in users if user.pk not in known]
    if strangers:
        raise BadInput(
            f"{', '.join(strangers)} cannot judge in {evalset}. Make them an assessor on its members page first."
        )


def _system_named_in(name: str, pool: Pool) -> str | None:
    """A system or run of the pool whose name is in `name`, since assessors must not know what they judge for."""
    words = f" {name.casefold()} "
    for pool_run in pool.pool_runs.select_related("run__system"):
        for told in (pool_run.run.system.name, pool_run.run.name):
            if f" {told.casefold()} " in words:
                return told
    return None


def _names(users: Sequence[User]) -> str:
    return ", ".join(user.username for user in users)


def _write_pairs(batch: Batch, todo: Sequence[PairToJudge], people: Sequence[Assessor]) -> None:
    """One row a question and one a pair, by COPY: a batch may have hundreds of thousands."""
    asked = list(dict.fromkeys(pair.question_id for pair in todo))
    deals = batch.sharing == Batch.Sharing.ASSIGNED
    questions = BatchQuestion.objects.bulk_create(
        BatchQuestion(
            batch=batch,
            question_id=question_id,
            position=position,
            assigned_to=people[position % len(people)] if deals else None,
        )
        for position, question_id in enumerate(asked)
    )
    batch_question = {row.question_id: row.pk for row in questions}
    twice = round(batch.overlap_share * len(todo)) if batch.overlap > 1 else 0
    overlapping = set(random.Random(batch.seed).sample(range(len(todo)), twice))  # noqa: S311 (a draw, no secret)
    columns = "batch_id, batch_question_id, question_id, chunk_id, revision, position, wanted"
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY judging_batchpair ({columns}) FROM STDIN") as copy,
    ):
        for number, pair in enumerate(todo):
            wanted = batch.overlap if number in overlapping else 1
            copy.write_row((batch.pk, batch_question[pair.question_id], *pair, wanted))

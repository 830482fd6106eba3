"""What a lead does with batches: make, pause, resume, reassign, extend, take somebody out, cancel."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from evalsets.models import EvalSet, Member, User
from evalsets.services.events import record_event
from judging.models import Assessor, Batch, BatchQuestion, Rubric, Task
from judging.services.assessors import assessor_for
from judging.services.batch_pairs import PairToJudge, mixed_with_gold, with_overlap, write_rows
from judging.services.claims import end_leases
from judging.services.gold import Gold, decide_known_answers, draw_gold, offer_gold_to_each
from judging.services.remainder import judged_too_seldom, pairs_to_judge
from pooling.models import Pool


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
    again: bool = False,
    gold: Gold | None = None,
    due_on: datetime.date | None = None,
    instructions: str | None = None,
    lease_minutes: int = 30,
    seed: int | None = None,
) -> Batch:
    """Hand the pool's remainder to the assessors as a batch.

    `pairs` are what to judge; without it, the whole remainder of the pool as it stands now, less the pairs whose text
    is not there yet and, with `without_copies`, less those whose chunk is in a class with a member that is judged for
    the question already. `overlap_share` of them (0 to 1), drawn by `seed`, want `overlap` independent judgments each,
    the others one. With `again`, as large a share of the pool's pairs that have fewer judgments than `overlap` goes in
    for those they lack. `gold` mixes in pairs with a known answer. Where the lead assigns (`sharing`), the questions
    are dealt to the assessors in turn, and `reassign_questions` changes that. Without `instructions` those of the
    latest rubric go on.

    Raises BadInput for settings that cannot be met, for a name that would tell assessors of a system, and where
    nothing is left to judge.
    """
    evalset = pool.evalset
    # Batches of one eval set are made one after the other: two leads do not queue the same pair at once.
    EvalSet.objects.select_for_update(no_key=True).get(pk=evalset.pk)
    _check_settings(evalset, pool, name, assessors, overlap, overlap_share, lease_minutes)
    _check_due_date(due_on)
    if again and not (overlap > 1 and overlap_share):
        raise BadInput("Second judgments were asked for without overlap: say how many, and of which share.")
    if instructions is None:
        instructions = latest_instructions(evalset)
    seed = secrets.randbits(62) if seed is None else seed
    people = [assessor_for(evalset=evalset, user=user) for user in assessors]
    if pairs is None:
        pairs = pairs_to_judge(pool=pool, without_copies=without_copies)
    rows = with_overlap(list(pairs), overlap=overlap, share=overlap_share, seed=seed)
    if again:
        rows += judged_too_seldom(
            pool=pool,
            wanted=overlap,
            share=overlap_share,
            assessors=[person.pk for person in people],
            people=len(people),
            seed=seed,
        )
    if not rows:
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
        seed=seed,
        created_by=by,
    )
    batch.assessors.set(people)
    answers = []
    if gold is not None:
        answers = draw_gold(
            evalset=evalset,
            gold=gold,
            questions={row.question_id for row in rows},
            people=people,
            judgments=sum(row.wanted for row in rows),
            seed=seed,
        )
        if gold.file is not None:
            decide_known_answers(evalset=evalset, answers=answers, file_name=gold.file_name or gold.file.name)
        rows = mixed_with_gold(rows, answers, seed=seed)
    write_rows(batch, rows, people)
    offer_gold_to_each(batch)
    mixed = f", {len(answers)} gold pairs among them" if answers else ""
    record_event(
        evalset=evalset,
        by=by,
        verb="batch-made",
        summary=f"Batch {name} was made of pool {pool}: {len(rows)} pairs{mixed} for {_names(assessors)}.",
        details={
            "batch": batch.pk,
            "pool": pool.pk,
            "pairs": len(rows),
            "without_copies": without_copies,
            "overlap": overlap,
            "again": again,
            "gold": len(answers),
            "gold_share": gold.share if gold else 0,
            "gold_file": gold.file_name if gold else "",
            "seed": batch.seed,
        },
    )
    return batch


def latest_instructions(evalset: EvalSet) -> str:
    """Those of the latest rubric: what a new batch shows where nobody writes others."""
    latest = evalset.rubrics.order_by("-version").first()
    return latest.instructions if latest else ""


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
    left = batch.pairs.ordinary().filter(filled_at__isnull=True).count()
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
    _take_all_seats(batch)
    changed = _lock_questions(batch.batch_questions.filter(pk__in=ids)).update(assigned_to=to)
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
    *,
    batch: Batch,
    by: User | None,
    assessors: Sequence[User] = (),
    due_on: datetime.date | None = None,
    more_pairs: bool = False,
) -> int:
    """Add assessors, set another due date where one is given, and with `more_pairs` take in what is new in the pool's
    remainder, with the batch's share of overlap and no more gold. Returns how many pairs came in.

    Raises BadInput for somebody who may not judge, for another due date that is over already, and where more pairs are
    asked for and none are left.
    """
    if more_pairs:  # as batches are made: one after the other in an eval set
        EvalSet.objects.select_for_update(no_key=True).get(pk=batch.evalset_id)
    batch = _locked(batch)
    _check_may_judge(batch.evalset, assessors)
    if due_on == batch.due_on:
        due_on = None
    _check_due_date(due_on)
    _take_all_seats(batch)
    batch.assessors.add(*(assessor_for(evalset=batch.evalset, user=user) for user in assessors))
    if due_on is not None:
        batch.due_on = due_on
        batch.save(update_fields=["due_on"])
    rows = []
    if more_pairs:
        seed = batch.seed + batch.pairs.count()  # another draw at each extension, and the same one every time
        pairs = list(pairs_to_judge(pool=batch.pool))
        if not pairs:
            raise BadInput(f"Nothing is left in the pool {batch.pool} that is not judged or queued already.")
        rows = with_overlap(pairs, overlap=batch.overlap, share=batch.overlap_share, seed=seed)
        write_rows(batch, rows, list(batch.assessors.order_by("pk")))
    offer_gold_to_each(batch)
    said = [f"{_names(assessors)} added"] if assessors else []
    said += [f"due on {due_on}"] if due_on else []
    said += [f"{len(rows)} pairs added"] if rows else []
    _record(
        batch, by, "batch-extended", f"Batch {batch} was extended: {', '.join(said) or 'nothing changed'}."
    )
    return len(rows)


@transaction.atomic
def remove_assessor(*, batch: Batch, by: User | None, assessor: Assessor) -> int:
    """Take an assessor out of the batch. What they hold goes back at once; their judgments stay and count.

    Where the lead assigns, their questions are dealt to the others in turn; elsewhere whoever comes gets them. Returns
    how many pairs went back. Raises Refused for the last assessor, and for somebody who is not in the batch.
    """
    batch = _locked(batch)
    _take_all_seats(batch)
    others = list(batch.assessors.exclude(pk=assessor.pk).order_by("pk"))
    if not batch.assessors.filter(pk=assessor.pk).exists():
        raise Refused(f"{assessor} is not an assessor of batch {batch}.")
    if not others:
        raise Refused(
            f"{assessor} is the only assessor of batch {batch}. Add somebody else first, or cancel it."
        )
    theirs = list(_lock_questions(batch.batch_questions.filter(assigned_to=assessor)))
    for place, question in enumerate(theirs):
        deals = batch.sharing == Batch.Sharing.ASSIGNED
        question.assigned_to = others[place % len(others)] if deals else None
    BatchQuestion.objects.bulk_update(theirs, ["assigned_to"])
    went_back = end_leases(Task.objects.filter(pair__batch=batch, assessor=assessor))
    batch.assessors.remove(assessor)
    offer_gold_to_each(batch)
    _record(
        batch,
        by,
        "batch-assessor-removed",
        f"{assessor} was taken out of batch {batch}; {went_back} held pairs went back.",
        questions=[question.pk for question in theirs],
    )
    return went_back


def _take_all_seats(batch: Batch) -> None:
    """Lock the seats of all assessors of the batch. The order of locks is told in judging.services.claims."""
    seats = Batch.assessors.through.objects.filter(batch=batch)
    list(seats.select_for_update(no_key=True).order_by("assessor_id"))


def _lock_questions(questions: QuerySet[BatchQuestion]) -> QuerySet[BatchQuestion]:
    list(questions.select_for_update(no_key=True, of=("self",)).order_by("pk"))
    return questions


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


def is_over(due_on: datetime.date) -> str:
    """What is said of a due date before today, or ""."""
    today = timezone.localdate()
    return f"{due_on} is over. Choose today, {today}, or a later day." if due_on < today else ""


def _check_due_date(due_on: datetime.date | None) -> None:
    if due_on is not None and (said := is_over(due_on)):
        raise BadInput(f"The due date {said}")


def at_most_one_each(people: int) -> str:
    """What to say where more judgments of a pair are asked for than so many people can give."""
    return f"Nobody judges a pair twice: ask for at most {people}, or name more assessors."


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
            f"{overlap} independent judgments of a pair were asked for. {at_most_one_each(len(set(assessors)))}"
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

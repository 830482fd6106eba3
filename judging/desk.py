"""What the desk shows an assessor. Nothing here reads systems, runs, ranks, scores or pools, nor others' judgments."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import (
    Case,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    When,
    prefetch_related_objects,
)
from django.db.models.functions import Left

from evalsets.models import Chunk, ChunkRevision, EvalSet, Question, User
from evalsets.statements import Statement
from judging import reading
from judging.models import Assessor, Batch, BatchPair, Judgment, Rubric
from judging.near_copies import NearCopy, Text, near_copies
from judging.services.claims import anything_open, queue
from pooling.models import Pool

# Pace is the median of so many of the assessor's latest judgments, and is not guessed from fewer than the first.
PACE_FROM, PACE_OF = 5, 50
# A judgment that is looked back at is named by so many characters of its text.
OPENING = 90


@dataclass(frozen=True)
class DeskPair:
    """One pair as it lies on the desk, with the assessor's own earlier word on it."""

    pair: BatchPair
    question: Question
    text: ChunkRevision
    current: Judgment | None = None
    # Texts for the same question that are nearly this one; those without a grade yet come before it.
    near: Sequence[NearCopy] = ()
    # Names the act of this page, so that a double click or a resend is one judgment.
    key: uuid.UUID = field(default_factory=uuid.uuid4)

    @property
    def passages(self) -> list[reading.Passage]:
        return reading.passages(self.text.text, reading.question_words(self.question.text))

    @property
    def markdown(self) -> str:
        """The second view, or nothing where it would show no more than the text."""
        return reading.markdown(self.text.text) if reading.looks_like_markdown(self.text.text) else ""

    @property
    def nearest(self) -> NearCopy | None:
        """The likest that is graded."""
        return next((copy for copy in self.near if copy.grade is not None), None)

    @property
    def spans_json(self) -> str:
        return json.dumps(self.current.spans if self.current else [], ensure_ascii=False)

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The question's required facts, each with whether the assessor ticked it."""
        ticked = set(self.current.facts) if self.current else set()
        return [{**fact, "ticked": str(fact["id"]) in ticked} for fact in self.question.facts]


@dataclass(frozen=True)
class QuestionProgress:
    """How many of my pairs of one question I have judged."""

    done: int
    total: int


@dataclass(frozen=True)
class BatchProgress:
    """Judgments of the whole batch; `seconds_left` is for all who are at it now, at the assessor's own pace."""

    done: int
    wanted: int
    seconds_left: float


@dataclass(frozen=True)
class NothingLeft:
    """Why there is no pair for this assessor: what they skipped, and how many pairs wait for others."""

    mine: int
    skipped: list[Judgment]
    with_others: int


SEATED = Statement(
    """
    SELECT {batch}, {rubric}, {pool}, {assessor}
    FROM judging_batch_assessors seat
    JOIN judging_batch batch ON batch.id = seat.batch_id
    JOIN judging_rubric rubric ON rubric.id = batch.rubric_id
    JOIN pooling_pool pool ON pool.id = batch.pool_id
    JOIN judging_assessor assessor ON assessor.id = seat.assessor_id
    WHERE seat.batch_id = %(batch)s AND batch.evalset_id = %(evalset)s AND assessor.user_id = %(user)s
    """,
    batch=Batch,
    rubric=Rubric,
    pool=Pool,
    assessor=Assessor,
)


def seated_batch(*, evalset: EvalSet, batch_id: int, user: User) -> tuple[Batch, Assessor] | None:
    """The batch, with its rubric and pool, and who the user is in it; None for somebody who has no seat in it."""
    row = SEATED.first({"batch": batch_id, "evalset": evalset.pk, "user": user.pk})
    if row is None:
        return None
    batch, batch.rubric, batch.pool, assessor = row
    batch.evalset = assessor.evalset = evalset
    return batch, assessor


TEXTS = Statement(
    """
    SELECT {text}, {chunk} FROM evalsets_chunkrevision text
    JOIN unnest(%(chunks)s::bigint[], %(numbers)s::int[]) AS wanted (chunk, number)
        ON text.chunk_id = wanted.chunk AND text.number = wanted.number
    JOIN evalsets_chunk chunk ON chunk.id = text.chunk_id
    """,
    text=ChunkRevision,
    chunk=Chunk,
)


def texts_of(places: Collection[tuple[int, int]]) -> dict[tuple[int, int], ChunkRevision]:
    """Texts, with their chunks, by chunk and revision number."""
    if not places:
        return {}
    chunks, numbers = zip(*places, strict=True)
    texts = {}
    for text, chunk in TEXTS.all({"chunks": list(chunks), "numbers": list(numbers)}):
        text.chunk = chunk
        texts[chunk.pk, text.number] = text
    return texts


def desk_pairs(
    pairs: Sequence[BatchPair],
    assessor: Assessor,
    *,
    wanted: Collection[int] | None = None,
    texts: dict[tuple[int, int], ChunkRevision] | None = None,
    fresh: bool = False,
) -> list[DeskPair]:
    """Those `wanted` of the pairs (`BatchPair.id`, all unless it is said) with all that the desk shows of them.

    `pairs` are in the order in which they come, `texts` their texts where they are loaded already. `fresh`: the
    assessor has judged none of them.
    """
    wanted = {pair.pk for pair in pairs} if wanted is None else wanted
    if not wanted:
        return []
    prefetch_related_objects(pairs, "question")
    if texts is None:
        texts = texts_of({(pair.chunk_id, pair.revision) for pair in pairs})
    mine = (
        {} if fresh else {judged.pair_id: judged for judged in my_current(assessor).filter(pair__in=wanted)}
    )
    shown = [(pair, texts[pair.chunk_id, pair.revision]) for pair in pairs]
    near = near_copies(
        [
            (Text(pair.question_id, pair.chunk_id, text.pk, text.text_hash, pair.pk), text.text)
            for pair, text in shown
        ],
        wanted=wanted,
        assessor=assessor,
    )
    return [
        DeskPair(pair, pair.question, text, mine.get(pair.pk), near.get(pair.pk, ()))
        for pair, text in shown
        if pair.pk in wanted
    ]


def my_current(assessor: Assessor) -> QuerySet[Judgment]:
    """The assessor's own judgments as they stand, the latest first."""
    return Judgment.objects.filter(assessor=assessor, replaced_by__isnull=True).order_by("-pk")


GIVEN = Statement(
    """
    SELECT {judgment}, {text}
    FROM judging_judgment judgment
    JOIN judging_batchpair pair ON pair.id = judgment.pair_id
    JOIN evalsets_chunkrevision text ON text.chunk_id = judgment.chunk_id AND text.number = judgment.revision
    WHERE judgment.evalset_id = %(evalset)s AND judgment.question_id = ANY(%(questions)s::bigint[])
      AND judgment.assessor_id = %(me)s AND pair.batch_id = %(batch)s
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = judgment.id)
    ORDER BY judgment.id DESC
    """,
    judgment=Judgment,
    text=ChunkRevision,
)


def given_for(questions: Collection[int], *, batch: Batch, assessor: Assessor) -> dict[int, list[Judgment]]:
    """What the assessor has said of each of these questions in the batch, the latest first, to look back at.

    Each judgment carries the beginning of what was read as `opening`.
    """
    given: dict[int, list[Judgment]] = {question: [] for question in questions}
    if not questions:
        return given
    values = {
        "evalset": batch.evalset_id,
        "batch": batch.pk,
        "me": assessor.pk,
        "questions": list(questions),
    }
    for judgment, text in GIVEN.all(values):
        judgment.opening = opening_of(text)
        given[judgment.question_id].append(judgment)
    return given


def with_opening(judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Adds `opening`: the title of the text that was read, else its first words."""
    text = ChunkRevision.objects.filter(chunk=OuterRef("chunk"), number=OuterRef("revision"))
    opening = Case(When(~Q(title=""), then="title"), default=Left("text", OPENING), output_field=TextField())
    return judgments.annotate(opening=Subquery(text.values_list(opening)))


def opening_of(text: ChunkRevision) -> str:
    """What `with_opening` adds, of a text that is at hand."""
    return text.title or text.text[:OPENING]


# Of my pairs of these questions, and of those that %(pairs)s belong to: how many I have judged, and how many wait.
QUESTION_PROGRESS = Statement(
    """
    SELECT question.id,
        (SELECT count(*) FROM judging_judgment j JOIN judging_batchpair p ON p.id = j.pair_id
         WHERE j.evalset_id = %(evalset)s AND j.question_id = question.id AND j.assessor_id = %(me)s
           AND p.batch_id = %(batch)s AND j.kind <> 'skip'
           AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)) AS done,
        (SELECT count(*) FROM judging_task t JOIN judging_batchpair p ON p.id = t.pair_id
         WHERE t.assessor_id = %(me)s AND t.leased_until > statement_timestamp()
           AND p.batch_id = %(batch)s AND p.question_id = question.id) AS waiting
    FROM (
        SELECT unnest(%(questions)s::bigint[])
        UNION
        SELECT question_id FROM judging_batchpair WHERE batch_id = %(batch)s AND id = ANY(%(pairs)s::bigint[])
    ) question (id)
    """
)


def question_progress(
    questions: Collection[int], *, pairs: Collection[int] = (), batch: Batch, assessor: Assessor
) -> dict[int, QuestionProgress]:
    """By question, my judgments and all that are mine: judged, or waiting in my queue.

    Of these questions (`Question.id`), and of those of these pairs of the batch (`BatchPair.id`).
    """
    if not questions and not pairs:
        return {}
    rows = QUESTION_PROGRESS.all(
        {
            "evalset": batch.evalset_id,
            "batch": batch.pk,
            "me": assessor.pk,
            "questions": list(questions),
            "pairs": list(pairs),
        }
    )
    return {question: QuestionProgress(done, done + waiting) for question, done, waiting in rows}


# What is open is found by the index of open pairs. A pair that wants one judgment and is open has none.
PROGRESS = Statement(
    """
    SELECT
        (SELECT coalesce(sum(wanted), 0) FROM judging_batchpair WHERE batch_id = %(batch)s) AS wanted,
        (SELECT coalesce(sum(wanted), 0) FROM judging_batchpair
         WHERE batch_id = %(batch)s AND filled_at IS NULL) AS wanted_of_open,
        (SELECT count(*) FROM judging_judgment j JOIN judging_batchpair p ON p.id = j.pair_id
         WHERE p.batch_id = %(batch)s AND p.filled_at IS NULL AND p.wanted > 1
           AND j.kind <> 'skip' AND j.details -> 'extra' IS NULL
           AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)) AS given_to_open,
        (SELECT count(DISTINCT t.assessor_id) FROM judging_task t JOIN judging_batchpair p ON p.id = t.pair_id
         WHERE p.batch_id = %(batch)s AND t.leased_until > statement_timestamp()) AS people,
        (SELECT CASE WHEN count(*) >= %(pace_from)s THEN percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) END
         FROM (SELECT seconds FROM judging_judgment WHERE assessor_id = %(me)s AND seconds IS NOT NULL
               ORDER BY judged_at DESC LIMIT %(pace_of)s) latest) AS pace
    """
)


def batch_progress(*, batch: Batch, assessor: Assessor) -> BatchProgress:
    values = {"batch": batch.pk, "me": assessor.pk, "pace_from": PACE_FROM, "pace_of": PACE_OF}
    wanted, wanted_of_open, given_to_open, people, pace = PROGRESS.one(values)
    left = wanted_of_open - given_to_open
    seconds = pace or float(batch.evalset.seconds_per_judgment)
    return BatchProgress(done=wanted - left, wanted=wanted, seconds_left=left * seconds / max(1, people))


def nothing_left(*, batch: Batch, assessor: Assessor) -> NothingLeft:
    open_pairs = batch.pairs.filter(filled_at__isnull=True)
    skipped = my_current(assessor).filter(pair__in=open_pairs, kind=Judgment.Kind.SKIP)
    return NothingLeft(
        mine=my_current(assessor).filter(pair__batch=batch).count(),
        skipped=list(with_opening(skipped).select_related("question")),
        with_others=open_pairs.exclude(judgments__in=skipped).count(),
    )


def instructions_are_new(*, batch: Batch, assessor: Assessor) -> bool:
    """Whether the batch has instructions by which the assessor has never judged anything."""
    judged_by_them = Judgment.objects.filter(assessor=assessor, rubric=batch.rubric)
    return bool(batch.rubric.instructions) and not judged_by_them.exists()


@dataclass(frozen=True)
class OpenBatch:
    """A batch that an assessor is named for and that is not done: what waits for them in it."""

    batch: Batch
    # What they hold now; else whether there is something for them to take.
    held: int
    waits_for_me: bool
    skipped: int
    # Open pairs of the whole batch, whoever will judge them.
    open_pairs: int

    @property
    def paused(self) -> bool:
        return self.batch.paused_at is not None


def my_open_batches(user: User, *, evalset: EvalSet | None = None) -> list[OpenBatch]:
    """The open batches that the user may judge in, in all eval sets or one: the soonest due first, then the oldest.

    "Go on judging" is a POST to `judging:desk-next`, which takes the next pair and leads to the desk.
    """
    batches = Batch.objects.open().for_assessor(user).select_related("evalset")
    if evalset is not None:
        batches = batches.filter(evalset=evalset)
    work = []
    for batch in batches.order_by(F("due_on").asc(nulls_last=True), "created_at", "pk"):
        assessor = batch.assessors.get(user=user)
        held = queue(batch=batch, assessor=assessor).count()
        open_pairs = batch.pairs.filter(filled_at__isnull=True)
        work.append(
            OpenBatch(
                batch=batch,
                held=held,
                waits_for_me=batch.hands_out_pairs
                and (held > 0 or anything_open(batch=batch, assessor=assessor)),
                skipped=my_current(assessor).filter(pair__in=open_pairs, kind=Judgment.Kind.SKIP).count(),
                open_pairs=open_pairs.count(),
            )
        )
    return work

"""The remainder of a pool at any time: its pairs less what is judged, and less what is queued in open batches."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection, transaction

from evalsets.models import ChunkRevision, Question
from judging.pair_states import read_pair_states
from judging.services.batch_pairs import BatchRow, PairToJudge
from pooling.formats.verdicts import REMAINDER_KEYS
from pooling.models import Pool
from pooling.pgcopy import read_tagged_arrays
from pooling.rankings import QuestionIds
from pooling.strategies import is_among, pair_keys

QUESTIONS_AT_A_TIME = 500
TEXTS_AT_A_TIME = 500

_ENTRIES = """
    SELECT 0::int4, question_id, chunk_ids FROM pooling_poolquestion
    WHERE pool_id = %s AND question_id = ANY(%s)
"""


@dataclass(frozen=True)
class RemainderSlice:
    """What is left of a pool for some of its questions, in the order in which assessors meet the pairs.

    Parallel arrays by pair; `position` is the place in the pool's question, from 0, so it has gaps.
    """

    question_id: npt.NDArray[np.int64]
    chunk_id: npt.NDArray[np.int64]
    revision: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    has_text: npt.NDArray[np.bool_]


def pool_remainder(pool: Pool, *, wanted: int = 1, without_copies: bool = False) -> Iterator[RemainderSlice]:
    """The remainder of the pool as it stands now, in slices of questions by rising `Question.id`.

    `wanted`: how many independent grades a pair needs before it counts as judged; above 1, pairs that have fewer come
    back. `without_copies` leaves out pairs of a class that has a judged member for the question. Pairs whose text is
    not there yet are included, and marked: nobody can judge them until it arrives.
    """
    question_ids = np.sort(np.fromiter(pool.pool_questions.values_list("question_id", flat=True), np.int64))
    for start in range(0, len(question_ids), QUESTIONS_AT_A_TIME):
        yield _remainder_of(pool, question_ids[start : start + QUESTIONS_AT_A_TIME], wanted, without_copies)


def _remainder_of(pool: Pool, question_ids: QuestionIds, wanted: int, without_copies: bool) -> RemainderSlice:
    rows = read_tagged_arrays(_ENTRIES, [pool.pk, question_ids.tolist()])
    ends = np.cumsum(rows.lengths)
    position = np.arange(len(rows.values)) - rows.spread(ends - rows.lengths)
    keys = pair_keys(rows.spread(np.searchsorted(question_ids, rows.key)), rows.values)
    states = read_pair_states(pool.evalset, question_ids, wanted=wanted)
    left = ~(
        is_among(keys, states.judged) | is_among(keys, states.cannot_judge) | is_among(keys, states.queued)
    )
    if without_copies:
        left &= ~states.in_judged_class(keys)
    chunk_id = rows.values[left].astype(np.int64)
    revision, has_text = _texts(chunk_id)
    return RemainderSlice(
        question_id=rows.spread(rows.key)[left],
        chunk_id=chunk_id,
        revision=revision,
        position=position[left],
        has_text=has_text,
    )


def _texts(chunk_id: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """By chunk, its current revision and whether it has a text."""
    ids, place = np.unique(chunk_id, return_inverse=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT revision, has_text FROM evalsets_chunk WHERE id = ANY(%s) ORDER BY id", [ids.tolist()]
        )
        table = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    return table[place, 0], table[place, 1].astype(bool)


def pairs_to_judge(*, pool: Pool, wanted: int = 1, without_copies: bool = False) -> Iterator[PairToJudge]:
    """The pairs of the remainder that people can judge now, question by question, in reading order."""
    for part in pool_remainder(pool, wanted=wanted, without_copies=without_copies):
        columns = (part.question_id, part.chunk_id, part.revision, part.position)
        yield from map(PairToJudge, *(column[part.has_text].tolist() for column in columns))


# Who has graded each pair, and who of these assessors has read it; a decided pair needs nobody any more.
_GRADED_BY = """
    SELECT pair.n, count(DISTINCT j.assessor_id) FILTER (WHERE j.kind = 'grade' AND a.kind <> 'model' AND NOT replaced),
        count(DISTINCT j.assessor_id) FILTER (WHERE j.kind <> 'skip' AND j.assessor_id = ANY(%(assessors)s))
    FROM unnest(%(questions)s::bigint[], %(chunks)s::bigint[], %(revisions)s::int[])
        WITH ORDINALITY AS pair (question_id, chunk_id, revision, n)
    JOIN judging_judgment j ON j.evalset_id = %(evalset)s AND j.question_id = pair.question_id
        AND j.chunk_id = pair.chunk_id AND j.revision = pair.revision
    JOIN judging_assessor a ON a.id = j.assessor_id
    CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id) AS replaced
    ) known
    GROUP BY pair.n
    HAVING count(*) FILTER (WHERE j.source = 'adjudication' AND j.kind <> 'skip' AND NOT replaced) = 0
    ORDER BY pair.n
"""


def judged_too_seldom(
    *, pool: Pool, wanted: int, share: float, assessors: Sequence[int], people: int, seed: int
) -> list[BatchRow]:
    """`share` (0 to 1) of the pool's judged pairs that fewer than `wanted` have graded, drawn by the seed.

    Each wants as many judgments as it lacks, or as these people can give: nobody judges a pair twice. There are so many
    `people`, and `assessors` are the `Assessor.id` of those who may have judged before. Pairs that a lead has decided,
    and pairs queued in an open batch, are left out.
    """
    found: list[BatchRow] = []
    slices = zip(pool_remainder(pool, wanted=wanted), pool_remainder(pool), strict=True)
    for part, unjudged in slices:
        question_ids = np.unique(part.question_id)
        keys = pair_keys(np.searchsorted(question_ids, part.question_id), part.chunk_id)
        never = pair_keys(np.searchsorted(question_ids, unjudged.question_id), unjudged.chunk_id)
        judged = part.has_text & ~is_among(keys, np.sort(never))
        questions, chunks, revisions = (
            column[judged].tolist() for column in (part.question_id, part.chunk_id, part.revision)
        )
        values = {
            "evalset": pool.evalset_id,
            "assessors": list(assessors),
            "questions": questions,
            "chunks": chunks,
            "revisions": revisions,
        }
        with connection.cursor() as cursor:
            cursor.execute(_GRADED_BY, values)
            for n, graded, readers in cursor.fetchall():
                lacking = min(wanted - graded, people - readers)
                if lacking > 0:
                    found.append(BatchRow(questions[n - 1], chunks[n - 1], revisions[n - 1], lacking))
    drawn = random.Random(f"again {seed}").sample(range(len(found)), round(share * len(found)))  # noqa: S311 (a draw)
    return [found[n] for n in sorted(drawn)]


def remainder_lines(pool: Pool, *, without_copies: bool = False) -> Iterator[str]:
    """The remainder as JSONL for a team that judges elsewhere: one pair a line, keys as `formats.verdicts` reads them.

    Pairs that wait for their text are left out. Neither system nor rank is in it. All lines are of one moment.
    """
    with _one_snapshot():
        for part in pool_remainder(pool, without_copies=without_copies):
            yield from _lines(part)


@contextmanager
def _one_snapshot() -> Iterator[None]:
    """A read-only transaction in which every statement sees the same rows; inside another one, that one's view."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _lines(part: RemainderSlice) -> Iterator[str]:
    questions = Question.objects.in_bulk(np.unique(part.question_id).tolist())
    pairs = np.flatnonzero(part.has_text)
    for start in range(0, len(pairs), TEXTS_AT_A_TIME):
        some = pairs[start : start + TEXTS_AT_A_TIME]
        chunk_ids = part.chunk_id[some].tolist()
        texts = {
            text.chunk_id: text
            for text in ChunkRevision.objects.current().filter(chunk__in=chunk_ids).select_related("chunk")
        }
        for question_id, chunk_id in zip(part.question_id[some].tolist(), chunk_ids, strict=True):
            yield json.dumps(_record(questions[question_id], texts[chunk_id]), ensure_ascii=False) + "\n"


def _record(question: Question, text: ChunkRevision) -> dict[str, Any]:
    values = (
        question.external_id,
        question.text,
        text.chunk.external_id,
        text.text,
        str(text.number),
        None,
        "",
        "",
    )
    record: dict[str, Any] = dict(zip(REMAINDER_KEYS, values, strict=True))
    return {**record, "title": text.title} if text.title else record

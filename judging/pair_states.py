"""What became of question/chunk pairs so far: judged, found impossible to judge, queued in an open batch.

One statement, so that all of it is of one moment. Only what was said of the chunk's current text counts:

- **judged**: at least `wanted` people or files have a current grade on the pair. Grade 0 is a grade. An outside model's
  grades never count, whatever their number.
- **cannot judge**: somebody's last word on the pair is that it cannot be judged. That word is final, so the pair does
  not come back; it has no label, and stays unjudged in every rate. A skip is no word at all: the pair comes back.
- **queued**: in a batch that was not cancelled, and still waiting for judgments there, gold pairs aside. A pair that
  nobody has judged there takes up the current text when it is handed out; one that somebody has judged stays with its
  older text.

A pair may also be **in a judged class**: another chunk of its chunk's class is judged for the question. That is no
state of its own; people may look at such a pair or leave it out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from django.db import connection

from evalsets.models import EvalSet
from pooling.pgcopy import read_tagged_arrays
from pooling.rankings import QuestionIds
from pooling.strategies import Flags, Keys, is_among, pair_keys, split_keys

_GRADED, _CANNOT_JUDGE, _QUEUED = range(3)

# A chunk and who judged it in one number, so that one array a question carries both. Most chunks have one revision
# only: the few others are looked up, rather than each judged chunk. Which judgments are of the current text is asked in
# the aggregate: as a condition of the join, the planner takes it for one in 200 and then looks up each one's successor
# by itself instead of merging (docs/judging.md has the plan).
_STATES = f"""
    WITH revised AS MATERIALIZED (
        SELECT id, revision FROM evalsets_chunk WHERE evalset_id = %(evalset)s AND revision > 1
    )
    SELECT CASE judgment.kind WHEN 'grade' THEN {_GRADED} ELSE {_CANNOT_JUDGE} END, judgment.question_id,
        array_agg((judgment.chunk_id::bigint << 32) + judgment.assessor_id)
            FILTER (WHERE judgment.revision = coalesce(revised.revision, 1))
    FROM judging_judgment AS judgment
    JOIN judging_assessor AS assessor ON assessor.id = judgment.assessor_id
    LEFT JOIN revised ON revised.id = judgment.chunk_id
    WHERE judgment.evalset_id = %(evalset)s AND judgment.question_id = ANY(%(questions)s)
        AND judgment.kind <> 'skip' AND assessor.kind <> 'model'
        AND NOT EXISTS (SELECT FROM judging_judgment AS later WHERE later.replaces_id = judgment.id)
    GROUP BY 1, 2
    UNION ALL
    SELECT {_QUEUED}, pair.question_id, array_agg(pair.chunk_id::bigint << 32)
    FROM judging_batchpair AS pair
    JOIN judging_batch AS batch ON batch.id = pair.batch_id
    LEFT JOIN revised ON revised.id = pair.chunk_id
    WHERE batch.evalset_id = %(evalset)s AND batch.cancelled_at IS NULL AND pair.filled_at IS NULL
        AND pair.gold_grade IS NULL
        AND pair.question_id = ANY(%(questions)s)
        AND (
            pair.revision = coalesce(revised.revision, 1)
            OR NOT EXISTS (SELECT FROM judging_judgment AS said WHERE said.pair_id = pair.id)
        )
    GROUP BY 1, 2
"""  # noqa: S608 (put together from constants)


@dataclass(frozen=True)
class Classes:
    """The class of each chunk that is in one: sorted `Chunk.id`, and beside each the `ChunkClass.id`."""

    chunk: Keys
    chunk_class: Keys

    def of(self, keys: Keys) -> tuple[Flags, Keys]:
        """By pair, whether its chunk is in a class, and the key of question and class (meaningless otherwise)."""
        if not len(self.chunk):
            return np.zeros(len(keys), dtype=bool), keys
        question, chunk = split_keys(keys)
        at = np.searchsorted(self.chunk, chunk)
        at[at == len(self.chunk)] = 0
        return self.chunk[at] == chunk, pair_keys(question, self.chunk_class[at])


@dataclass(frozen=True)
class PairStates:
    """Sorted `pair_keys`, with questions numbered by their place; a pair may be in several."""

    judged: Keys
    cannot_judge: Keys
    queued: Keys
    judged_classes: Keys  # `pair_keys` of question and class
    classes: Classes

    def in_judged_class(self, keys: Keys) -> Flags:
        """Which of these pairs are of a class that has a judged member for the question."""
        belongs, class_keys = self.classes.of(keys)
        return belongs & is_among(class_keys, self.judged_classes)


def read_pair_states(evalset: EvalSet, question_ids: QuestionIds, *, wanted: int = 1) -> PairStates:
    """The states of all pairs of these questions (sorted). `wanted`: how many independent grades make a pair judged."""
    rows = read_tagged_arrays(
        _STATES, {"evalset": evalset.pk, "questions": question_ids.tolist()}, element="int8"
    )
    keys = pair_keys(rows.spread(np.searchsorted(question_ids, rows.key)), rows.values >> 32)
    tags = rows.spread(rows.tag)
    graded = tags == _GRADED
    judged = _said_by_enough(keys[graded], rows.values[graded] & 0xFFFFFFFF, wanted)
    classes = _read_classes(evalset)
    belongs, class_keys = classes.of(judged)
    return PairStates(
        judged=judged,
        cannot_judge=np.unique(keys[tags == _CANNOT_JUDGE]),
        queued=np.unique(keys[tags == _QUEUED]),
        judged_classes=np.unique(class_keys[belongs]),
        classes=classes,
    )


_CLASSES = """
    SELECT 0::int4, 0::int8, array_agg((member.chunk_id::bigint << 32) + member.chunk_class_id)
    FROM judging_classmember AS member JOIN judging_chunkclass AS class ON class.id = member.chunk_class_id
    WHERE class.evalset_id = %s
"""


def _read_classes(evalset: EvalSet) -> Classes:
    packed = np.sort(read_tagged_arrays(_CLASSES, [evalset.pk], element="int8").values)
    return Classes((packed >> 32).astype(np.uint64), (packed & 0xFFFFFFFF).astype(np.uint64))


def _said_by_enough(keys: Keys, assessors: npt.NDArray[np.int64], wanted: int) -> Keys:
    """The keys that come with at least `wanted` different assessors, sorted."""
    if wanted == 1:
        return np.unique(keys)
    order = np.lexsort((assessors, keys))
    keys, assessors = keys[order], assessors[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (assessors[1:] != assessors[:-1])
    pairs, counts = np.unique(keys[new], return_counts=True)
    return pairs[counts >= wanted]


def chunks_without_text(evalset: EvalSet) -> Keys:
    """The sorted `Chunk.id` of the chunks that are known by their ID alone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM evalsets_chunk WHERE evalset_id = %s AND NOT has_text", [evalset.pk])
        return np.sort(np.fromiter((row[0] for row in cursor.fetchall()), np.uint64))

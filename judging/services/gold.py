"""Gold pairs: pairs with a known answer, mixed into a batch to see how well its assessors grade.

The known answer is a decision, as adjudication makes one. Where a lead gives it in a file, it is written as one. So
nothing that an assessor says of a gold pair can change its label, whatever counts judgments, and a gold pair is judged
from the beginning: it takes nothing out of the remainder, and never keeps a batch from being done.

For an assessor a gold pair is a pair like any other: it wants a judgment of each assessor of the batch, lies anywhere
among the pairs of its question, and is claimed, shown and saved by the same statements.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from django.db import connection

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from judging.models import Assessor, Batch, BatchPair, Judgment
from pooling.formats import LabelRecord, read_known_answers
from pooling.services.importing.report import begin_report, configured_limits, finish


@dataclass(frozen=True)
class Gold:
    """What a lead asks for: gold to be `share` of each one's work (0 to 1), out of `file`, else of what is decided."""

    share: float
    file: Path | None = None
    file_name: str = ""


class KnownAnswer(NamedTuple):
    question_id: int
    chunk_id: int
    revision: int
    grade: int


# The decision that stands on the current text of each pair, be it a grade or that it cannot be judged.
_DECISIONS = """
    SELECT DISTINCT ON (j.question_id, j.chunk_id) j.question_id, j.chunk_id, j.revision, j.grade
    FROM judging_judgment j
    JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision AND c.has_text
    WHERE j.evalset_id = %(evalset)s AND j.question_id = ANY(%(questions)s) AND j.source = 'adjudication'
      AND j.kind <> 'skip'
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    ORDER BY j.question_id, j.chunk_id, j.judged_at DESC, j.id DESC
"""

# Of these assessors, how many have read each pair before: none of them is offered it again.
_READ_BEFORE = """
    SELECT pair.question_id, pair.chunk_id, count(DISTINCT j.assessor_id)
    FROM unnest(%(questions)s::bigint[], %(chunks)s::bigint[], %(revisions)s::int[])
        AS pair (question_id, chunk_id, revision)
    JOIN judging_judgment j ON j.evalset_id = %(evalset)s AND j.question_id = pair.question_id
        AND j.chunk_id = pair.chunk_id AND j.revision = pair.revision
    WHERE j.kind <> 'skip' AND j.assessor_id = ANY(%(assessors)s)
    GROUP BY pair.question_id, pair.chunk_id
"""


def decided_answers(*, evalset: EvalSet, questions: Iterable[int]) -> list[KnownAnswer]:
    """What a lead has decided of the current texts for these questions (`Question.id`): the grades among it."""
    standing = _decisions(evalset, questions)
    return [KnownAnswer(*row, grade) for row, grade in standing.items() if grade is not None]


def _decisions(evalset: EvalSet, questions: Iterable[int]) -> dict[tuple[int, int, int], int | None]:
    """The decisions that stand, by question, chunk and revision; None: it cannot be judged."""
    with connection.cursor() as cursor:
        cursor.execute(_DECISIONS, {"evalset": evalset.pk, "questions": list(questions)})
        return {row[:3]: row[3] for row in cursor.fetchall()}


def answers_of_file(*, evalset: EvalSet, gold: Gold, questions: Collection[int]) -> list[KnownAnswer]:
    """The answers of the file for these questions, as far as the chunk's text is there.

    It may have answers for other questions of the eval set. Raises BadInput with the report for a file with faults,
    among them questions and chunks that the eval set does not have, and where it contradicts a decision that stands.
    """
    assert gold.file is not None
    report = begin_report(
        kind="known answers", source=gold.file, file_name=gold.file_name or None, check=False, options={}
    )
    read = read_known_answers(gold.file, allowed=evalset.grades, limits=configured_limits())
    report.read, report.findings = read.read, read.findings
    records = read.records
    asked = evalset.questions.filter(external_id__in={record.question for record in records})
    question_ids = dict(asked.values_list("external_id", "pk"))
    named = evalset.chunks.filter(external_id__in={record.chunk for record in records})
    chunks = {chunk.external_id: chunk for chunk in named}
    faults = report.findings.faults
    for record in records:
        if record.question not in question_ids:
            faults.add("unknown-question", line=record.line, field="question", value=record.question)
        if record.chunk not in chunks:
            faults.add("unknown-chunk", line=record.line, field="chunk", value=record.chunk)
    if report.has_faults():
        finish(report)
    answers = {
        (question_ids[record.question], chunks[record.chunk].pk): record
        for record in records
        if question_ids[record.question] in questions and chunks[record.chunk].has_text
    }
    _refuse_contradictions(evalset, answers, report.file_name)
    return [
        KnownAnswer(question, chunk, chunks[record.chunk].revision, record.grade)
        for (question, chunk), record in answers.items()
    ]


def _refuse_contradictions(
    evalset: EvalSet, answers: dict[tuple[int, int], LabelRecord], file_name: str
) -> None:
    for standing, grade in _decisions(evalset, {question for question, _chunk in answers}).items():
        record = answers.get(standing[:2])
        if record is not None and record.grade != grade:
            decided = "that it cannot be judged" if grade is None else grade
            raise BadInput(
                f"{file_name}, line {record.line}: the answer for {record.question}, {record.chunk} is "
                f"{record.grade}, but {decided} was decided. Take the line out, or decide the pair anew first."
            )


def draw_gold(
    *,
    evalset: EvalSet,
    gold: Gold,
    questions: Collection[int],
    people: Sequence[Assessor],
    judgments: int,
    seed: int,
) -> list[KnownAnswer]:
    """Known answers for a batch that wants so many `judgments` of its `questions` from these people.

    As many as make `share` of what each assessor judges, when each of them meets all of them: at least one, and no more
    than there are. Drawn by the seed, spread over the questions. What all of the people have read before is no check,
    and is left out; so is what lies in an open batch. Raises BadInput where no known answer is left.
    """
    if not 0 < gold.share < 1:
        raise BadInput(f"The gold's share is {gold.share}; it is a number above 0 and below 1.")
    if gold.file is None:
        answers = decided_answers(evalset=evalset, questions=questions)
    else:
        answers = answers_of_file(evalset=evalset, gold=gold, questions=questions)
    ids = [person.pk for person in people]
    fresh = not_read_by_all(evalset, answers, assessors=ids, people=len(ids))
    if not fresh:
        raise BadInput(_why_nothing(gold, len(answers)))
    random.Random(f"gold {seed}").shuffle(fresh)  # noqa: S311 (a draw, no secret)
    drawn_of: Counter[int] = Counter()
    rounds = []
    for answer in fresh:
        rounds.append((drawn_of[answer.question_id], answer))
        drawn_of[answer.question_id] += 1
    rounds.sort(key=lambda item: item[0])
    return [answer for _round, answer in rounds[: gold_count(gold.share, judgments, len(people))]]


def gold_count(share: float, judgments: int, people: int) -> int:
    """How many gold pairs make `share` of each one's work, each of so many people meeting all of them."""
    return max(1, round(share / (1 - share) * judgments / max(1, people)))


def not_read_by_all(
    evalset: EvalSet, answers: Sequence[KnownAnswer], *, assessors: Sequence[int], people: int
) -> list[KnownAnswer]:
    """The answers that somebody of so many `people` can still be checked with, by ID. `assessors`: the `Assessor.id`
    of those of them who may have judged before."""
    columns = [[answer[place] for answer in answers] for place in range(3)]
    values = dict(zip(("questions", "chunks", "revisions"), columns, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_READ_BEFORE, {**values, "evalset": evalset.pk, "assessors": list(assessors)})
        readers = {(question, chunk): count for question, chunk, count in cursor.fetchall()}
    # What lies in an open batch may reach them there: nobody shall meet a pair twice.
    lying = BatchPair.objects.filter(
        batch__in=Batch.objects.open().filter(evalset=evalset),
        filled_at__isnull=True,
        question__in=values["questions"],
        chunk__in=values["chunks"],
    )
    elsewhere = set(lying.values_list("question", "chunk"))
    return sorted(
        answer for answer in answers if readers.get(answer[:2], 0) < people and answer[:2] not in elsewhere
    )


def _why_nothing(gold: Gold, known: int) -> str:
    if known:
        return (
            f"All {known} pairs with a known answer were judged by each of these assessors already, or lie in an open "
            "batch, so they check nothing here. Give a file with other known answers, or name somebody new."
        )
    if gold.file is None:
        return (
            "No pair of these questions was decided by a lead, so there is no known answer to mix in. "
            "Settle contested pairs first, or give a file of known answers."
        )
    return (
        f"{gold.file_name or gold.file.name} has no answer for a question of this batch with a chunk whose text is "
        "here. A line names the question, the chunk and the grade, by the IDs of this eval set."
    )


def decide_known_answers(*, evalset: EvalSet, answers: Sequence[KnownAnswer], file_name: str) -> int:
    """Write the answers as decisions, where none stands. Returns how many were written."""
    decided = decided_answers(evalset=evalset, questions={answer.question_id for answer in answers})
    standing = {answer[:2] for answer in decided}
    file, _ = Assessor.objects.get_or_create(
        evalset=evalset, kind=Assessor.Kind.FILE, name=f"known answers {file_name}"[:200]
    )
    written = Judgment.objects.bulk_create(
        Judgment(
            evalset=evalset,
            question_id=answer.question_id,
            chunk_id=answer.chunk_id,
            revision=answer.revision,
            assessor=file,
            grade=answer.grade,
            source=Judgment.Source.ADJUDICATION,
            note=f"A known answer of {file_name}.",
        )
        for answer in answers
        if answer[:2] not in standing
    )
    return len(written)


# Who has met the pair in this batch, and who of the batch can meet it still. Its pairs are few.
_OFFER_TO_EACH = """
    UPDATE judging_batchpair p SET
        wanted = greatest(1, seen.met + seen.to_meet),
        filled_at = CASE WHEN seen.met >= greatest(1, seen.met + seen.to_meet)
                    THEN coalesce(p.filled_at, statement_timestamp()) END
    FROM (
        SELECT gold.id,
            (SELECT count(DISTINCT j.assessor_id) FROM judging_judgment j
             WHERE j.pair_id = gold.id AND j.kind <> 'skip' AND j.details -> 'extra' IS NULL
               AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)) AS met,
            (SELECT count(*) FROM judging_batch_assessors seat
             WHERE seat.batch_id = gold.batch_id AND NOT EXISTS (
                SELECT FROM judging_judgment j
                WHERE j.evalset_id = %(evalset)s AND j.question_id = gold.question_id AND j.chunk_id = gold.chunk_id
                  AND j.revision = gold.revision AND j.kind <> 'skip' AND j.assessor_id = seat.assessor_id
             )) AS to_meet
        FROM judging_batchpair gold WHERE gold.batch_id = %(batch)s AND gold.gold_grade IS NOT NULL
    ) seen
    WHERE seen.id = p.id
"""


def offer_gold_to_each(batch: Batch) -> None:
    """Let each gold pair want one judgment of each assessor of the batch as it stands. The caller holds the batch's
    seats, or has just made it."""
    pairs = batch.pairs.gold().order_by("pk").select_for_update(no_key=True)
    list(pairs.values_list("pk"))
    with connection.cursor() as cursor:
        cursor.execute(_OFFER_TO_EACH, {"batch": batch.pk, "evalset": batch.evalset_id})

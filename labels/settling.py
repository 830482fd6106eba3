"""What the judgments of a pair settle to: its label. One statement computes it wherever a label is needed.

A judgment counts when it is current (nothing replaced it), when it is about the chunk's text of today (its revision
is the chunk's), and when a person or an imported file gave it; a row that takes a decision back (a skip of source
"adjudication") is none. Then, the first that fits:

1. adjudicated: the latest adjudication decides, be it a grade or "cannot be judged";
2. unanimous: all grades are one grade (a single grade is unanimous);
3. the eval set's policy: `majority` (a grade that more than half of the judgments gave), `median` (rounded down),
   `latest` (the grade given last), or `none`;
4. contested: there are grades, but they settle to nothing;
5. skipped-only: no grade stands, and somebody skipped or found that it cannot be judged.

Contested and skipped-only pairs carry no label. A pair with any grade that counts is judged, a contested one
too; one that was only skipped is unjudged. No label is stored outside of releases, so none can drift.

What outside judges (models) say is no judgment, and settles nothing here unless judges are named. Then a pair on which
people said nothing, or only skipped, and whose copies they did not judge either, has the median of the named judges'
grades, rounded down, over all their repetitions; its `why` is "model".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from evalsets.models import Chunk, EvalSet, Question
from judging.models import Assessor, Judgment

Why = Literal[
    "adjudicated", "unanimous", "majority", "median", "latest", "contested", "skipped-only", "model"
]

# Of a judgment `j` by a model: people have graded neither the pair nor a copy of it, nor found it impossible to judge.
NOT_SAID_BY_PEOPLE = """NOT EXISTS (
    SELECT FROM judging_judgment said
    JOIN judging_assessor person ON person.id = said.assessor_id AND person.kind <> 'model'
    JOIN evalsets_chunk shown ON shown.id = said.chunk_id AND shown.revision = said.revision
    WHERE said.evalset_id = j.evalset_id AND said.question_id = j.question_id AND said.kind <> 'skip'
      AND said.chunk_id = ANY (ARRAY (
          SELECT j.chunk_id
          UNION ALL
          SELECT copy.chunk_id FROM judging_classmember own JOIN judging_classmember copy USING (chunk_class_id)
          WHERE own.chunk_id = j.chunk_id
      ))
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = said.id)
)"""

# The two CTEs `judgment` and `settled`; what follows reads from `settled`, one row a pair.
SETTLED = f"""
WITH judgment AS (
    SELECT j.id, j.question_id, j.chunk_id, j.kind, j.grade, j.judged_at,
           j.source = 'adjudication' AS adjudicates,
           a.kind = 'model' AS by_model
    FROM judging_judgment j
    JOIN judging_assessor a ON a.id = j.assessor_id
                           AND (a.kind IN ('person', 'file') OR a.id = ANY(%(judges)s::bigint[]))
    JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision
    WHERE j.evalset_id = %(evalset)s
      AND (%(questions)s::bigint[] IS NULL OR j.question_id = ANY(%(questions)s::bigint[]))
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
      AND (j.source <> 'adjudication' OR j.kind <> 'skip')
      AND (a.kind <> 'model' OR j.kind = 'grade' AND {NOT_SAID_BY_PEOPLE})
),
pair AS (
    SELECT question_id, chunk_id,
           coalesce(array_agg(grade ORDER BY judged_at DESC, id DESC)
                    FILTER (WHERE kind = 'grade' AND NOT adjudicates AND NOT by_model), '{{}}') AS grades,
           count(*) FILTER (WHERE kind <> 'grade') AS skips,
           array_agg(grade) FILTER (WHERE by_model) AS by_models,
           bool_or(adjudicates) AS adjudicated,
           (array_agg(grade ORDER BY judged_at DESC, id DESC) FILTER (WHERE adjudicates))[1] AS decision
    FROM judgment
    GROUP BY question_id, chunk_id
),
labelled AS (
    SELECT *,
           CASE
               WHEN by_models IS NOT NULL THEN
                   (SELECT floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY g)) FROM unnest(by_models) g)
               WHEN adjudicated THEN decision
               WHEN grades[1] = ALL (grades) OR %(policy)s = 'latest' THEN grades[1]
               WHEN %(policy)s = 'majority' THEN
                   (SELECT g FROM unnest(grades) g GROUP BY g HAVING 2 * count(*) > cardinality(grades))
               WHEN %(policy)s = 'median' THEN
                   (SELECT floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY g)) FROM unnest(grades) g)
           END::smallint AS label
    FROM pair
),
settled AS (
    SELECT question_id, chunk_id, label, grades, skips, coalesce(cardinality(by_models), 0) AS model_grades,
           CASE
               WHEN by_models IS NOT NULL THEN 'model'
               WHEN label IS NULL AND (adjudicated OR grades = '{{}}') THEN 'skipped-only'
               WHEN label IS NULL THEN 'contested'
               WHEN adjudicated THEN 'adjudicated'
               WHEN grades[1] = ALL (grades) THEN 'unanimous'
               ELSE %(policy)s
           END AS why
    FROM labelled
)
"""  # noqa: S608 - no value from outside is in the text


class SettledPair(NamedTuple):
    """What one pair settles to.

    `label` is None for a contested or skipped-only pair. `grades` are the grades that count, the latest first,
    without the adjudication; `skips` counts skips and "cannot be judged"; `model_grades` says on how many grades of
    outside judges the label stands: 0 unless `why` is "model".
    """

    question_id: int
    chunk_id: int
    label: int | None
    why: Why
    grades: list[int]
    skips: int
    model_grades: int

    @property
    def contested(self) -> bool:
        return self.why == "contested"

    @property
    def skipped_only(self) -> bool:
        return self.why == "skipped-only"


COLUMNS = "settled.question_id, settled.chunk_id, label, why, grades, skips, model_grades"


class SettledCounts(NamedTuple):
    """How many pairs of an eval set stand how; `judged` has a grade, `labelled` settles to one."""

    judged: int
    labelled: int
    contested: int
    skipped_only: int


def settle_parameters(
    evalset: EvalSet, *, questions: Iterable[int] | None = None, judges: Iterable[Assessor] = ()
) -> dict[str, Any]:
    """The parameters of `SETTLED`: the eval set's policy, which questions (None: all), and which outside judges."""
    return {
        "evalset": evalset.pk,
        "policy": evalset.settle_policy,
        "judges": [judge.pk for judge in judges],
        "questions": None if questions is None else list(questions),
    }


@contextmanager
def _cursor_of(sql: str, parameters: dict[str, Any]) -> Iterator[CursorWrapper]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        yield cursor


def settled_pairs(
    evalset: EvalSet,
    *,
    questions: Iterable[int] | None = None,
    why: Sequence[Why] = (),
    judges: Iterable[Assessor] = (),
) -> list[SettledPair]:
    """Pairs with a judgment that counts, by question ID, then chunk ID: of these `questions`, settled by a `why`."""
    if questions is not None and not (questions := list(questions)):
        return []
    sql = f"""{SETTLED}
        SELECT {COLUMNS} FROM settled
        JOIN evalsets_question q ON q.id = settled.question_id
        JOIN evalsets_chunk c ON c.id = settled.chunk_id
        WHERE %(why)s::text[] = '{{}}' OR why = ANY(%(why)s::text[])
        ORDER BY q.external_id, c.external_id"""  # noqa: S608 - no value from outside is in the text
    parameters = settle_parameters(evalset, questions=questions, judges=judges)
    with _cursor_of(sql, {**parameters, "why": list(why)}) as cursor:
        return [SettledPair(*row) for row in cursor.fetchall()]


def labels_of_question(question: Question) -> dict[int, SettledPair]:
    """What each judged or skipped chunk of the question settles to, by Chunk.id."""
    pairs = settled_pairs(question.evalset, questions=[question.pk])
    return {pair.chunk_id: pair for pair in pairs}


def contested_pairs(evalset: EvalSet) -> list[SettledPair]:
    """The pairs whose grades settle to nothing."""
    return settled_pairs(evalset, why=["contested"])


def settled_counts(evalset: EvalSet) -> SettledCounts:
    """How many pairs are judged, labelled, contested and skipped-only."""
    sql = f"""{SETTLED}
        SELECT count(*) FILTER (WHERE grades <> '{{}}' OR label IS NOT NULL), count(label),
               count(*) FILTER (WHERE why = 'contested'), count(*) FILTER (WHERE why = 'skipped-only')
        FROM settled"""  # noqa: S608
    with _cursor_of(sql, settle_parameters(evalset)) as cursor:
        return SettledCounts(*cursor.fetchone())


class JudgeLabels(NamedTuple):
    """For how many pairs without a label by people each outside judge, by name, has a grade; and all `together`."""

    by_judge: dict[str, int]
    together: int


def labels_of_judges(evalset: EvalSet) -> JudgeLabels:
    """How many labels letting the outside judges into a release would add."""
    # As NOT_SAID_BY_PEOPLE, for all pairs at once; a class counts under its negative key, so that it is no chunk.
    sql = """
        WITH said AS (
            SELECT j.question_id, j.chunk_id, coalesce(-member.chunk_class_id, j.chunk_id) AS unit, a.name,
                   a.kind = 'model' AS by_model, j.kind
            FROM judging_judgment j
            JOIN judging_assessor a ON a.id = j.assessor_id
            JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision
            LEFT JOIN judging_classmember member ON member.chunk_id = j.chunk_id
            WHERE j.evalset_id = %(evalset)s AND j.kind <> 'skip'
              AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
        ),
        by_people AS (SELECT DISTINCT question_id, unit FROM said WHERE NOT by_model)
        SELECT name, count(DISTINCT (question_id, chunk_id))
        FROM said LEFT JOIN by_people USING (question_id, unit)
        WHERE by_model AND said.kind = 'grade' AND by_people.unit IS NULL
        GROUP BY GROUPING SETS ((name), ())"""
    judges = evalset.assessors.filter(kind=Assessor.Kind.MODEL).order_by("name")
    counts: dict[str | None, int] = dict.fromkeys(judges.values_list("name", flat=True), 0)
    with _cursor_of(sql, {"evalset": evalset.pk}) as cursor:
        counts.update(cursor.fetchall())
    together = counts.pop(None, 0)
    return JudgeLabels({name: count for name, count in counts.items() if name is not None}, together)


# A pair is judged when any grade counts for it, whatever the grades settle to.
JUDGED = """
SELECT DISTINCT j.question_id, j.chunk_id
FROM judging_judgment j
JOIN judging_assessor a ON a.id = j.assessor_id AND a.kind IN ('person', 'file')
JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision
WHERE j.evalset_id = %(evalset)s
  AND j.kind = 'grade'
  AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
"""


def judged_chunks(question: Question) -> set[int]:
    """Chunk.id of the chunks that have a grade for the question which counts."""
    sql = f"SELECT chunk_id FROM ({JUDGED} AND j.question_id = %(question)s) judged"  # noqa: S608
    with _cursor_of(sql, {"evalset": question.evalset_id, "question": question.pk}) as cursor:
        return {chunk for (chunk,) in cursor.fetchall()}


def labels_of_chunk(chunk: Chunk) -> dict[int, SettledPair]:
    """What the chunk settles to for each question for which its current text was judged, by Question.id."""
    questions = (
        Judgment.objects.filter(chunk=chunk).order_by().values_list("question_id", flat=True).distinct()
    )
    pairs = settled_pairs(chunk.evalset, questions=questions)
    return {pair.question_id: pair for pair in pairs if pair.chunk_id == chunk.pk}

"""What differs between two releases, or between a release and the labels of this moment."""

# ruff: noqa: S608 - no value from outside is in the text of a statement

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, cast

from django.core.cache import cache
from django.db import connection
from django.db.models import Exists, OuterRef

from evalsets.models import EvalSet
from judging.models import Assessor
from labels.models import Release
from labels.settling import SETTLED, settle_parameters

SETTINGS = ("threshold", "scale", "gain", "settle_policy", "judges")
# How long a process keeps a difference for its pages.
KEPT_SECONDS = 3600

# Most questions have the same labels in both, which their arrays tell at once; only the others' labels are compared.
# They run in the order of the chunk IDs' bytes, so the same labels are the same arrays.
_QUESTIONS_OF_RELEASE = """
    SELECT * FROM labels_releasequestion
    WHERE release_id = %({name})s AND (%(questions)s::int8[] IS NULL OR question_id = ANY(%(questions)s))"""
_CHANGED = f"""
WITH before AS ({_QUESTIONS_OF_RELEASE.format(name="before")}),
after AS ({_QUESTIONS_OF_RELEASE.format(name="after")}),
changed AS (
    SELECT question_id, coalesce(after.external_id, before.external_id) AS question, label.*
    FROM before FULL JOIN after USING (question_id)
    CROSS JOIN LATERAL (
        SELECT chunk_id, coalesce(new.chunk, old.chunk) AS chunk, old.grade AS grade_before, new.grade AS grade_after,
               old.why = 'model' AS model_before, new.why = 'model' AS model_after
        FROM unnest(before.chunk_ids, before.external_ids, before.grades, before.why)
            AS old (chunk_id, chunk, grade, why)
        FULL JOIN unnest(after.chunk_ids, after.external_ids, after.grades, after.why)
            AS new (chunk_id, chunk, grade, why) USING (chunk_id)
        WHERE old.grade IS DISTINCT FROM new.grade OR (old.why = 'model') <> (new.why = 'model')
    ) label
    WHERE (before.chunk_ids, before.grades, before.model_chunk_ids)
          IS DISTINCT FROM (after.chunk_ids, after.grades, after.model_chunk_ids)
)"""

_COUNTED_BY_QUESTION = f"""{_CHANGED}
SELECT question_id, grade_before, grade_after, model_before, model_after, count(*)
FROM changed GROUP BY question_id, question, grade_before, grade_after, model_before, model_after
ORDER BY question COLLATE "C"
"""

_QUESTIONS = """
SELECT external_id, before.details IS NULL AS added, after.details IS NULL AS removed
FROM (SELECT external_id, details FROM labels_releasequestion WHERE release_id = %(before)s) before
FULL JOIN (SELECT external_id, details FROM labels_releasequestion WHERE release_id = %(after)s) after
    USING (external_id)
WHERE before.details IS DISTINCT FROM after.details
ORDER BY external_id COLLATE "C"
"""


class ChangedPair(NamedTuple):
    """A pair whose label differs; `before` or `after` is None where that side has none.

    `model_before` and `model_after` say whether the label of that side is an outside judge's (None: no label). Where
    the grade is the same, only that changed: kind "same grade".
    """

    question_id: int
    chunk_id: int
    question: str
    chunk: str
    before: int | None
    after: int | None
    model_before: bool | None
    model_after: bool | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "regraded" if self.before != self.after else "same grade"


class ChangedCounts(NamedTuple):
    """How many labels came, went and changed; `regraded` counts (from, to) pairs of grades.

    Of those added and removed, `models_added` and `models_removed` are outside judges' labels. `judged` counts the
    labels that were such and are people's now, `unjudged` the other way round, whatever became of their grades;
    `same_grade` says how many of these two kept it.
    """

    added: int
    removed: int
    regraded: Counter[tuple[int, int]]
    models_added: int = 0
    models_removed: int = 0
    judged: int = 0
    unjudged: int = 0
    same_grade: int = 0

    @property
    def total(self) -> int:
        return self.added + self.removed + self.regraded.total() + self.same_grade

    @property
    def of_models(self) -> bool:
        """Whether any of the changes is one of an outside judge's labels."""
        return bool(self.models_added or self.models_removed or self.judged or self.unjudged)


class ReleaseDifference(NamedTuple):
    """All that differs between two releases but the pairs themselves, which `pairs_of_page` reads.

    `nothing`: they have the same content. `pairs_by_question` says how many pairs changed for each question that has
    any, by Question.id, in the order of the questions' IDs. `joined` are classes of the later release that were not one
    class before, `split` those of the earlier one that are not one class any more; each is a list of chunk IDs.
    `settings` maps a name to (before, after).
    """

    nothing: bool
    counts: ChangedCounts
    pairs_by_question: dict[int, int]
    questions_added: list[str]
    questions_removed: list[str]
    questions_changed: list[str]
    joined: list[list[str]]
    split: list[list[str]]
    settings: dict[str, tuple[Any, Any]]

    def of_questions(self, questions: Container[int]) -> ReleaseDifference:
        """The same, with the changed pairs of these questions only for `pairs_of_page`."""
        kept = {key: count for key, count in self.pairs_by_question.items() if key in questions}
        return self._replace(pairs_by_question=kept)


def difference_of(before: Release, after: Release) -> ReleaseDifference:
    """What differs from `before` to `after`, two releases of one eval set."""
    both = {"before": before.pk, "after": after.pk, "questions": None}
    pairs_by_question: Counter[int] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED_BY_QUESTION, both)
        counted = cursor.fetchall()
        cursor.execute(_QUESTIONS, both)
        questions = cursor.fetchall()
    for question, *_, count in counted:
        pairs_by_question[question] += count
    return ReleaseDifference(
        nothing=before.content_hash == after.content_hash,
        counts=_counts(row[1:] for row in counted),
        pairs_by_question=dict(pairs_by_question),
        questions_added=[name for name, added, _ in questions if added],
        questions_removed=[name for name, _, removed in questions if removed],
        questions_changed=[name for name, added, removed in questions if not added and not removed],
        joined=_classes_not_in(after, before),
        split=_classes_not_in(before, after),
        settings={
            name: (getattr(before, name), getattr(after, name))
            for name in SETTINGS
            if getattr(before, name) != getattr(after, name)
        },
    )


def kept_difference(before: Release, after: Release) -> ReleaseDifference:
    """`difference_of`, kept from one page to the next: releases never change, so neither does their difference."""
    key = ":".join(["difference", *(f"{release.pk}-{release.content_hash}" for release in (before, after))])
    found = cache.get_or_set(key, lambda: difference_of(before, after), KEPT_SECONDS)
    return cast(ReleaseDifference, found)


def changed_pairs(
    before: Release,
    after: Release,
    *,
    questions: list[int] | None = None,
    offset: int = 0,
    limit: int | None = None,
) -> Iterator[ChangedPair]:
    """The pairs whose labels differ, by question ID, then chunk ID; of these `questions` (Question.id), or of all."""
    asked = {"before": before.pk, "after": after.pk, "questions": questions, "offset": offset, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_CHANGED} SELECT question_id, chunk_id, question, chunk, grade_before, grade_after, "
            "model_before, model_after FROM changed "
            'ORDER BY question COLLATE "C", chunk COLLATE "C" OFFSET %(offset)s LIMIT %(limit)s',
            asked,
        )
        for row in cursor:
            yield ChangedPair(*row)


def pairs_of_page(
    before: Release, after: Release, found: ReleaseDifference, offset: int, limit: int
) -> list[ChangedPair]:
    """At most `limit` of the changed pairs from `offset` on; `found` tells in which questions they are."""
    questions, ends = list(found.pairs_by_question), list(accumulate(found.pairs_by_question.values()))
    first, last = bisect_right(ends, offset), bisect_left(ends, offset + limit)
    passed = ends[first - 1] if first else 0
    pairs = changed_pairs(
        before, after, questions=questions[first : last + 1], offset=offset - passed, limit=limit
    )
    return list(pairs)


def changes_since(release: Release, evalset: EvalSet) -> ChangedCounts:
    """How the labels of this moment differ from those of the release, with the outside judges that it let in."""
    sql = f"""{SETTLED},
        before AS (
            SELECT rq.question_id, l.chunk_id, l.grade, l.why = 'model' AS by_model
            FROM labels_releasequestion rq
            CROSS JOIN LATERAL unnest(rq.chunk_ids, rq.grades, rq.why) AS l (chunk_id, grade, why)
            WHERE rq.release_id = %(before)s
        ),
        after AS (
            SELECT question_id, chunk_id, label AS grade, why = 'model' AS by_model
            FROM settled WHERE label IS NOT NULL
        ),
        changed AS (
            SELECT before.grade AS grade_before, after.grade AS grade_after,
                   before.by_model AS model_before, after.by_model AS model_after
            FROM before FULL JOIN after USING (question_id, chunk_id)
            WHERE before.grade IS DISTINCT FROM after.grade OR before.by_model <> after.by_model
        )
        SELECT grade_before, grade_after, model_before, model_after, count(*)
        FROM changed GROUP BY grade_before, grade_after, model_before, model_after"""
    judges = evalset.assessors.filter(kind=Assessor.Kind.MODEL, name__in=release.judges)
    settling = settle_parameters(evalset, judges=judges)
    with connection.cursor() as cursor:
        cursor.execute(sql, {**settling, "before": release.pk})
        return _counts(cursor)


def _counts(rows: Iterable[tuple[Any, ...]]) -> ChangedCounts:
    """Of rows (grade before, grade after, by a model before, after, how many pairs)."""
    regraded: Counter[tuple[int, int]] = Counter()
    numbers: Counter[str] = Counter()
    for before, after, model_before, model_after, count in rows:
        if before is None:
            numbers["added"] += count
            numbers["models_added"] += count * model_after
        elif after is None:
            numbers["removed"] += count
            numbers["models_removed"] += count * model_before
        else:
            if before != after:
                regraded[before, after] += count
            else:
                numbers["same_grade"] += count
            if model_before != model_after:
                numbers["judged" if model_before else "unjudged"] += count
    return ChangedCounts(numbers.pop("added", 0), numbers.pop("removed", 0), regraded, **numbers)


def _classes_not_in(here: Release, there: Release) -> list[list[str]]:
    """The classes of `here` whose members are not together in one class of `there`."""
    whole = there.release_classes.filter(chunk_ids__contains=OuterRef("chunk_ids"))
    return list(here.release_classes.filter(~Exists(whole)).values_list("external_ids", flat=True))

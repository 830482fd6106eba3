"""What differs between two releases, or between a release and the labels of this moment."""

# ruff: noqa: S608 - no value from outside is in the text of a statement

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import connection

from evalsets.models import EvalSet
from judging.models import Assessor
from labels.exports.reading import class_rows, question_rows
from labels.models import Release
from labels.settling import SETTLED, settle_parameters

SETTINGS = ("threshold", "scale", "gain", "settle_policy", "judges")

_LABELS_OF_RELEASE = """
    SELECT rq.question_id, rq.external_id AS question, l.chunk_id, l.chunk, l.grade, l.revision,
           l.why = 'model' AS by_model
    FROM labels_releasequestion rq
    CROSS JOIN LATERAL unnest(rq.chunk_ids, rq.external_ids, rq.grades, rq.revisions, rq.why)
        AS l (chunk_id, chunk, grade, revision, why)
    WHERE rq.release_id = %({name})s"""

_PAIRS = f"""
WITH before AS ({_LABELS_OF_RELEASE.format(name="before")}),
after AS ({_LABELS_OF_RELEASE.format(name="after")}),
changed AS (
    SELECT question_id, chunk_id,
           coalesce(after.question, before.question) AS question,
           coalesce(after.chunk, before.chunk) AS chunk,
           before.grade AS grade_before, after.grade AS grade_after,
           before.by_model AS model_before, after.by_model AS model_after
    FROM before FULL JOIN after USING (question_id, chunk_id)
    WHERE before.grade IS DISTINCT FROM after.grade OR before.by_model <> after.by_model
)"""

_COUNTED = """
SELECT grade_before, grade_after, model_before, model_after, count(*)
FROM changed GROUP BY grade_before, grade_after, model_before, model_after"""


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
    """All that differs between two releases but the pairs themselves, which `changed_pairs` reads page by page.

    `joined` are classes of the later release that were not one class before, `split` those of the earlier one that
    are not one class any more; each is a list of chunk IDs. `settings` maps a name to (before, after).
    """

    before: Release
    after: Release
    counts: ChangedCounts
    questions_added: list[str]
    questions_removed: list[str]
    questions_changed: list[str]
    joined: list[list[str]]
    split: list[list[str]]
    settings: dict[str, tuple[Any, Any]]

    @property
    def nothing(self) -> bool:
        return self.before.content_hash == self.after.content_hash


def difference_of(before: Release, after: Release) -> ReleaseDifference:
    """What differs from `before` to `after`, two releases of one eval set."""
    old, new = _questions(before), _questions(after)
    return ReleaseDifference(
        before=before,
        after=after,
        counts=_counts(
            f"{_PAIRS} {_COUNTED}",
            {"before": before.pk, "after": after.pk},
        ),
        questions_added=sorted(new.keys() - old.keys(), key=str.encode),
        questions_removed=sorted(old.keys() - new.keys(), key=str.encode),
        questions_changed=sorted((q for q in old.keys() & new.keys() if old[q] != new[q]), key=str.encode),
        joined=_classes_not_in(after, before),
        split=_classes_not_in(before, after),
        settings={
            name: (getattr(before, name), getattr(after, name))
            for name in SETTINGS
            if getattr(before, name) != getattr(after, name)
        },
    )


def changed_pairs(
    before: Release, after: Release, *, offset: int = 0, limit: int | None = None
) -> Iterator[ChangedPair]:
    """The pairs whose labels differ, by question ID, then chunk ID."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_PAIRS} SELECT question_id, chunk_id, question, chunk, grade_before, grade_after, "
            "model_before, model_after FROM changed "
            'ORDER BY question COLLATE "C", chunk COLLATE "C" OFFSET %(offset)s LIMIT %(limit)s',
            {"before": before.pk, "after": after.pk, "offset": offset, "limit": limit},
        )
        for row in cursor:
            yield ChangedPair(*row)


def changes_since(release: Release, evalset: EvalSet) -> ChangedCounts:
    """How the labels of this moment differ from those of the release, with the outside judges that it let in."""
    sql = f"""{SETTLED},
        before AS ({_LABELS_OF_RELEASE.format(name="before")}),
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
        {_COUNTED}"""
    judges = evalset.assessors.filter(kind=Assessor.Kind.MODEL, name__in=release.judges)
    settling = settle_parameters(evalset, judges=judges)
    return _counts(sql, {**settling, "before": release.pk})


def _counts(sql: str, parameters: dict[str, Any]) -> ChangedCounts:
    regraded: Counter[tuple[int, int]] = Counter()
    numbers: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for before, after, model_before, model_after, count in cursor:
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


def _questions(release: Release) -> dict[str, dict[str, Any]]:
    return {row.external_id: row.details for row in question_rows(release, "external_id", "details")}


def _classes_not_in(here: Release, there: Release) -> list[list[str]]:
    """The classes of `here` whose members are not together in one class of `there`."""
    class_there = {member: row.number for row in class_rows(there) for member in row.external_ids}
    return [
        row.external_ids
        for row in class_rows(here)
        if len({class_there.get(member) for member in row.external_ids}) > 1
        or row.external_ids[0] not in class_there
    ]

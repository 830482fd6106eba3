"""Figures that cannot be had without reading a whole eval set, or all of one large thing in it.

Where that is little, a page has them worked out as it opens. Where it is much, a job works them out when somebody
asks for it, and pages show what it found, say as of when, and whether anything has changed since. Kept figures are a
cache: losing them loses nothing but the job's time.
"""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from evalsets.models import EvalSet
from judging.models import BatchPair, KeptFigures

T = TypeVar("T")

# Beyond so many judgments, or questions, an eval set's figures are left to a job.
JUDGMENTS_AT_ONCE, QUESTIONS_AT_ONCE = 20_000, 2_000
# The next number whenever what any report holds changes its shape: figures of an older form are not read.
FORM = 1


@dataclass(frozen=True)
class Reckoned(Generic[T]):
    """Figures for a page. `value` is None where they have to be asked for; `at` is None where they are of this moment.

    `changed`: judgments, verdicts or acts of a lead have come in since.
    """

    name: str
    value: T | None
    at: datetime.datetime | None = None
    changed: bool = False


def more_than(count: int, rows: QuerySet[Any]) -> bool:
    """Whether there are more rows than that; reads no more of them to tell."""
    return rows.order_by()[count : count + 1].exists()


def is_large(evalset: EvalSet, key: int = 0) -> bool:
    """Whether reading all its judgments, or all its questions' rankings, takes longer than a page may."""
    return more_than(JUDGMENTS_AT_ONCE, evalset.judgments.all()) or more_than(
        QUESTIONS_AT_ONCE, evalset.questions.all()
    )


def is_large_batch(evalset: EvalSet, key: int) -> bool:
    """Whether reading all judgments of the batch with this key takes longer than a page may."""
    return more_than(JUDGMENTS_AT_ONCE, BatchPair.objects.filter(batch=key))


@dataclass(frozen=True)
class Report(Generic[T]):
    """Some figures: `work` finds those of an eval set, or of the thing in it that has this key."""

    name: str
    work: Callable[[EvalSet, int], T]
    is_large: Callable[[EvalSet, int], bool] = is_large

    def read(self, evalset: EvalSet, key: int = 0) -> Reckoned[T]:
        """The figures for a page."""
        name = self._name_with(key)
        if not self.is_large(evalset, key):
            return Reckoned(name, self.work(evalset, key))
        kept = KeptFigures.objects.filter(evalset=evalset, name=name, form=FORM).first()
        if kept is None:
            return Reckoned(name, None)
        value: T = pickle.loads(kept.value)  # noqa: S301 - written below, by nobody else
        return Reckoned(name, value, kept.at, changed=kept.state != state_of(evalset))

    def reckon(self, evalset: EvalSet, key: int = 0) -> None:
        """Work the figures out and keep them for the pages."""
        state, at = state_of(evalset), timezone.now()
        kept = {"form": FORM, "value": pickle.dumps(self.work(evalset, key)), "state": state, "at": at}
        KeptFigures.objects.update_or_create(evalset=evalset, name=self._name_with(key), defaults=kept)

    def _name_with(self, key: int) -> str:
        return f"{self.name}:{key}" if key else self.name


# Several IDs of each, since an ID is given out before its row can be seen: a row that is committed late, behind later
# ones, shows among them. What a lead does to an eval set leaves an event.
_STATE = """
SELECT md5(concat(
    ARRAY(SELECT id FROM judging_judgment WHERE evalset_id = %(evalset)s ORDER BY id DESC LIMIT 200),
    ARRAY(SELECT id FROM judging_pairverdict WHERE evalset_id = %(evalset)s ORDER BY id DESC LIMIT 50),
    ARRAY(SELECT id FROM evalsets_event WHERE evalset_id = %(evalset)s ORDER BY at DESC, id DESC LIMIT 50)
))"""


def state_of(evalset: EvalSet) -> str:
    """A word that is another one after every judgment, verdict, import and change of settings. Reads a few rows."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, {"evalset": evalset.pk})
        return str(cursor.fetchone()[0])


@dataclass(frozen=True)
class AsOf:
    """What a page says of the kept figures on it: of which `reports`, as of when (None: some were never worked out)."""

    reports: list[str]
    at: datetime.datetime | None
    changed: bool


def as_of(*figures: Reckoned[Any]) -> AsOf | None:
    """What a page that shows these figures must say of them; None where all are of this moment."""
    kept = [item for item in figures if item.at is not None or item.value is None]
    if not kept:
        return None
    times = [item.at for item in kept if item.at is not None]
    at = min(times) if len(times) == len(kept) else None
    return AsOf([item.name for item in kept], at, changed=any(item.changed for item in kept))

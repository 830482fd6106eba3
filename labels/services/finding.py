"""Releases, runs and outside judges by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterable

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from judging.models import Assessor
from labels.models import Release
from pooling.services.finding import find_run, find_runs

__all__ = ["find_judges", "find_release", "find_run", "find_runs"]


def find_release(evalset: EvalSet, number: int | None) -> Release:
    """The release of that number, or the latest; BadInput where there is none."""
    releases = Release.objects.filter(evalset=evalset)
    release = releases.filter(number=number).first() if number is not None else releases.first()
    if release is None:
        known = ", ".join(str(item) for item in releases.values_list("number", flat=True)[:20]) or "none yet"
        asked = f"release {number}" if number is not None else "release"
        raise BadInput(f"{evalset.slug} has no {asked}. Known: {known}.")
    return release


def find_judges(evalset: EvalSet, names: Iterable[str]) -> list[Assessor]:
    """The outside judges of these names, each once, by name; BadInput with the known ones where one is not there."""
    known = {judge.name: judge for judge in evalset.assessors.filter(kind=Assessor.Kind.MODEL)}
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)[:50]) or "none yet"
            raise BadInput(f"{evalset.slug} has no outside judge {name!r}. Known: {listed}.")
    return [known[name] for name in sorted(set(names))]

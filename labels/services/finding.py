"""Releases and runs by the names that people give them."""

from __future__ import annotations

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from labels.models import Release
from pooling.services.finding import find_run

__all__ = ["find_release", "find_run"]


def find_release(evalset: EvalSet, number: int | None) -> Release:
    """The release of that number, or the latest; BadInput where there is none."""
    releases = Release.objects.filter(evalset=evalset)
    release = releases.filter(number=number).first() if number is not None else releases.first()
    if release is None:
        known = ", ".join(str(item) for item in releases.values_list("number", flat=True)[:20]) or "none yet"
        asked = f"release {number}" if number is not None else "release"
        raise BadInput(f"{evalset.slug} has no {asked}. Known: {known}.")
    return release

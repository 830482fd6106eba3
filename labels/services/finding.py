"""Releases and runs by the names that people give them."""

from __future__ import annotations

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from labels.models import Release
from pooling.models import Run


def find_release(evalset: EvalSet, number: int | None) -> Release:
    """The release of that number, or the latest; BadInput where there is none."""
    releases = Release.objects.filter(evalset=evalset)
    release = releases.filter(number=number).first() if number is not None else releases.first()
    if release is None:
        known = ", ".join(str(item) for item in releases.values_list("number", flat=True)[:20]) or "none yet"
        asked = f"release {number}" if number is not None else "release"
        raise BadInput(f"{evalset.slug} has no {asked}. Known: {known}.")
    return release


def find_run(evalset: EvalSet, name: str) -> Run:
    """The run of that name, else the latest run of the system of that name; BadInput where there is neither."""
    runs = Run.objects.filter(evalset=evalset).select_related("system")
    run = runs.filter(name=name).first() or runs.filter(system__name=name).order_by("-date", "-pk").first()
    if run is None:
        known = ", ".join(runs.order_by("name").values_list("name", flat=True)[:20]) or "none yet"
        raise BadInput(f"{evalset.slug} has no run {name!r}. Known: {known}.")
    return run

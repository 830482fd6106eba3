"""Runs and pools by the names that people give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from pooling.models import Pool, Run, System
from pooling.rankings import RunToDepth


def find_run(evalset: EvalSet, name: str) -> Run:
    """The run of that name, else the latest run of the system of that name; BadInput where there is neither."""
    return find_runs(evalset, [name])[0]


def find_runs(evalset: EvalSet, names: Sequence[str]) -> list[Run]:
    """The run that each name means, as `find_run` says, in two statements however many there are."""
    named = _named_runs(evalset, names)
    for name in names:
        if name not in named:
            known = evalset.runs.order_by("name").values_list("name", flat=True)[:20]
            raise BadInput(f"{evalset.slug} has no run {name!r}. Known: {', '.join(known) or 'none yet'}.")
    return [named[name] for name in names]


def _named_runs(evalset: EvalSet, names: Iterable[str]) -> dict[str, Run]:
    """The runs by those of the names that mean one."""
    runs = Run.objects.filter(evalset=evalset).select_related("system")
    found = {run.name: run for run in runs.filter(name__in=names)}
    if others := [name for name in names if name not in found]:
        latest = runs.filter(system__name__in=others).order_by("system__name", "-date", "-pk")
        found |= {run.system.name: run for run in latest.distinct("system__name")}
    return found


def find_run_to_depth(evalset: EvalSet, text: str, default_k: int | None) -> RunToDepth:
    """What RUN[:K] names. A colon may be part of a name: the name as it stands comes first."""
    run = _named_runs(evalset, [text]).get(text)
    if run is not None:
        if default_k is None:
            raise BadInput(f"To which depth is {text!r} to be pooled? Write {text}:K, or give --k.")
        return RunToDepth(run, default_k)
    name, colon, depth = text.rpartition(":")
    if not colon:
        return RunToDepth(find_run(evalset, text), 0)  # which names the known ones
    run = find_run(evalset, name)
    if not (depth.isascii() and depth.isdigit()):
        raise BadInput(f"{text!r}: the depth after the colon is a whole number of at least 1; got {depth!r}.")
    return RunToDepth(run, int(depth))


def find_system(evalset: EvalSet, name: str) -> System:
    """The system of that name; BadInput with the known ones where there is none."""
    system = evalset.systems.select_related("evalset").filter(name=name).first()
    if system is None:
        known = evalset.systems.values_list("name", flat=True)[:20]
        raise BadInput(f"{evalset.slug} has no system {name!r}. Known: {', '.join(known) or 'none yet'}.")
    return system


def find_pool(evalset: EvalSet, name: str) -> Pool:
    """The pool of that name; BadInput with the known ones where there is none."""
    pool = evalset.pools.filter(name=name).first()
    if pool is None:
        known = evalset.pools.values_list("name", flat=True)[:20]
        raise BadInput(f"{evalset.slug} has no pool {name!r}. Known: {', '.join(known) or 'none yet'}.")
    return pool

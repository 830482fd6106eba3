"""Runs and pools by the names that people give them."""

from __future__ import annotations

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from pooling.models import Pool, Run
from pooling.rankings import RunToDepth


def find_run(evalset: EvalSet, name: str) -> Run:
    """The run of that name, else the latest run of the system of that name; BadInput where there is neither."""
    run = _named_run(evalset, name)
    if run is None:
        known = evalset.runs.order_by("name").values_list("name", flat=True)[:20]
        raise BadInput(f"{evalset.slug} has no run {name!r}. Known: {', '.join(known) or 'none yet'}.")
    return run


def _named_run(evalset: EvalSet, name: str) -> Run | None:
    runs = Run.objects.filter(evalset=evalset).select_related("system")
    return runs.filter(name=name).first() or runs.filter(system__name=name).order_by("-date", "-pk").first()


def find_run_to_depth(evalset: EvalSet, text: str, default_k: int | None) -> RunToDepth:
    """What RUN[:K] names. A colon may be part of a name: the name as it stands comes first."""
    run = _named_run(evalset, text)
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


def find_pool(evalset: EvalSet, name: str) -> Pool:
    """The pool of that name; BadInput with the known ones where there is none."""
    pool = evalset.pools.filter(name=name).first()
    if pool is None:
        known = evalset.pools.values_list("name", flat=True)[:20]
        raise BadInput(f"{evalset.slug} has no pool {name!r}. Known: {', '.join(known) or 'none yet'}.")
    return pool

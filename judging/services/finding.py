"""Batches by the names that people give them."""

from __future__ import annotations

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from judging.models import Batch


def find_batch(evalset: EvalSet, name: str) -> Batch:
    """The batch of that name; BadInput with the known ones where there is none."""
    batch = evalset.batches.filter(name=name).first()
    if batch is None:
        known = ", ".join(evalset.batches.values_list("name", flat=True)[:20]) or "none yet"
        raise BadInput(f"There is no batch {name!r} in {evalset.slug}. Known: {known}.")
    return batch

"""Drawing the holdout: which questions are kept aside to confirm a result on. Pure: no Django."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class SplitQuestion(NamedTuple):
    """What the draw needs to know of a question. An empty group: the question stands for itself."""

    id: str
    group: str
    slices: Sequence[str]


def draw_holdout(questions: Iterable[SplitQuestion], *, share: float, seed: int) -> set[str]:
    """The IDs of the questions that fall into the holdout, about `share` (0 to 1) of all and of each slice.

    A group is never torn apart, since tuning on one paraphrase leaks into the others. Slices are kept in proportion
    by iterative stratification (Sechidis, Tsoumakas and Vlahavas, "On the Stratification of Multi-Label Data", 2011):
    the rarest slice is dealt out first, each group to the side that is furthest from its due. The same questions,
    share and seed give the same holdout, in whatever order the questions come.
    """
    members: dict[str, list[SplitQuestion]] = defaultdict(list)
    for question in sorted(questions, key=lambda item: item.id):
        members[f"group {question.group}" if question.group else f"question {question.id}"].append(question)
    names = sorted(members)
    random.Random(seed).shuffle(names)  # noqa: S311 - a reproducible draw, not a secret
    sizes = {name: _slice_counts(members[name]) for name in names}
    totals = sum(sizes.values(), Counter[str]())
    # What each side is still due of each slice; "" is the slice that every question is in.
    due = {"holdout": {key: count * share for key, count in totals.items()}}
    due["dev"] = {key: count * (1 - share) for key, count in totals.items()}
    holdout: set[str] = set()
    left = list(names)
    while left:
        remaining = Counter(key for name in left for key in sizes[name])
        rarest = min(remaining, key=lambda key: (key == "", remaining[key], key))
        for name in [name for name in left if rarest in sizes[name]]:
            side = max(("dev", "holdout"), key=lambda side: (due[side][rarest], due[side][""]))
            if side == "holdout":
                holdout.update(question.id for question in members[name])
            for key, count in sizes[name].items():
                due[side][key] -= count
            left.remove(name)
    return holdout


def _slice_counts(questions: Iterable[SplitQuestion]) -> Counter[str]:
    """How many of the questions are in each slice, and under "" how many there are."""
    return Counter(key for question in questions for key in {"", *question.slices})

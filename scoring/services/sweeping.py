"""Comparing any number of runs with one baseline, and what picking the best of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F, QuerySet

from evalsets.errors import BadInput
from evalsets.models import Question, User
from evalsets.progress import Progress, silent
from labels.models import Release
from pooling.models import Run
from scoring.comparison import resolution
from scoring.models import Comparison
from scoring.services.comparing import (
    compare_runs,
    comparisons_so_far,
    full_document,
    holdout_uses,
    with_holm,
)
from scoring.services.scoring import Asked


def sweep_runs(
    *,
    release: Release,
    baseline: Run,
    candidates: Sequence[Run],
    asked: Asked,
    by: User | None = None,
    progress: Progress = silent,
) -> list[Comparison]:
    """Compare each candidate with the baseline by the one measure of `asked`, in the order given.

    BadInput for several measures, for no candidate, and as `compare_runs` raises it.
    """
    if len(asked.measures) > 1:
        raise BadInput("Name one measure here.")
    if not candidates:
        raise BadInput("Name a run other than the baseline.")
    made: list[Comparison] = []
    for done, candidate in enumerate(candidates):
        progress(done, len(candidates), f"Comparing {candidate.name} with {baseline.name}")
        made += compare_runs(release=release, run_a=baseline, run_b=candidate, asked=asked, by=by)
    return made


def best_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The comparisons with one baseline, that of the candidate with the highest score first."""
    return sorted(comparisons, key=lambda comparison: -comparison.document["b"]["raw"])


def comparisons_by(release: Release, asked: Asked) -> QuerySet[Comparison]:
    """What was compared on the release by the one measure and the rules of `asked`, the oldest first."""
    return Comparison.objects.filter(
        release=release,
        measure=asked.measures[0].name,
        split=asked.split,
        raw_a__unit=asked.unit,
        raw_a__threshold=asked.rules.threshold,
    ).order_by("pk")


def noise_floor(release: Release, asked: Asked) -> Comparison | None:
    """The latest comparison of two runs of one system: where nothing was changed, smaller differences are no news."""
    of_one_system = comparisons_by(release, asked).filter(run_a__system=F("run_b__system"))
    return of_one_system.select_related("run_a", "run_b").last()


def has_holdout(release: Release) -> bool:
    """Whether there are questions on which the best of a sweep can be confirmed."""
    return release.evalset.questions.filter(split=Question.Split.HOLDOUT).exists()


def sweep_document(release: Release, asked: Asked, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What `sweep --json` prints: each comparison as `compare` gives it, the best first, p adjusted for them all."""
    ranked = best_first(comparisons)
    floor = noise_floor(release, asked)
    return {
        "release": release.number,
        "hash": release.content_hash,
        **release.of_models,
        "measure": asked.measures[0].name,
        "threshold": asked.rules.threshold,
        "gain": asked.rules.gain,
        "unit": asked.unit.value,
        "split": asked.split or None,
        "baseline": ranked[0].document["a"]["run"],
        "best": ranked[0].document["b"]["run"],
        "comparisons": with_holm([full_document(comparison) for comparison in ranked]),
        "floor": floor
        and {
            "a": floor.run_a.name,
            "b": floor.run_b.name,
            "half_width": resolution(floor.document["interval"]),
            "page": floor.get_absolute_url(),
        },
        "has_holdout": has_holdout(release),
        "comparisons_so_far": comparisons_so_far(release),
        "holdout_uses": holdout_uses(release),
    }

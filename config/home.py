"""Where an eval set stands, and the one next thing to do: what its home page shows.

An assessor sees their own work and no more: neither systems nor how far others are.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from evalsets.models import EvalSet
from judging.models import Batch
from judging.reckoning import AsOf, as_of
from labels.coverage import UnjudgedCount
from labels.models import Release
from labels.reports import COVERAGE, STANDING, Standing, coverage_of
from pooling.models import Run

# The depth at which the home page looks at unjudged chunks; its table shows a shallower one beside it.
DEPTH = 10
SHALLOW_DEPTH = 5


class NextStep(NamedTuple):
    """What to do next, why, where, and what the button to it says."""

    title: str
    why: str
    address: str
    act: str


class LatestRun(NamedTuple):
    """A system's latest run and how much of what it returned is unjudged, at both depths.

    The counts are None where the figures that say so have to be asked for.
    """

    run: Run
    shallow: UnjudgedCount | None
    deep: UnjudgedCount | None


class Overview(NamedTuple):
    """The figures of the home page for leads and viewers; `standing` is None where it has to be asked for."""

    as_of: AsOf | None
    standing: Standing | None
    latest_runs: list[LatestRun]
    open_batches: QuerySet[Batch]
    release: Release | None


def evalset_overview(evalset: EvalSet) -> Overview:
    standing, coverage = STANDING.read(evalset), COVERAGE.read(evalset)
    covered = [(run, coverage_of(coverage, run)) for run in evalset.runs.latest_of_each_system()]
    return Overview(
        as_of=as_of(standing, coverage),
        standing=standing.value,
        latest_runs=[
            LatestRun(run, covers.unjudged(SHALLOW_DEPTH), covers.unjudged(DEPTH))
            if covers
            else LatestRun(run, None, None)
            for run, covers in covered
        ],
        open_batches=evalset.batches.open().with_progress(),
        release=evalset.releases.first(),
    )


def next_step(evalset: EvalSet, overview: Overview) -> NextStep | None:
    """The first thing on the way from questions to a fair comparison that is not done yet; None where the figures that
    say so have to be asked for first."""
    slug, standing = evalset.slug, overview.standing
    if standing is None:
        return None

    def importing(kind: str) -> str:
        return f"{reverse('judging:import', args=[slug])}?{urlencode({'kind': kind})}"

    if not standing.questions:
        return NextStep(
            "Bring in the questions", "Everything else refers to them.", importing("questions"), "Import"
        )
    if not overview.latest_runs:
        why = "A pool is the union of what several systems returned."
        return NextStep("Bring in runs", why, importing("run"), "Import")
    if standing.chunks_without_text == standing.chunks:
        why = "Assessors can only judge what they can read."
        return NextStep("Bring in the chunks", why, importing("chunks"), "Import")
    unjudged = [(item.run, item.deep) for item in overview.latest_runs if item.deep is not None]
    if len(unjudged) < len(overview.latest_runs):
        return None
    run, worst = max(unjudged, key=lambda item: item[1].rate or 0)
    if (worst.rate or 0) > evalset.low_unjudged_rate:
        return NextStep(
            f"Judge what {run.system} found",
            f"{worst.unjudged} of the {worst.returned} chunks it returned within the first {DEPTH} are "
            "unjudged. Until they are judged, any comparison with it favours the systems that built the pool.",
            reverse("judging:pool-new", args=[slug]),
            "See what that costs",
        )
    if overview.open_batches:
        batch = overview.open_batches[0]
        why = "Watch how it goes and what waits."
        return NextStep(f"Batch {batch} is being judged", why, batch.get_absolute_url(), "Open the batch")
    if standing.pairs.contested:
        return NextStep(
            f"Settle {standing.pairs.contested} contested pairs",
            "Their judgments differ and the policy gives them no label.",
            reverse("labels:settle-next", args=[slug]),
            "Settle them",
        )
    if overview.release is None or overview.release.counts.get("labels") != standing.pairs.labelled:
        why = "Scores are computed on frozen labels."
        return NextStep("Publish a release", why, reverse("labels:release-new", args=[slug]), "Publish")
    return NextStep(
        "Compare the systems",
        f"All are judged to depth {DEPTH}, near enough: the numbers can be read.",
        reverse("scoring:score-list", args=[slug]),
        "Open the scores",
    )

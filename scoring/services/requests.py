"""What a page or a job asks of scoring, from parameters that fit into a job's row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Job, User
from evalsets.progress import Progress, silent
from evalsets.services.jobs import start_job
from labels.models import Release
from labels.services.finding import find_release
from pooling.models import Ranking, Run
from scoring.resampling import SEED
from scoring.services.analysing import analyse_reusability, analyse_stages
from scoring.services.comparing import compare_runs
from scoring.services.scoring import Asked, resolve, score_runs
from scoring.services.sweeping import sweep_runs

#: Up to this many rankings are scored while the reader waits; more become a job.
RANKINGS_AT_ONCE = 3_000


@dataclass(frozen=True)
class Outcome:
    """What came of a request: a JSON-ready result, and the address at which it is shown."""

    result: dict[str, Any]
    url: str


@dataclass(frozen=True)
class _Request:
    evalset: EvalSet
    release: Release
    runs: list[Run]
    parameters: dict[str, Any]
    by: User
    progress: Progress

    @property
    def asked(self) -> Asked:
        return resolve(self.release, **self.parameters["rules"])

    def address(self, name: str, **query: Any) -> str:
        rules = self.parameters["rules"]
        said = {
            "release": self.release.number,
            "measures": " ".join(rules["measures"]),
            **{key: rules[key] for key in ("unit", "split", "threshold") if rules.get(key)},
            **({"common": "on"} if rules.get("common") else {}),
            **query,
        }
        return f"{reverse(name, args=[self.evalset.slug])}?{urlencode(said, doseq=True)}"


def start_performing(*, evalset: EvalSet, parameters: dict[str, Any], by: User) -> Job:
    """Have a worker do what the parameters ask."""
    title = TITLES[parameters["kind"]].format(runs=len(parameters["runs"]))
    return start_job(evalset=evalset, task="scoring.perform", title=title, by=by, parameters=parameters)


def is_long(parameters: dict[str, Any]) -> bool:
    """Whether the request takes longer than a reader should wait for a page."""
    return Ranking.objects.filter(run__in=parameters["runs"]).count() > RANKINGS_AT_ONCE


def perform(
    *, evalset: EvalSet, kind: str, parameters: dict[str, Any], by: User, progress: Progress = silent
) -> Outcome:
    """Do what is asked. BadInput where the rules, the runs or their rankings do not allow it."""
    by_id = {run.pk: run for run in evalset.runs.select_related("system").filter(pk__in=parameters["runs"])}
    missing = [pk for pk in parameters["runs"] if pk not in by_id]
    if missing:
        raise BadInput("A run that was chosen is not there any more.")
    request = _Request(
        evalset=evalset,
        release=find_release(evalset, parameters["release"]),
        runs=[by_id[pk] for pk in parameters["runs"]],
        parameters=parameters,
        by=by,
        progress=progress,
    )
    return KINDS[kind](request)


def _score(request: _Request) -> Outcome:
    scored = score_runs(
        release=request.release,
        runs=request.runs,
        asked=request.asked,
        by=request.by,
        progress=request.progress,
    )
    url = request.address(
        "scoring:score-list",
        runs_chosen=[run.name for run in request.runs],
        policy=request.parameters["rules"]["policy"],
    )
    return Outcome({"results": [result.pk for result in scored.results]}, url)


def _compare(request: _Request) -> Outcome:
    run_a, run_b = request.runs
    comparisons = compare_runs(
        release=request.release,
        run_a=run_a,
        run_b=run_b,
        asked=request.asked,
        seed=request.parameters.get("seed", SEED),
        by=request.by,
        progress=request.progress,
    )
    return Outcome({"comparisons": [one.pk for one in comparisons]}, comparisons[0].get_absolute_url())


def _sweep(request: _Request) -> Outcome:
    baseline, *candidates = request.runs
    made = sweep_runs(
        release=request.release,
        baseline=baseline,
        candidates=candidates,
        asked=request.asked,
        by=request.by,
        progress=request.progress,
    )
    url = request.address(
        "scoring:sweep", baseline=baseline.name, candidates=[candidate.name for candidate in candidates]
    )
    return Outcome({"comparisons": [one.pk for one in made]}, url)


def _reusability(request: _Request) -> Outcome:
    analysis = analyse_reusability(
        release=request.release,
        runs=request.runs,
        asked=request.asked,
        by=request.by,
        progress=request.progress,
    )
    return Outcome({"analysis": analysis.pk}, analysis.get_absolute_url())


def _stages(request: _Request) -> Outcome:
    analysis = analyse_stages(release=request.release, runs=request.runs, by=request.by)
    return Outcome({"analysis": analysis.pk}, analysis.get_absolute_url())


KINDS: dict[str, Callable[[_Request], Outcome]] = {
    "score": _score,
    "compare": _compare,
    "sweep": _sweep,
    "reusability": _reusability,
    "stages": _stages,
}

TITLES = {
    "score": "Score {runs} runs",
    "compare": "Compare two runs",
    "sweep": "Compare {runs} runs with a baseline",
    "reusability": "Leave out each of {runs} systems",
    "stages": "Trace evidence through {runs} stages",
}

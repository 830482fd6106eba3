"""Scores, comparisons, and what differs between two releases. What was computed once is stored and found again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.db.models import F
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.api.documents import Document, answer
from evalsets.api.inputs import Input, Name
from evalsets.api.jobs import JobOut, accepted
from evalsets.api.paging import PageOf, Paging, page_of
from labels.models import Release
from labels.services.finding import find_release, find_runs
from pooling.models import Run
from scoring.effects import difference_document
from scoring.models import Comparison, ScoreResult, depth_of
from scoring.resampling import SEED
from scoring.services.comparing import compare_runs, comparison_answer
from scoring.services.requests import is_long, start_performing
from scoring.services.scoring import resolve, score_document, score_runs

router = Router(tags=["Scores and comparisons"])


class Rules(Input):
    """The release, the measures, and the rules by which they are computed."""

    release: int | None = Field(
        None, ge=1, description="Its number; the latest where none is given.", examples=[3]
    )
    measures: list[Name] = Field(
        min_length=1,
        max_length=50,
        description="As ir_measures writes them.",
        examples=[["Recall@5", "nDCG@10"]],
    )
    threshold: int | None = Field(
        None, ge=1, le=9, description="Relevant from this grade; else the release's."
    )
    gain: Literal["exponential", "linear"] | None = Field(None, description="For nDCG; else the release's.")
    unit: Literal["chunk", "document"] = "chunk"
    split: Literal["", "dev", "holdout"] = Field("", description="Only questions of this split.")
    common: bool = Field(
        False, description="Where rankings are missing, score the questions that all the runs rank."
    )

    def rules(self) -> dict[str, Any]:
        """The keyword arguments of `resolve`, JSON-ready."""
        return self.model_dump(include={"measures", "threshold", "gain", "unit", "split", "common"})


class ScoreRequest(Rules):
    runs: list[Name] = Field(
        min_length=1,
        max_length=500,
        description="Runs, or systems for their latest runs.",
        examples=[["bm25", "dense"]],
    )
    policy: Literal["raw", "judged-only", "strict"] = Field(
        "raw", description="What is done about unjudged chunks."
    )


class CompareRequest(Rules):
    a: Name = Field(description="The baseline: a run, or a system for its latest run.", examples=["bm25"])
    b: Name = Field(description="What is compared with it.", examples=["dense"])
    margin: float = Field(
        0.0, ge=0, le=1, description="A regression is shown when the whole interval lies below minus this."
    )
    seed: int = Field(SEED, ge=0, le=2**63 - 1, description="Of the resampling.")


class ScoreOut(Document):
    """What `manage.py score --json` prints. No measure is without its unjudged rate."""

    release: int
    hash: str
    threshold: int
    gain: str
    policy: str
    unit: str
    runs: list[dict[str, Any]] = Field(
        examples=[[{"run": "bm25", "n": 22, "unjudged": {"5": 0.02}, "measures": {"Recall@5": 0.8333}}]]
    )


class Side(Document):
    run: str
    raw: float
    judged_only: float
    unjudged: float


class CompareOut(Document):
    """What `manage.py compare --json` prints; of several measures it tells the first, and `all` has the others."""

    reading: Literal["meaningful", "uninterpretable", "relabel"]
    why: list[str]
    remedy: str | None = Field(
        None,
        description="What has to be done first where the comparison may not be read.",
        examples=["Judge the remainder first."],
    )
    measure: str = Field(examples=["Recall@5"])
    a: Side
    b: Side
    n: int
    wins: int
    losses: int
    ties: int
    difference: float
    interval: list[float] = Field(min_length=2, max_length=2)
    p: float
    regressions: list[dict[str, Any]]
    configuration_differences: list[Any]
    comparisons_so_far: int
    sentence: str
    regression_shown: bool
    status: Literal[0, 1, 2] = Field(
        description="What the command's exit status would be. 0: no regression beyond the margin is shown; 1: one is; "
        "2: the comparison may not be read."
    )
    page: str = Field(description="The page that shows it.", examples=["/e/handbook/scores/comparisons/5/"])


class ScoreBrief(Schema):
    id: int
    run: str
    release: int
    policy: str
    unit: str
    split: str | None
    measures: dict[str, float | None]
    unjudged: dict[str, float]
    created_at: datetime


class ComparisonBrief(Schema):
    id: int
    a: str
    b: str
    release: int
    measure: str
    reading: str
    sentence: str
    created_at: datetime
    page: str


def _parameters(kind: str, release: Release, runs: list[Run], rules: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "release": release.number, "runs": [run.pk for run in runs], "rules": rules}


@router.post(
    "/scores",
    auth=auth.lead,
    response={200: ScoreOut, 202: JobOut},
    url_name="score-new",
    summary="Score runs",
)
def score_new(request: ApiRequest, response: HttpResponse, body: ScoreRequest) -> Any:
    """Score runs on a release. What is stored already is returned as it is. Very many rankings answer 202 with a job,
    whose `result` names the stored scores under `results`."""
    evalset = request.auth.evalset
    release = find_release(evalset, body.release)
    rules = {**body.rules(), "policy": body.policy}
    asked = resolve(release, **rules)
    runs = list({run.pk: run for run in find_runs(evalset, body.runs)}.values())
    parameters = _parameters("score", release, runs, rules)
    if is_long(parameters):
        return accepted(
            start_performing(evalset=evalset, parameters=parameters, by=request.auth.user), response
        )
    scored = score_runs(release=release, runs=runs, asked=asked, by=request.auth.user)
    return answer(score_document(scored.results))


@router.get(
    "/scores", auth=auth.reader, response=PageOf[ScoreBrief], url_name="score-list", summary="Stored scores"
)
def score_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The scores that are stored, the latest first, each measure with its unjudged rate."""
    results = ScoreResult.objects.filter(evalset=request.auth.evalset).select_related("run", "release")
    # Of a document with every question in it, the two parts that are wanted.
    results = results.defer("document").annotate(means=F("document__measures"), rates=F("document__unjudged"))
    return page_of(results, paging, _score_brief)


def _score_brief(result: Any) -> dict[str, Any]:
    return {
        **{name: getattr(result, name) for name in ("id", "policy", "unit", "created_at")},
        "run": result.run.name,
        "release": result.release.number,
        "split": result.split or None,
        "measures": {name: result.means[name] for name in result.measures},
        "unjudged": {name: result.rates[depth_of(name)] for name in result.measures},
    }


@router.get(
    "/scores/{int:pk}", auth=auth.reader, response=ScoreOut, url_name="score", summary="A stored score"
)
def score_detail(request: ApiRequest, pk: int) -> JsonResponse:
    """One run's numbers with every question's."""
    results = ScoreResult.objects.filter(evalset=request.auth.evalset).select_related("release")
    return answer(score_document([get_object_or_404(results, pk=pk)]))


@router.post(
    "/comparisons",
    auth=auth.lead,
    response={200: CompareOut, 202: JobOut},
    url_name="comparison-new",
    summary="Compare two runs",
)
def comparison_new(request: ApiRequest, response: HttpResponse, body: CompareRequest) -> Any:
    """Compare run B with run A on a release: may the difference be read at all, and what does it show? A comparison
    made before is returned as stored and not counted anew. Very many rankings answer 202 with a job, whose `result`
    names the comparisons under `comparisons`."""
    evalset = request.auth.evalset
    release = find_release(evalset, body.release)
    asked = resolve(release, **body.rules())
    run_a, run_b = find_runs(evalset, [body.a, body.b])
    parameters = {**_parameters("compare", release, [run_a, run_b], body.rules()), "seed": body.seed}
    if is_long(parameters):
        return accepted(
            start_performing(evalset=evalset, parameters=parameters, by=request.auth.user), response
        )
    comparisons = compare_runs(
        release=release, run_a=run_a, run_b=run_b, asked=asked, seed=body.seed, by=request.auth.user
    )
    return answer(comparison_answer(comparisons, margin=body.margin))


@router.get(
    "/comparisons",
    auth=auth.reader,
    response=PageOf[ComparisonBrief],
    url_name="comparison-list",
    summary="Comparisons made",
)
def comparison_list(request: ApiRequest, paging: Query[Paging]) -> dict[str, Any]:
    """The comparisons that were made, the latest first."""
    made = Comparison.objects.filter(evalset=request.auth.evalset)
    made = made.select_related("run_a", "run_b", "release", "evalset").defer("document")
    said = made.annotate(read_as=F("document__reading"), sentence=F("document__sentence"))
    return page_of(said, paging, _comparison_brief)


def _comparison_brief(comparison: Any) -> dict[str, Any]:
    return {
        **{name: getattr(comparison, name) for name in ("id", "measure", "sentence", "created_at")},
        "reading": comparison.read_as,
        "a": comparison.run_a.name,
        "b": comparison.run_b.name,
        "release": comparison.release.number,
        "page": comparison.get_absolute_url(),
    }


@router.get(
    "/comparisons/{int:pk}",
    auth=auth.reader,
    response=CompareOut,
    url_name="comparison",
    summary="A comparison",
)
def comparison_detail(
    request: ApiRequest, pk: int, margin: float = Query(0.0, ge=0, le=1, allow_inf_nan=False)
) -> JsonResponse:
    """One comparison as it was made; `margin` decides anew whether a regression is shown."""
    made = Comparison.objects.filter(evalset=request.auth.evalset).select_related("release", "evalset")
    return answer(comparison_answer([get_object_or_404(made, pk=pk)], margin=margin))


class DifferenceOut(Document):
    """What `manage.py diff_releases --json` prints."""

    added: int
    removed: int
    regraded: list[dict[str, int]]
    pairs: list[dict[str, Any]]
    questions: dict[str, list[str]]
    classes: dict[str, list[Any]]
    settings: dict[str, Any]
    scores: list[dict[str, Any]]


@router.get(
    "/releases/{int:before}/difference/{int:after}",
    auth=auth.reader,
    response=DifferenceOut,
    url_name="release-difference",
    summary="The difference of two releases",
    tags=["Releases"],
)
def release_difference(request: ApiRequest, before: int, after: int) -> JsonResponse:
    """Labels added, removed and regraded, questions, classes and settings, and the scores of runs that were scored on
    both."""
    releases = Release.objects.filter(evalset=request.auth.evalset)
    return answer(
        difference_document(
            get_object_or_404(releases, number=before), get_object_or_404(releases, number=after)
        )
    )

from __future__ import annotations

import csv
import io
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import page_of, sort_in
from evalsets.models import EvalSet
from pooling.formats import defused
from pooling.models import Run
from scoring.definitions import DEFINITIONS
from scoring.forms import DEFAULT_MEASURES, AskForm, ScoreForm
from scoring.models import ScoreResult, depth_of, rate_beside
from scoring.scores import CODE_VERSION
from scoring.services.scoring import resolve, score_document
from scoring.views.acting import act, errors_of, initial


@require_GET
@access.reader
def score_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Runs by measures on one release: what is stored of what the address asks for.

    `?sort=` a measure or `run` gives the order of the rows; a run without the value stands last.
    """
    latest = list(evalset.runs.latest_of_each_system())
    release = evalset.releases.first()
    form = initial(
        request,
        ScoreForm,
        evalset,
        release=release.number if release else None,
        runs_chosen=[run.name for run in latest],
    )
    runs, asked, shown = latest, None, release
    if form.is_bound and form.is_valid():
        runs, asked, shown = form.runs(), form.asked, form.cleaned_data["release"]
    elif release is not None:
        asked = resolve(release, measures=DEFAULT_MEASURES.split())
    results: dict[int, ScoreResult] = {}
    if asked is not None and shown is not None:
        for result in ScoreResult.objects.filter(
            release=shown,
            run__in=runs,
            measures=[measure.name for measure in asked.measures],
            policy=asked.rules.policy,
            unit=asked.unit,
            threshold=asked.rules.threshold,
            gain=asked.rules.gain,
            split=asked.split,
            count_inadmissible=evalset.count_inadmissible,
            code_version=CODE_VERSION,
        ).order_by("pk"):
            results[result.run_id] = result
    context = {
        "evalset": evalset,
        "tab": "scores",
        "form": form,
        "wrong": errors_of(form),
        "release": shown,
        "stale": release is not None and shown is not None and shown != release,
        "latest_release": release,
        "asked": asked,
        "measures": [(m.name, m.depth) for m in asked.measures] if asked else [],
        "rows": _sorted_rows(request.GET.get("sort", ""), [(run, results.get(run.pk)) for run in runs]),
        "unscored": sum(run.pk not in results for run in runs),
        "hidden": hidden_fields(form, runs, shown),
    }
    return render(request, "scoring/score_list.html", context)


def _sorted_rows(
    sort: str, rows: list[tuple[Run, ScoreResult | None]]
) -> list[tuple[Run, ScoreResult | None]]:
    name, falling = sort.removeprefix("-"), sort.startswith("-")
    if name == "run":
        return sorted(rows, key=lambda row: row[0].name, reverse=falling)

    def place(row: tuple[Run, ScoreResult | None]) -> tuple[bool, float]:
        value = row[1].document["measures"].get(name) if row[1] else None
        return value is None, 0 if value is None else -value if falling else value

    return sorted(rows, key=place)


def hidden_fields(form: AskForm, runs: list[Run], release: Any) -> list[tuple[str, str]]:
    """What the button that scores sends: the rules of the address, or the defaults."""
    if form.is_bound and form.is_valid():
        data = form.rules()
        said = [
            ("release", str(form.cleaned_data["release"].number)),
            ("measures", " ".join(data["measures"])),
        ]
        said += [(name, str(data[name])) for name in ("unit", "split", "threshold") if data[name]]
        said += [("policy", form.cleaned_data.get("policy") or "raw")]
        said += [("common", "on")] if data["common"] else []
    else:
        said = [("release", str(release.number) if release else ""), ("measures", DEFAULT_MEASURES)]
    return said + [("runs_chosen", run.name) for run in runs]


@require_GET
@access.reader
def definitions(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What each number means."""
    context = {"evalset": evalset, "definitions": DEFINITIONS}
    return render(request, "scoring/definitions.html", context)


@require_POST
@access.lead
def score_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = ScoreForm(request.POST, evalset=evalset)
    return act(request, evalset, kind="score", form=form, page="scoring:score-list")


@require_GET
@access.reader
def score_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """One result: its averages, and every question's values.

    `?sort=` a measure or `question` gives their order; else the lowest of the first measure come first.
    """
    result = get_object_or_404(evalset.score_results.select_related("run__system", "release"), pk=pk)
    document = result.document
    text = request.GET.get("q", "").strip()
    questions = [row for row in document["questions"] if text.lower() in row["id"].lower()]
    by, direction = sort_in(request, ("question", *result.measures), result.measures[0])
    questions.sort(key=lambda row: row["id"])
    questions.sort(
        key=lambda row: row["id"] if by == "question" else row["measures"][by], reverse=direction == "-"
    )
    page = page_of(request, questions)
    question_pks = dict(
        evalset.questions.filter(external_id__in=[row["id"] for row in page]).values_list("external_id", "pk")
    )
    context = {
        "evalset": evalset,
        "tab": "scores",
        "result": result,
        "document": document,
        "measures": result.pairs,
        "page": page,
        "rows": [
            (row["id"], question_pks.get(row["id"]), _cells(row, result.measures), row.get("facts"))
            for row in page
        ],
        "q": text,
        "sort": f"{direction}{by}",
        "by": by,
        "skipped": _by_reason(document["skipped"]),
        "latest": evalset.releases.first(),
        "code_is_current": result.code_version == CODE_VERSION,
    }
    return render(request, "scoring/score_detail.html", context)


def _cells(row: dict[str, Any], measures: list[str]) -> list[tuple[float, float]]:
    return [(row["measures"][name], rate_beside(row, name)) for name in measures]


def _by_reason(skipped: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    reasons: dict[str, list[str]] = {}
    for one in skipped:
        reasons.setdefault(one["why"], []).append(one["question"])
    return sorted(reasons.items())


@require_GET
@access.reader
def score_download(request: AuthedRequest, evalset: EvalSet, pk: int, form: str) -> HttpResponse:
    """The result as JSON, or its questions as CSV: every number with its unjudged rate in the next column."""
    result = get_object_or_404(evalset.score_results.select_related("run", "release"), pk=pk)
    name = f"{evalset.slug}-release-{result.release.number}-result-{result.pk}"
    if form == "json":
        response: HttpResponse = JsonResponse(
            whole_document(result), json_dumps_params={"ensure_ascii": False}
        )
        response["Content-Disposition"] = f'attachment; filename="{name}.json"'
        return response
    if form != "csv":
        raise Http404
    response = HttpResponse(questions_csv(result), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def whole_document(result: ScoreResult) -> dict[str, Any]:
    """The stored result with what it depends on, in the shape of `score --json`."""
    return {**score_document([result]), "run_hash": result.run_hash}


def questions_csv(result: ScoreResult) -> str:
    """One row a question. Cells that a spreadsheet would run are defused by a leading apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    header = ["release", "run", "policy", "question"]
    for name in result.measures:
        depth = depth_of(name)
        header += [name, f"unjudged@{depth} ({name})"]
    writer.writerow([*header, "labels of the release from models"])
    for row in result.document["questions"]:
        cells: list[Any] = [
            result.release.number,
            defused(result.run.name),
            result.policy,
            defused(row["id"]),
        ]
        for name in result.measures:
            cells += [repr(row["measures"][name]), repr(rate_beside(row, name))]
        writer.writerow([*cells, result.release.of_models["from_models"]])
    return out.getvalue()

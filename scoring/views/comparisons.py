from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET, require_POST

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.listing import filter_by, page_of, sorted_by
from evalsets.models import EvalSet
from scoring.comparison import FEW_QUESTIONS, few_questions, resolution
from scoring.forms import CompareForm
from scoring.models import Comparison, ScoreResult, depth_of
from scoring.pictures import bars_picture, interval_picture
from scoring.resampling import holm
from scoring.services.comparing import full_document, pool_membership
from scoring.side_by_side import columns
from scoring.views.acting import act, initial

#: The verdict in words, and the hue of its panel.
VERDICTS = {
    "meaningful": ("The difference may be read.", "verdict-read"),
    "uninterpretable": ("This is not a difference in quality.", "verdict-no"),
    "relabel": ("Nothing may be compared yet.", "verdict-no"),
}
#: The comparisons of so many of the latest releases can be listed by themselves.
MOST_RELEASES = 50
#: How deep both rankings of a question are shown where the measure looks at all of them.
SHOWN_DEPTH = 20


@require_GET
@access.reader
def comparison_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """The log of comparisons, and the form that makes one."""
    made = evalset.comparisons.select_related("run_a", "run_b", "release", "created_by")
    text = request.GET.get("q", "").strip()
    if text:
        made = made.filter(run_a__name__icontains=text) | made.filter(run_b__name__icontains=text)
    numbers = evalset.releases.values_list("number", flat=True)[:MOST_RELEASES]
    on = filter_by(request, "on", "Release", [(str(number), f"Release {number}") for number in numbers])
    if on.chosen:
        made = made.filter(release__number=int(on.chosen))
    columns = {"measure": "measure", "release": "release__number", "when": "created_at"}
    latest = list(evalset.runs.latest_of_each_system())
    release = evalset.releases.first()
    form = initial(
        request,
        CompareForm,
        evalset,
        release=release.number if release else None,
        a=request.GET.get("a") or (latest[0].name if latest else None),
        b=request.GET.get("b") or (latest[-1].name if len(latest) > 1 else None),
        measures=request.GET.get("measures") or "Recall@5",
    )
    context = {
        "evalset": evalset,
        "tab": "comparisons",
        "form": form,
        "page": page_of(request, sorted_by(request, made, columns, "-when")),
        "q": text,
        "filter": on,
        "releases": evalset.releases.exists(),
        "runs": len(latest),
    }
    return render(request, "scoring/comparison_list.html", context)


@require_POST
@access.lead
def comparison_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = CompareForm(request.POST, evalset=evalset)
    return act(request, evalset, kind="compare", form=form, page="scoring:comparison-list")


@require_GET
@access.reader
def comparison_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """The verdict in words first, then the numbers, the pictures, and the questions to read.

    These are the ones that got worse, or with `?show=better` those that got better; `?q=` finds them by ID.
    """
    comparison = get_object_or_404(
        evalset.comparisons.select_related("run_a__system", "run_b__system", "release", "raw_a", "raw_b"),
        pk=pk,
    )
    document = full_document(comparison)
    verdict, css = VERDICTS[document["reading"]]
    worse, better = document["regressions"], document["improvements"]
    low, high = document["interval"]
    changes = [(row["id"], row["b"] - row["a"]) for row in (*better, *worse)]
    depth = depth_of(comparison.measure)
    show = "better" if request.GET.get("show") == "better" else "worse"
    text = request.GET.get("q", "").strip()
    changed = better if show == "better" else worse
    page = page_of(request, [row for row in changed if text.lower() in row["id"].lower()], per_page=25)
    questions = {
        question.external_id: question
        for question in evalset.questions.filter(external_id__in=[row["id"] for row in page])
    }
    context = {
        "evalset": evalset,
        "tab": "comparisons",
        "comparison": comparison,
        "document": document,
        "verdict": verdict,
        "verdict_css": css,
        "depth": depth,
        "sides": [
            (
                "A",
                document["a"],
                comparison.run_a,
                pool_membership(comparison.release, comparison.run_a).depth,
            ),
            (
                "B",
                document["b"],
                comparison.run_b,
                pool_membership(comparison.release, comparison.run_b).depth,
            ),
        ],
        "interval": interval_picture(low, high, document["difference"]),
        "straddles": low <= 0 <= high,
        "bars": bars_picture(changes),
        "page": page,
        "rows": [(row, questions.get(row["id"])) for row in page],
        "show": show,
        "q": text,
        "tabs": [("worse", len(worse)), ("better", len(better))],
        "few": few_questions(document["n"]),
        "few_limit": FEW_QUESTIONS,
        "mend": ""
        if document["reading"] == "meaningful" or document.get("only_contested")
        else _pool_address(comparison, depth),
        "same_system": comparison.run_a.system_id == comparison.run_b.system_id,
        "half_width": resolution(document["interval"]),
        "adjusted": _adjusted(comparison),
        "latest": evalset.releases.first(),
    }
    return render(request, "scoring/comparison_detail.html", context)


def _pool_address(comparison: Comparison, depth: str) -> str:
    """Where the pool is made that mends the comparison, of both runs to the measure's depth; "" without such a page."""
    try:
        address = reverse("judging:pool-new", args=[comparison.evalset.slug])
    except NoReverseMatch:
        return ""
    query: dict[str, Any] = {"run": [comparison.run_a_id, comparison.run_b_id]}
    if depth != "all":
        query["k"] = depth
    return f"{address}?{urlencode(query, doseq=True)}"


def _adjusted(comparison: Comparison) -> float:
    """This comparison's p, adjusted for all that were made on its release by the same measure."""
    made = list(
        Comparison.objects.filter(release=comparison.release, measure=comparison.measure).values_list(
            "pk", "document__p"
        )
    )
    adjusted = holm([p for _, p in made])
    return adjusted[[pk for pk, _ in made].index(comparison.pk)]


@require_GET
@access.reader
def comparison_question(request: AuthedRequest, evalset: EvalSet, pk: int, question_pk: int) -> HttpResponse:
    """Both rankings of one question, side by side, with labels and texts."""
    comparison = get_object_or_404(
        evalset.comparisons.select_related("run_a__system", "run_b__system", "release__evalset"), pk=pk
    )
    question = get_object_or_404(evalset.questions, pk=question_pk)
    depth = depth_of(comparison.measure)
    shown = SHOWN_DEPTH if depth == "all" else min(int(depth), 100)
    try:
        first, second = columns(comparison, question.pk, shown)
    except KeyError:
        raise Http404("The release does not know this question.") from None
    results = ScoreResult.objects.filter(pk__in=[comparison.raw_a_id, comparison.raw_b_id])
    values = results.values_for(question.external_id, comparison.measure)
    context = {
        "evalset": evalset,
        "tab": "comparisons",
        "comparison": comparison,
        "question": question,
        "columns": [
            ("A", first, *values.get(comparison.raw_a_id, (None, None))),
            ("B", second, *values.get(comparison.raw_b_id, (None, None))),
        ],
        "depth": shown,
        "next_question": _after(comparison, question.external_id),
    }
    return render(request, "scoring/comparison_question.html", context)


def _after(comparison: Comparison, external_id: str) -> int | None:
    """The next regression after this question, by Question.id."""
    ids = [row["id"] for row in comparison.document["regressions"]]
    if external_id not in ids[:-1]:
        return None
    following = ids[ids.index(external_id) + 1]
    return comparison.evalset.questions.filter(external_id=following).values_list("pk", flat=True).first()

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import replace_url

from evalsets import access
from evalsets.access import AuthedRequest
from evalsets.errors import BadInput
from evalsets.listing import filter_by, number_in, page_of, sorted_by, sorted_rows
from evalsets.models import EvalSet
from judging.pool_course import FoundRow, lines_picture
from judging.pool_forms import PoolForm, PoolNameForm, SimulationForm, beginning, suggested_name
from judging.pool_numbers import PoolNumbers
from judging.pool_report import POOL, has_much_to_read
from judging.pool_tables import OVERLAP_SHOWN, chain_rows, overlap_rows, run_rows, waterfall
from judging.reckoning import as_of
from judging.services.pools import PAIR_STATES, mending_pool, pairs_of_question, preview_pool
from judging.services.remainder import remainder_lines
from judging.services.simulating import latest_simulation, start_simulating
from pooling.pooled import ancestors, pair_totals
from pooling.rankings import RunToDepth
from pooling.services.pool_jobs import BUILT_AT_ONCE, start_building
from pooling.services.pools import build_specified_pool, existing_pool
from pooling.specifying import PoolSpecification

# Of an order, so many chunks are named.
FIRST_SHOWN = 4
# Servers between here and the browser take no longer ones.
LONGEST_ADDRESS = 2000


@require_GET
@access.reader
def pool_list(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    pools = evalset.pools.select_related("extends", "created_by").prefetch_related("pool_runs__run__system")
    text = request.GET.get("q", "").strip()
    if text:
        pools = pools.filter(Q(name__icontains=text) | Q(pool_runs__run__name__icontains=text)).distinct()
    columns = {"name": "name", "built": "created_at", "strategy": "strategy"}
    page = page_of(request, sorted_by(request, pools, columns, "-built"))
    totals = pair_totals(page.object_list)
    context = {
        "evalset": evalset,
        "page": page,
        "rows": [(pool, totals.get(pool.pk, 0)) for pool in page],
        "q": text,
        "has_runs": bool(page.object_list) or evalset.runs.exists(),
    }
    return render(request, "judging/pool_list.html", context)


@require_http_methods(["GET", "POST"])
@access.lead
def pool_new(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Choose what to pool and see what it costs, then build it.

    A preview writes nothing, but is sent by POST: a list of questions is longer than an address may be.
    """
    if request.method == "POST":
        if "preview" in request.POST:
            return _preview(request, evalset, PoolForm(request.POST, evalset=evalset))
        return _build(request, evalset)
    form = PoolForm(
        request.GET if "strategy" in request.GET else beginning(evalset, request.GET), evalset=evalset
    )
    return _preview(request, evalset, form)


def _preview(
    request: AuthedRequest,
    evalset: EvalSet,
    form: PoolForm,
    name_form: PoolNameForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {"evalset": evalset, "form": form}
    if form.is_valid() and form.specification:
        specification = form.specification
        if request.method == "GET" and has_much_to_read(specification):
            context["entries"] = specification.reads_at_most
            return render(request, "judging/pool_new.html", context)
        numbers = preview_pool(specification)
        context |= _numbers_context(specification.runs, numbers, len(numbers.questions))
        context |= {
            "specification": specification,
            "name_form": name_form or PoolNameForm(initial={"name": suggested_name(specification)}),
            "already": existing_pool(specification),
        }
    if not request.htmx:
        return render(request, "judging/pool_new.html", context, status=status)
    response = render(request, "judging/pool_new.html#preview", context, status=status)
    address = f"{request.path}?{urlencode(form.as_sent())}"
    return replace_url(response, address) if len(address) < LONGEST_ADDRESS else response


def _numbers_context(runs: Sequence[RunToDepth], numbers: PoolNumbers, question_count: int) -> dict[str, Any]:
    return {
        "numbers": numbers,
        "question_count": question_count,
        "parts": waterfall(numbers.totals),
        "run_rows": run_rows(runs, numbers),
        "overlap_rows": overlap_rows(runs, numbers),
        "largest_added": max((counts.added for counts in numbers.runs), default=0),
        "overlap_left_out": max(0, len(runs) - OVERLAP_SHOWN),
    }


def _build(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form, name_form = PoolForm(request.POST, evalset=evalset), PoolNameForm(request.POST)
    if not (form.is_valid() and form.specification and name_form.is_valid()):
        return _preview(request, evalset, form, name_form, status=422)
    name = name_form.cleaned_data["name"]
    try:
        return _built(request, form.specification, name)
    except BadInput as error:
        name_form.add_error("name", str(error))
        return _preview(request, evalset, form, name_form, status=422)


def _built(request: AuthedRequest, specification: PoolSpecification, name: str) -> HttpResponse:
    if specification.reads_at_most > BUILT_AT_ONCE:
        return redirect(start_building(specification=specification, name=name, by=request.user))
    pool, created = build_specified_pool(specification=specification, name=name, by=request.user)
    if created:
        messages.success(request, "The pool is built. Hand out its remainder as a batch.")
    else:
        messages.info(request, "This very pool was built before; here it is.")
    return redirect(pool)


@require_GET
@access.reader
def pool_simulation(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """What each strategy would have found for how many judgments, on the eval set's own labels."""
    return _simulation_page(request, evalset, SimulationForm(evalset=evalset))


def _simulation_page(
    request: AuthedRequest, evalset: EvalSet, form: SimulationForm, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {"evalset": evalset, "form": form}
    job = latest_simulation(evalset)
    if job and job.result:
        found = job.result
        rows = [FoundRow(**row) for row in found["rows"]]
        context |= {"job": job, "found": found, "picture": lines_picture(found["columns"], rows)}
    return render(request, "judging/pool_simulation.html", context, status=status)


@require_POST
@access.lead
def pool_simulate(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    form = SimulationForm(request.POST, evalset=evalset)
    if form.is_valid():
        runs = [RunToDepth(run, form.cleaned_data["k"]) for run in form.cleaned_data["run"]]
        try:
            return redirect(start_simulating(evalset=evalset, runs=runs, by=request.user))
        except BadInput as error:
            form.add_error(None, str(error))
    return _simulation_page(request, evalset, form, status=422)


@require_POST
@access.lead
def pool_mend(request: AuthedRequest, evalset: EvalSet) -> HttpResponse:
    """Build, by one click, the pool that a comparison of two runs at k lacks."""
    run_a = get_object_or_404(evalset.runs.select_related("system"), pk=number_in(request.POST.get("run_a")))
    run_b = get_object_or_404(evalset.runs.select_related("system"), pk=number_in(request.POST.get("run_b")))
    try:
        specification, name = mending_pool(run_a=run_a, run_b=run_b, k=number_in(request.POST.get("k")))
        return _built(request, specification, name)
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("judging:pool-list", evalset.slug)


@require_GET
@access.reader
def pool_detail(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    pool = get_object_or_404(evalset.pools.select_related("evalset", "extends", "created_by"), pk=pk)
    read = POOL.read(evalset, pool.pk)
    if read.value is None:
        missing = {"evalset": evalset, "heading": pool.name, "as_of": as_of(read)}
        return render(request, "includes/not_worked_out.html", missing)
    numbers, table, course = read.value
    chain = ancestors(pool)[::-1]  # the oldest first
    text = request.GET.get("q", "").strip()
    page = page_of(request, table.places(request.GET.get("sort", ""), _matching(evalset, text)))
    rows = [table.at(place) for place in page]
    shown = evalset.questions.in_bulk([row.question_id for row in rows])
    without_copies = "without_copies" in request.GET
    runs = [RunToDepth(item.run, item.k) for item in pool.pool_runs.select_related("run__system")]
    context = _numbers_context(runs, numbers, len(table.question_ids)) | {
        "evalset": evalset,
        "as_of": as_of(read),
        "pool": pool,
        "specification": pool,  # as far as templates/judging/pool_strategy.html asks for it
        "without_copies": without_copies,
        "to_judge": numbers.totals.remainder - (numbers.totals.in_judged_class if without_copies else 0),
        "chain": chain,
        "chain_rows": chain_rows(chain, pair_totals(chain), numbers.seconds_per_judgment),
        "extensions": pool.extensions.all(),
        "batches": pool.batches.all(),
        "course": course,
        "reordering_count": pool.reorderings.count(),
        "page": page,
        "question_rows": [(shown[row.question_id], row.counts) for row in rows],
        "q": text,
    }
    return render(request, "judging/pool_detail.html", context)


@require_GET
@access.reader
def pool_order(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponse:
    """Each order that the strategy gave to what was left of a question, the latest first."""
    pool = get_object_or_404(evalset.pools, pk=pk)
    reorderings = pool.reorderings.select_related("question")
    text = request.GET.get("q", "").strip()
    if text:
        reorderings = reorderings.filter(question__external_id__icontains=text)
    page = page_of(request, reorderings)
    shown = {chunk for row in page for chunk in row.chunk_ids[:FIRST_SHOWN]}
    names = dict(evalset.chunks.filter(pk__in=shown).values_list("pk", "external_id"))
    context = {
        "evalset": evalset,
        "pool": pool,
        "page": page,
        "rows": [(row, [(pk, names[pk]) for pk in row.chunk_ids[:FIRST_SHOWN]]) for row in page],
        "q": text,
    }
    return render(request, "judging/pool_order.html", context)


def _matching(evalset: EvalSet, text: str) -> set[int] | None:
    if not text:
        return None
    found = evalset.questions.filter(Q(external_id__icontains=text) | Q(text__icontains=text))
    return set(found.values_list("pk", flat=True))


@require_GET
@access.reader
def pool_question(request: AuthedRequest, evalset: EvalSet, pk: int, question_pk: int) -> HttpResponse:
    """The pool's pairs for one question, with who returned each at which rank."""
    pool = get_object_or_404(evalset.pools.select_related("evalset"), pk=pk)
    question = get_object_or_404(evalset.questions, pk=question_pk)
    text = request.GET.get("q", "").strip()
    state = filter_by(request, "state", "State", [(name, name) for name in PAIR_STATES])
    pairs = [
        pair
        for pair in pairs_of_question(pool, question)
        if text.lower() in pair.chunk.external_id.lower() and state.chosen in ("", pair.state)
    ]
    keys = {"chunk": lambda pair: pair.chunk.external_id, "rank": lambda pair: pair.best_rank}
    context = {
        "evalset": evalset,
        "pool": pool,
        "question": question,
        "page": page_of(request, sorted_rows(request, pairs, keys, "chunk")),
        "q": text,
        "filter": state,
    }
    return render(request, "judging/pool_question.html", context)


@require_GET
@access.lead
def pool_remainder_file(request: AuthedRequest, evalset: EvalSet, pk: int) -> HttpResponseBase:
    """The remainder as JSONL, for a team that judges elsewhere; its answers come back through the import page."""
    pool = get_object_or_404(evalset.pools.select_related("evalset"), pk=pk)
    lines = remainder_lines(pool, without_copies="without_copies" in request.GET)
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="{evalset.slug}-pool-{pool.pk}-remainder.jsonl"'
    return response

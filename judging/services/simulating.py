"""Comparing strategies on an eval set's own labels: each is replayed over runs, in the background."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.urls import reverse

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Job, User
from evalsets.progress import Progress, silent
from evalsets.services.jobs import JobOutcome, start_job
from judging.pool_course import found_table
from pooling.models import Ranking, Run
from pooling.rankings import RunToDepth
from pooling.simulation import SHARES, Simulation, judgments_to_find, simulate, simulated
from pooling.simulation import Ranking as Returned

TASK = "judging.tasks.simulate_strategies"
# Of columns of the table that the picture is drawn from.
STEPS = 20

# The last word of people and files on the current text of each pair; a decision stands above it.
_GRADES = """
    SELECT DISTINCT ON (j.question_id, j.chunk_id) j.question_id, j.chunk_id, j.grade
    FROM judging_judgment j
    JOIN judging_assessor assessor ON assessor.id = j.assessor_id AND assessor.kind <> 'model'
    JOIN evalsets_chunk chunk ON chunk.id = j.chunk_id AND chunk.revision = j.revision
    WHERE j.evalset_id = %s AND j.kind = 'grade'
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    ORDER BY j.question_id, j.chunk_id, j.source = 'adjudication' DESC, j.id DESC
"""


def start_simulating(*, evalset: EvalSet, runs: Sequence[RunToDepth], by: User) -> Job:
    """Replay all strategies over these runs, each cut at its depth. Raises BadInput where nothing could be found."""
    refuse_nothing_to_find(evalset, runs)
    return start_job(
        evalset=evalset,
        task=TASK,
        title=f"Compare strategies over {len(runs)} runs",
        by=by,
        parameters={"runs": [[run.pk, k] for run, k in runs]},
    )


def simulate_for_job(job: Job, progress: Progress) -> JobOutcome:
    """The curves of all strategies, as the page shows them."""
    evalset: EvalSet = job.evalset
    depths: dict[int, int] = dict(job.parameters["runs"])
    names = dict(Run.objects.filter(pk__in=depths).values_list("pk", "name"))
    simulation = simulate_evalset(evalset=evalset, depths=depths, progress=progress)
    table = found_table(simulation.curves, relevant=simulation.relevant_in_union, steps=STEPS)
    return JobOutcome(
        {
            "runs": [[names[run], k] for run, k in depths.items()],
            "union": simulation.union,
            "unlabelled": simulation.unlabelled,
            "relevant_in_union": simulation.relevant_in_union,
            "relevant": simulation.relevant,
            "columns": table.columns,
            "rows": [{"name": row.name, "cells": row.cells} for row in table.rows],
            "shares": list(SHARES),
            "costs": [
                [
                    curve.name,
                    [judgments_to_find(curve, share * simulation.relevant_in_union) for share in SHARES],
                ]
                for curve in simulation.curves
            ],
        },
        reverse("judging:pool-simulation", args=[evalset.slug]),
    )


def simulate_evalset(
    *,
    evalset: EvalSet,
    depths: Mapping[int, int],
    strategies: Sequence[str] = (),
    threshold: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Simulation:
    """Replay the strategies, else all that the runs allow, on the eval set's labels; questions that have no relevant
    one are left out.

    `depths` says by Run.id where each run is cut. Raises BadInput for a strategy that cannot be replayed.
    """
    progress(0, None, "Reading runs and labels")
    rankings = [_rankings(run, k) for run, k in depths.items()]
    try:
        return simulate(
            rankings,
            _grades_of(evalset),
            strategies or simulated(rankings),
            k=max(depths.values()),
            threshold=threshold or evalset.threshold,
            seed=seed,
            progress=lambda done, total: progress(done, total, "Replaying strategies"),
        )
    except ValueError as error:
        raise BadInput(str(error)) from None


def refuse_nothing_to_find(evalset: EvalSet, runs: Sequence[Any]) -> None:
    """BadInput where a simulation over these runs could tell nothing."""
    if len(runs) < 2:
        raise BadInput("Strategies differ in how they choose among runs: name at least two.")
    if not _knows_relevant(evalset):
        raise BadInput("No pair is known to be relevant yet. Judge or import labels first.")


def latest_simulation(evalset: EvalSet) -> Job | None:
    """The last one that came to an end with a result."""
    return evalset.jobs.filter(task=TASK, result__isnull=False).first()


def _grades_of(evalset: EvalSet) -> Mapping[Any, Mapping[Any, int]]:
    """By Question.id and Chunk.id, as texts: a simulation reads IDs as files give them."""
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(_GRADES, [evalset.pk])
        for question, chunk, grade in cursor:
            grades[str(question)][str(chunk)] = grade
    return grades


def _knows_relevant(evalset: EvalSet) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT EXISTS (SELECT FROM ({_GRADES}) AS known WHERE grade >= %s)",  # noqa: S608 (a constant)
            [evalset.pk, evalset.threshold],
        )
        return bool(cursor.fetchone()[0])


def _rankings(run: int, k: int) -> dict[str, Returned]:
    rows = Ranking.objects.filter(run=run).values_list("question", "chunk_ids", "scores")
    return {
        str(question): ([str(chunk) for chunk in chunks[:k]], None if scores is None else scores[:k])
        for question, chunks, scores in rows.iterator()
    }

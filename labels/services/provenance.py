"""Where a release's labels come from: its pools, the runs in them, and how well the labels cover each."""

from __future__ import annotations

from typing import Any

from django.db import connection

from evalsets.models import EvalSet
from judging.models import Assessor, Judgment
from labels.settling import SETTLED, settle_parameters
from pooling.models import Pool, Run

# The depth at which a run that is in no pool is looked at.
UNPOOLED_DEPTH = 10

# Each of these runs at this k, over all its questions: what it returned, and what of that has no label. As in scoring,
# a member of a class is labelled with it; a class counts under its negative key, so that it is taken for no chunk.
COVERAGE = f"""{SETTLED},
covered AS (
    SELECT DISTINCT settled.question_id, coalesce(-member.chunk_class_id, settled.chunk_id) AS unit
    FROM settled LEFT JOIN judging_classmember member ON member.chunk_id = settled.chunk_id
    WHERE settled.label IS NOT NULL
)
SELECT asked.run_id, asked.k, count(c.chunk_id), count(c.chunk_id) FILTER (WHERE covered.unit IS NULL)
FROM unnest(%(runs)s::bigint[], %(depths)s::int[]) AS asked (run_id, k)
JOIN pooling_ranking r ON r.run_id = asked.run_id
CROSS JOIN LATERAL unnest(r.chunk_ids[1:asked.k]) AS c (chunk_id)
LEFT JOIN judging_classmember member ON member.chunk_id = c.chunk_id
LEFT JOIN covered ON covered.question_id = r.question_id
                 AND covered.unit = coalesce(-member.chunk_class_id, c.chunk_id)
GROUP BY asked.run_id, asked.k"""  # noqa: S608 - no value from outside is in the text


def provenance_of(evalset: EvalSet) -> dict[str, Any]:
    """What `Release.provenance` holds, JSON-ready.

    `pools`: the pools, oldest first, each with name, strategy, date and runs. `runs`: every pooled run at each `k` that
    a pool cut it at, and the latest run of each system that no pool holds (`pooled` false, k 10); each with what it
    `returned` within k and how much of that is `unlabelled`; what outside judges said covers nothing.
    `born_from`: the systems whose pool was judged first, and the file that the first labels came from.
    """
    pools = list(
        Pool.objects.filter(evalset=evalset)
        .order_by("created_at", "id")
        .prefetch_related("pool_runs__run__system")
    )
    return {
        "pools": [
            {
                "name": pool.name,
                "strategy": pool.strategy,
                "date": pool.created_at.date().isoformat(),
                "runs": [{**_as_json(item.run), "k": item.k} for item in pool.pool_runs.all()],
            }
            for pool in pools
        ],
        "runs": _runs(evalset, pools),
        "born_from": _born_from(evalset, pools),
    }


def _as_json(run: Run) -> dict[str, Any]:
    return {"system": run.system.name, "run": run.name, "stage": run.stage, "date": run.date.isoformat()}


def _runs(evalset: EvalSet, pools: list[Pool]) -> list[dict[str, Any]]:
    pooled = {(item.run_id, item.k): item.run for pool in pools for item in pool.pool_runs.all()}
    systems = {run.system_id for run in pooled.values()}
    others = {
        (run.pk, UNPOOLED_DEPTH): run
        for run in evalset.runs.latest_of_each_system().select_related("system")
        if run.system_id not in systems
    }
    asked = {**pooled, **others}
    with connection.cursor() as cursor:
        depths = {"runs": [run for run, _ in asked], "depths": [k for _, k in asked]}
        cursor.execute(COVERAGE, {**settle_parameters(evalset), **depths})
        covered = {(run, k): (returned, unlabelled) for run, k, returned, unlabelled in cursor}
    rows = []
    for (key, k), run in asked.items():
        returned, unlabelled = covered.get((key, k), (0, 0))
        rows.append(
            {
                **_as_json(run),
                "run_id": key,
                "pooled": (key, k) in pooled,
                "k": k,
                "returned": returned,
                "unlabelled": unlabelled,
            }
        )
    return sorted(rows, key=lambda row: (not row["pooled"], row["system"], row["run"], row["k"]))


def _born_from(evalset: EvalSet, pools: list[Pool]) -> dict[str, Any]:
    """`file`, `pool` and `systems` behind the first judgment.

    A file's own pool is not known to us: its labels belong to whatever systems they were made from. Where a pool had
    been built here before the file came, its systems are the ones that the file answers to.
    """
    first = (
        Judgment.objects.filter(evalset=evalset, kind=Judgment.Kind.GRADE)
        .exclude(assessor__kind=Assessor.Kind.MODEL)
        .select_related("imported_file", "pair__batch")
        .order_by("id")
        .first()
    )
    pool = None
    if first is not None and first.pair is not None:
        pool = next(pool for pool in pools if pool.pk == first.pair.batch.pool_id)
    elif first is not None:
        pool = next((pool for pool in pools if pool.created_at <= first.judged_at), None)
    return {
        "file": first.imported_file.name if first and first.imported_file else None,
        "pool": pool.name if pool else None,
        "systems": sorted({item.run.system.name for item in pool.pool_runs.all()}) if pool else [],
    }

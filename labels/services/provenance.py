"""Where a release's labels come from: its pools, the runs in them, and how well the labels cover each."""

from __future__ import annotations

from typing import Any

from django.db import connection

from evalsets.models import EvalSet
from judging.models import Judgment
from labels.settling import SETTLED, settle_parameters
from pooling.models import Pool, PoolRun

# Each pooled run at the deepest k of any pool, over all its questions: what it returned, and what has no label.
COVERAGE = f"""{SETTLED},
deepest AS (
    SELECT pr.run_id, max(pr.k) AS k
    FROM pooling_poolrun pr JOIN pooling_pool p ON p.id = pr.pool_id
    WHERE p.evalset_id = %(evalset)s
    GROUP BY pr.run_id
)
SELECT deepest.run_id, deepest.k, count(c.chunk_id),
       count(c.chunk_id) FILTER (WHERE settled.label IS NULL)
FROM deepest
JOIN pooling_ranking r ON r.run_id = deepest.run_id
CROSS JOIN LATERAL unnest(r.chunk_ids[1:deepest.k]) AS c (chunk_id)
LEFT JOIN settled ON settled.question_id = r.question_id AND settled.chunk_id = c.chunk_id
GROUP BY deepest.run_id, deepest.k"""  # noqa: S608


def provenance_of(evalset: EvalSet, *, include_models: bool) -> dict[str, Any]:
    """What `Release.provenance` holds.

    `pools`: the pools, oldest first, each with name, strategy, date and runs. `runs`: every pooled run with its
    deepest `k`, and `returned` and `unlabelled` within it. `born_from`: the systems whose pool was judged first, or
    the file that the first labels came from.
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
                "runs": [_as_json(pool_run) for pool_run in pool.pool_runs.all()],
            }
            for pool in pools
        ],
        "runs": _coverage(evalset, pools, include_models=include_models),
        "born_from": _born_from(evalset, pools),
    }


def _as_json(pool_run: PoolRun) -> dict[str, Any]:
    run = pool_run.run
    return {
        "system": run.system.name,
        "run": run.name,
        "stage": run.stage,
        "k": pool_run.k,
        "date": run.date.isoformat(),
    }


def _coverage(evalset: EvalSet, pools: list[Pool], *, include_models: bool) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(COVERAGE, settle_parameters(evalset, include_models=include_models))
        covered = {run: (k, returned, unlabelled) for run, k, returned, unlabelled in cursor}
    runs: dict[int, dict[str, Any]] = {}
    for pool in pools:
        for pool_run in pool.pool_runs.all():
            known = runs.get(pool_run.run_id, {"k": 0})
            k, returned, unlabelled = covered.get(pool_run.run_id, (0, 0, 0))
            runs[pool_run.run_id] = {
                **_as_json(pool_run),
                "run_id": pool_run.run_id,
                "k": max(k, known["k"], pool_run.k),
                "returned": returned,
                "unlabelled": unlabelled,
            }
    return sorted(runs.values(), key=lambda run: (run["unlabelled"], run["system"], run["run"]))


def _born_from(evalset: EvalSet, pools: list[Pool]) -> dict[str, Any]:
    """`file`, `pool` and `systems` behind the first judgment; a file's own pool is not known to us.

    Labels that came from a file before anything was pooled here belong to whatever systems that file was made from.
    Where a pool was there first, its systems are the ones that the file answers to.
    """
    first = (
        Judgment.objects.filter(evalset=evalset, kind=Judgment.Kind.GRADE)
        .exclude(assessor__kind="model")
        .select_related("imported_file", "pair__batch__pool")
        .order_by("id")
        .first()
    )
    if first is None:
        return {"file": None, "pool": None, "systems": []}
    pool = first.pair.batch.pool if first.pair else None
    if pool is None:
        pool = next((pool for pool in pools if pool.created_at <= first.judged_at), None)
    systems = sorted({item.run.system.name for item in pool.pool_runs.all()}) if pool else []
    return {
        "file": first.imported_file.name if first.imported_file else None,
        "pool": pool.name if pool else None,
        "systems": systems,
    }

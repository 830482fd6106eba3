"""Building a pool in the background, when it is large."""

from __future__ import annotations

from evalsets.models import EvalSet, Job, User
from evalsets.progress import Progress
from evalsets.services.jobs import JobOutcome, start_job
from pooling.models import Run
from pooling.services.pools import build_pool
from pooling.specifying import PoolSpecification

TASK = "pooling.build_pool"
# Beyond this many entries that a pool may have to read, it is built by a worker.
BUILT_AT_ONCE = 4_000_000


def start_building(*, specification: PoolSpecification, name: str, by: User) -> Job:
    """Hand the building of a pool to a worker. What could be wrong with it is found before, by `specify_pool`."""
    return start_job(
        evalset=specification.evalset,
        task=TASK,
        title=f"Build pool {name}"[:300],
        by=by,
        parameters={
            "name": name,
            "runs": [[run.pk, k] for run, k in specification.runs],
            "strategy": specification.strategy,
            "parameters": dict(specification.parameters),
            "question_filter": dict(specification.question_filter),
            "extends": specification.extends.pk if specification.extends else None,
            "seed": specification.seed,
        },
    )


def build_pool_for_job(job: Job, progress: Progress) -> JobOutcome:
    """Build the pool that a job's parameters describe."""
    evalset: EvalSet = job.evalset
    wanted = dict(job.parameters)
    runs = Run.objects.select_related("system").in_bulk([pk for pk, _ in wanted["runs"]])
    wanted["runs"] = [(runs[pk], k) for pk, k in wanted["runs"]]
    extends = evalset.pools.get(pk=wanted["extends"]) if wanted["extends"] else None
    pool, created = build_pool(
        **{**wanted, "extends": extends}, evalset=evalset, by=job.created_by, progress=progress
    )
    return JobOutcome({"pool": pool.pk, "created": created}, pool.get_absolute_url())

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.api.jobs import JobOut, job_json
from evalsets.commands import FairpoolCommand, add_by, find_evalset, lead_of
from evalsets.errors import BadInput
from evalsets.models import EvalSet, Job
from evalsets.services.jobs import request_cancel, retry_job


class Command(FairpoolCommand):
    help = "List the jobs of an eval set, the latest first; or ask one to stop, or hand it to a worker again."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("--limit", type=int, default=20, metavar="N", help="So many at most; default 20.")
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--cancel", type=int, metavar="ID", help="Stop this job; nothing of it is kept.")
        act.add_argument(
            "--retry",
            type=int,
            metavar="ID",
            help="Try a job again that was lost, failed, cancelled or never picked up. A worker must be running.",
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        if options["limit"] < 1:
            raise BadInput(f"--limit is a whole number from 1 up; got {options['limit']}.")
        by = lead_of(evalset, options)
        jobs = evalset.jobs.select_related("evalset", "created_by", "token__user")
        if options["cancel"] is not None:
            request_cancel(job=_find_job(evalset, options["cancel"]), by=by)
            jobs = jobs.filter(pk=options["cancel"])
        elif options["retry"] is not None:
            retry_job(job=_find_job(evalset, options["retry"]), by=by)
            jobs = jobs.filter(pk=options["retry"])
        found = jobs[: options["limit"]]
        return {"jobs": [JobOut(**job_json(job)).model_dump(mode="json") for job in found]}

    def show(self, document: dict[str, Any]) -> None:
        for job in document["jobs"]:
            state = "waiting: no worker answers" if job["no_worker_answers"] else job["state"]
            why = f". {job['error']}" if job["error"] else ""
            self.stdout.write(f"{job['id']}  {job['created_at'][:19]}  {job['title']}: {state}{why}")
        if not document["jobs"]:
            self.stdout.write("There are no jobs yet.")


def _find_job(evalset: EvalSet, pk: int) -> Job:
    job = evalset.jobs.filter(pk=pk).first()
    if job is None:
        raise BadInput(f"{evalset.slug} has no job {pk}. `manage.py jobs {evalset.slug}` lists them.")
    return job

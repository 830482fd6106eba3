"""Having the figures of a large eval set worked out by a worker."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ObjectDoesNotExist

from evalsets.errors import BadInput
from evalsets.listing import number_in
from evalsets.models import EvalSet, Job, User
from evalsets.progress import Progress, silent
from evalsets.services.jobs import start_job
from labels.reports import REPORTS

TASK = "labels.reckon"


def start_reckoning(*, evalset: EvalSet, reports: Sequence[str], back: str, by: User) -> Job:
    """Have a worker work out these `reports`, named as `Reckoned.name` does, and lead `back` to the page they are for.

    Where a worker is at it already, that job is returned. Raises BadInput for a report that there is not.
    """
    for name in reports:
        _parsed(name)
    parameters = {"reports": list(reports), "back": back}
    for job in evalset.jobs.filter(task=TASK, parameters=parameters, finished_at__isnull=True):
        if job.state in (Job.State.WAITING, Job.State.RUNNING):
            return job
    return start_job(evalset=evalset, task=TASK, title="Work out figures anew", by=by, parameters=parameters)


def reckon(*, evalset: EvalSet, reports: Sequence[str], progress: Progress = silent) -> None:
    """Work these reports out, and keep them for the pages."""
    for done, name in enumerate(reports):
        progress(done, len(reports), "Reading judgments")
        report, key = _parsed(name)
        try:
            REPORTS[report].reckon(evalset, key)
        except ObjectDoesNotExist:
            raise BadInput(f"What {name} is about is not there any more.") from None


def _parsed(name: str) -> tuple[str, int]:
    """The report's own name, and the key of what it is about: 0 where that is the whole eval set."""
    report, _, key = name.partition(":")
    if report not in REPORTS or (key and not number_in(key)):
        raise BadInput(f"There are no figures called {name!r}.")
    return report, number_in(key)

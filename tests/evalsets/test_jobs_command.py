"""The command `jobs`: listed, cancelled, tried again."""

from __future__ import annotations

import pytest

from evalsets.models import Job
from evalsets.services.jobs import start_job
from tests.commands import call, call_json

pytestmark = pytest.mark.django_db


def test_jobs_are_listed_cancelled_and_tried_again(evalset, carol, capsys):
    older = start_job(evalset=evalset, task="none", title="Count the chunks", by=carol)
    job = start_job(evalset=evalset, task="none", title="Count the questions", by=carol)
    _, document = call_json("jobs", "handbook", capsys=capsys)
    assert [one["id"] for one in document["jobs"]] == [job.pk, older.pk]
    assert document["jobs"][0].keys() >= {"id", "title", "state", "phase", "done", "total", "error", "page"}
    status, document = call_json("jobs", "handbook", "--cancel", job.pk, capsys=capsys)
    assert (status, [one["state"] for one in document["jobs"]]) == (0, ["cancelled"])
    assert call_json("jobs", "handbook", "--cancel", job.pk, capsys=capsys) == (
        3,
        {"error": "The job has ended already."},
    )
    _, out = call("jobs", "handbook", "--retry", job.pk, "--by", "carol", capsys=capsys)
    assert "Count the questions: waiting" in out
    assert Job.objects.get(pk=job.pk).state == "waiting"
    assert evalset.events.get(verb="job-retried").by == carol


def test_jobs_say_what_is_wrong(evalset, other_evalset, mallory, capsys):
    theirs = start_job(evalset=other_evalset, task="none", title="Theirs", by=mallory)
    status, document = call_json("jobs", "handbook", "--cancel", theirs.pk, capsys=capsys)
    assert (status, f"has no job {theirs.pk}" in document["error"]) == (3, True)
    assert call_json("jobs", "handbook", "--limit", 0, capsys=capsys)[0] == 3
    assert call("jobs", "handbook", capsys=capsys) == (0, "There are no jobs yet.\n")

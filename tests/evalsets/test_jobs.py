"""Jobs: their state follows from their times, and no work is lost or done twice."""

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.urls import reverse
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from evalsets.models import Job, Member
from evalsets.services.events import record_event
from evalsets.services.jobs import JobOutcome, request_cancel, retry_job, run_job, start_job

NOTHING = "evalsets.tests.nothing"


@pytest.fixture
def job(evalset, carol) -> Job:
    return start_job(evalset=evalset, task=NOTHING, title="Count the questions", by=carol)


def reloaded(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_waits_then_runs_then_is_done(job) -> None:
    assert job.state == Job.State.WAITING
    seen = []

    def work(running, progress):
        seen.append(reloaded(running).state)
        return JobOutcome({"count": 0}, "/there/")

    run_job(job.pk, work)
    assert seen == [Job.State.RUNNING]
    done = reloaded(job)
    assert (done.state, done.result, done.result_url) == (Job.State.DONE, {"count": 0}, "/there/")


def test_a_message_delivered_twice_does_the_work_once(job) -> None:
    calls = []
    for _ in range(2):
        run_job(job.pk, lambda running, progress: calls.append(running.pk) or JobOutcome())
    assert calls == [job.pk]


def test_bad_input_ends_it_with_the_message_and_writes_nothing(job, evalset) -> None:
    def work(running, progress):
        record_event(evalset=evalset, by=None, verb="half-done", summary="Half-done.")
        raise BadInput("Line 3 has five fields.", report={"faults": [3]})

    run_job(job.pk, work)
    failed = reloaded(job)
    assert (failed.state, failed.error, failed.result) == (
        Job.State.FAILED,
        "Line 3 has five fields.",
        {"faults": [3]},
    )
    assert not evalset.events.filter(verb="half-done").exists()


def test_a_fault_of_ours_is_said_to_be_one(job) -> None:
    with pytest.raises(ZeroDivisionError):
        run_job(job.pk, lambda running, progress: 1 // 0)
    assert "fault of ours" in reloaded(job).error


def test_a_silent_worker_is_taken_for_lost_and_the_job_can_be_retried(job, carol) -> None:
    long_ago = timezone.now() - timedelta(minutes=5)
    Job.objects.filter(pk=job.pk).update(started_at=long_ago, heartbeat_at=long_ago, attempt=1)
    lost = reloaded(job)
    assert lost.state == Job.State.LOST
    retry_job(job=lost, by=carol)
    assert reloaded(job).state == Job.State.WAITING
    run_job(job.pk, lambda running, progress: JobOutcome({"attempt": running.attempt}))
    assert reloaded(job).result == {"attempt": 2}


def test_a_worker_that_comes_back_late_does_not_end_the_next_attempt(job, carol) -> None:
    def slow_work(running, progress):
        long_ago = timezone.now() - timedelta(minutes=5)
        Job.objects.filter(pk=job.pk).update(started_at=long_ago, heartbeat_at=long_ago)
        retry_job(job=reloaded(job), by=carol)
        Job.objects.filter(pk=job.pk).update(
            started_at=timezone.now(), heartbeat_at=timezone.now(), attempt=running.attempt + 1
        )
        return JobOutcome({"from": "the lost worker"})

    run_job(job.pk, slow_work)
    assert reloaded(job).result is None


def test_cancelling_a_waiting_job_ends_it_and_who_did_it_is_known(evalset, job, carol) -> None:
    request_cancel(job=job, by=carol)
    assert reloaded(job).state == Job.State.CANCELLED
    with pytest.raises(Refused, match="ended already"):
        request_cancel(job=reloaded(job), by=carol)
    retry_job(job=reloaded(job), by=carol)
    done = evalset.events.filter(details__job=job.pk).order_by("pk").values_list("verb", "by__username")
    assert list(done) == [("job-cancelled", "carol"), ("job-retried", "carol")]


def test_a_running_job_cannot_be_retried(job, carol) -> None:
    Job.objects.filter(pk=job.pk).update(started_at=timezone.now(), heartbeat_at=timezone.now())
    with pytest.raises(Refused, match="running"):
        retry_job(job=reloaded(job), by=carol)


@pytest.mark.django_db(transaction=True)
def test_cancel_reaches_running_work_over_the_second_connection(evalset, carol) -> None:
    job = start_job(evalset=evalset, task=NOTHING, title="Count for ever", by=carol)

    def work(running, progress):
        request_cancel_from_elsewhere(running, carol)
        progress(1, 10, "counting")
        progress(2, 10, "counting on")
        raise AssertionError("it was not stopped")

    run_job(job.pk, work)
    assert reloaded(job).state == Job.State.CANCELLED


def request_cancel_from_elsewhere(job, by) -> None:
    from threading import Thread

    from django.db import connection

    def ask() -> None:
        request_cancel(job=job, by=by)
        connection.close()

    thread = Thread(target=ask)
    thread.start()
    thread.join()


@pytest.mark.django_db(transaction=True)
def test_progress_is_seen_before_the_work_is_committed(evalset, carol) -> None:
    job = start_job(evalset=evalset, task=NOTHING, title="Count", by=carol)
    seen = []

    def work(running, progress):
        progress(4, 8, "counting")
        shown = reloaded(running)
        seen.append((shown.done, shown.total, shown.phase, shown.percent))
        return JobOutcome()

    run_job(job.pk, work)
    assert seen == [(4, 8, "counting", 50)]


def test_page_says_that_no_worker_answers(job, carol, client_for) -> None:
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(seconds=30))
    html = client_for(carol).get(job.get_absolute_url()).content.decode()
    assert "No worker has picked this up" in html
    assert "Try again" in html


def test_htmx_gets_a_fragment_and_at_the_end_is_sent_to_the_outcome(job, carol, client_for) -> None:
    client = client_for(carol)
    fragment = client.get(job.get_absolute_url(), headers={"HX-Request": "true"})
    assert "<html" not in fragment.content.decode()
    run_job(job.pk, lambda running, progress: JobOutcome({}, "/there/"))
    assert client.get(job.get_absolute_url(), headers={"HX-Request": "true"})["HX-Redirect"] == "/there/"


def test_a_job_of_another_eval_set_is_not_there(job, mallory, other_evalset, client_for) -> None:
    assert client_for(mallory).get(f"/e/elsewhere/jobs/{job.pk}/").status_code == 404


def test_a_started_job_has_a_heartbeat(job) -> None:
    with pytest.raises(IntegrityError, match="job_started_without_heartbeat"):
        Job.objects.filter(pk=job.pk).update(started_at=timezone.now())


def test_events_are_append_only(evalset) -> None:
    event = record_event(evalset=evalset, by=None, verb="tested", summary="A test.")
    with pytest.raises(IntegrityError, match="append-only"):
        event.delete()


def test_events_cannot_be_changed(evalset) -> None:
    record_event(evalset=evalset, by=None, verb="tested", summary="A test.")
    with pytest.raises(IntegrityError, match="append-only"):
        evalset.events.update(summary="Another story.")


def test_member_roles_are_known_ones(evalset, alice) -> None:
    with pytest.raises(IntegrityError, match="member_role_unknown"):
        Member.objects.update(role="emperor")


def test_the_list_is_sorted_as_the_address_says(job, evalset, carol, client_for) -> None:
    later = start_job(evalset=evalset, task=NOTHING, title="Again", by=carol)
    address = reverse("evalsets:job-list", args=[evalset.slug])
    for sort, expected in (
        ("", [later, job]),
        ("job", [later, job]),
        ("-job", [job, later]),
        ("when", [job, later]),
    ):
        page = client_for(carol).get(address, {"sort": sort}).context["page"]
        assert [row.pk for row in page] == [row.pk for row in expected], sort


def test_a_search_keeps_the_sort_and_begins_at_the_first_page(job, evalset, carol, client_for) -> None:
    address = reverse("evalsets:job-list", args=[evalset.slug])
    html = client_for(carol).get(address, {"q": "nothing", "sort": '-job"', "page": "2"}).content.decode()
    assert '<input type="hidden" name="sort" value="-job&quot;">' in html
    assert 'type="hidden" name="page"' not in html
    assert '<a class="btn btn-link" href="?sort=-job%22">Clear</a>' in html


def test_the_list_can_be_cut_down_to_a_state(job, evalset, carol, client_for) -> None:
    now, long_ago = timezone.now(), timezone.now() - 2 * Job.HEARTBEAT_TIMEOUT
    started, ended = {"started_at": now, "heartbeat_at": now}, {"finished_at": now}
    for fields in (
        started,
        {**started, "heartbeat_at": long_ago},
        {**started, **ended, "result": {"n": 1}},
        {**started, **ended, "result": {"n": 1}, "cancel_requested_at": now},
        {**started, **ended, "error": "It broke."},
        {**ended, "cancel_requested_at": now},
        {**ended, "cancel_requested_at": now, "error": "It broke."},
    ):
        Job.objects.create(evalset=evalset, task=NOTHING, title="Other", created_by=carol, **fields)
    address = reverse("evalsets:job-list", args=[evalset.slug])
    found = {
        state: list(client_for(carol).get(address, {"state": state}).context["page"])
        for state in Job.State.values
    }
    assert {state: {row.state for row in rows} for state, rows in found.items()} == {
        state: {state} for state in Job.State.values
    }
    assert sum(map(len, found.values())) == evalset.jobs.count()
    html = client_for(carol).get(address, {"state": "failed", "q": "Nothing"}).content.decode()
    assert '<option value="failed" selected>' in html
    assert 'No job is like that. <a href="?">Show all</a>' in html

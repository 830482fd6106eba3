"""Figures of large eval sets: asked for by a person, worked out by a job, shown with the time they are as of."""

from __future__ import annotations

import re
import threading
import uuid

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from evalsets.errors import BadInput
from evalsets.models import Job
from evalsets.services.evalsets import change_settings
from judging import pool_report, reckoning
from judging.models import Judgment
from judging.pool_report import PoolReport
from judging.reckoning import as_of, state_of
from judging.services.adjudication import adjudicate
from labels.agreement_report import AgreementReport
from labels.reports import COVERAGE, QUEUE, REPORTS, STANDING, JudgePage
from labels.services.reckoning import reckon, start_reckoning
from labels.tasks import reckon_job
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge


@pytest.fixture
def large(evalset, alice, bob, monkeypatch):
    """The eval set, as if it were a large one: two questions, two chunks, one pair that waits, a judge and a pool."""
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 1)
    monkeypatch.setattr(pool_report, "ENTRIES_AT_ONCE", 1)
    questions, chunks = make_questions(evalset, "q1", "q2"), make_chunks(evalset, "c1", "c2")
    run = make_run(evalset, "run", {"q1": ["c1", "c2"], "q2": ["c1", "c2"]})
    build_pool(evalset=evalset, name="pool", runs=[(run, 2)], by=None)
    judge(questions[0], chunks[0], 0, by=alice)
    judge(questions[0], chunks[0], 3, by=bob)
    judge(questions[0], chunks[1], 1, by="file:labels")
    judge(questions[1], chunks[1], None, by=alice)
    for chunk in chunks:
        judge(questions[0], chunk, 1, by="model:judge")
    return evalset


def named(evalset) -> list[str]:
    """All reports, as pages name them, but for that of a batch's room, which has tests of its own."""
    keys = {
        "judge": evalset.assessors.get(kind="model").pk,
        "pool": evalset.pools.get().pk,
    }
    names = [name for name in REPORTS if name != "room"]
    return [f"{name}:{keys[name]}" if name in keys else name for name in names]


def read(evalset, name: str):
    report, _, key = name.partition(":")
    return REPORTS[report].read(evalset, int(key or 0)).value


def as_shown(value):
    """What can be compared of a report: arrays, and what they are of, are no words."""
    if isinstance(value, AgreementReport):
        return value.as_json()
    if isinstance(value, JudgePage):
        return value.report.as_json(), value.among_people
    if isinstance(value, PoolReport):
        return (
            value.numbers,
            value.course,
            [value.questions.at(place) for place in value.questions.places("", None)],
        )
    return value


@pytest.mark.parametrize("limit", ["JUDGMENTS_AT_ONCE", "QUESTIONS_AT_ONCE"])
def test_only_a_large_eval_set_leaves_its_figures_to_a_job(large, monkeypatch, limit) -> None:
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", large.judgments.count())
    assert as_of(STANDING.read(large)) is None
    monkeypatch.setattr(reckoning, limit, 1)
    assert STANDING.read(large).value is None


def test_kept_figures_are_those_of_a_small_eval_set(large, monkeypatch) -> None:
    names = named(large)
    assert {name: read(large, name) for name in names} == dict.fromkeys(names)
    reckon(evalset=large, reports=names)
    kept = {name: as_shown(read(large, name)) for name in names}
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 100)
    monkeypatch.setattr(pool_report, "ENTRIES_AT_ONCE", 100)
    assert kept == {name: as_shown(read(large, name)) for name in names}
    assert None not in kept.values()


def test_the_other_eval_sets_figures_are_not_its_own(large, other_evalset, monkeypatch) -> None:
    monkeypatch.setattr(reckoning, "QUESTIONS_AT_ONCE", 0)
    make_questions(other_evalset, "q1")
    reckon(evalset=large, reports=["standing"])
    assert STANDING.read(other_evalset).value is None


def judged_again(evalset, carol):
    judge(evalset.questions.get(external_id="q2"), evalset.chunks.get(external_id="c1"), 1)


def decided(evalset, carol):
    question, chunk = evalset.questions.get(external_id="q1"), evalset.chunks.get(external_id="c1")
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=uuid.uuid4())


def settled_otherwise(evalset, carol):
    evalset.settle_policy = "latest"
    change_settings(evalset=evalset, by=carol, changed=["settle_policy"])


@pytest.mark.parametrize("act", [judged_again, decided, settled_otherwise])
def test_figures_say_that_something_has_changed_since(large, carol, act) -> None:
    reckon(evalset=large, reports=["standing", "coverage"])
    before = STANDING.read(large)
    assert not before.changed
    act(large, carol)
    after = STANDING.read(large)
    assert (after.changed, after.value, after.at) == (True, before.value, before.at)
    reckon(evalset=large, reports=["standing"])
    assert not STANDING.read(large).changed
    both = as_of(STANDING.read(large), COVERAGE.read(large))
    assert (both.reports, both.changed) == (["standing", "coverage"], True)
    assert both.at == COVERAGE.read(large).at, "as of the older one"


@pytest.mark.django_db(transaction=True)
def test_a_judgment_that_is_committed_late_changes_the_state(large) -> None:
    """Its ID was given out before that of one that could be seen earlier."""
    [question], chunks = make_questions(large, "q3"), make_chunks(large, "c3", "c4")
    given_out, committed = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            judge(question, chunks[0], 1, by="file:late")
            given_out.set()
            assert committed.wait(20)
        connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert given_out.wait(20)
    judge(question, chunks[1], 1)
    before = state_of(large)
    committed.set()
    thread.join()
    assert state_of(large) != before


def test_reading_the_state_reads_few_rows(large, other_evalset) -> None:
    """However many judgments there are: they are found from the latest one backwards, by an index."""
    [question], [chunk] = make_questions(other_evalset, "q1"), make_chunks(other_evalset, "c1")
    pair = {
        "question": question,
        "chunk": chunk,
        "revision": 1,
        "assessor": judge(question, chunk, 1).assessor,
    }
    Judgment.objects.bulk_create(Judgment(evalset=other_evalset, grade=1, **pair) for _ in range(2000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE judging_judgment")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {reckoning._STATE}", {"evalset": large.pk})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Only Scan Backward using judgment_latest_of_evalset" in plan


# The job, and the pages.


@pytest.mark.django_db(transaction=True)
def test_a_job_works_the_figures_out_and_leads_back(large, carol) -> None:
    job = start_reckoning(evalset=large, reports=["standing"], back="/e/handbook/", by=carol)
    again = start_reckoning(evalset=large, reports=["standing"], back="/e/handbook/", by=carol)
    assert again == job, "one that waits already is not started twice"
    reckon_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result_url) == (Job.State.DONE, "/e/handbook/")
    assert STANDING.read(large).value.pairs.contested == 1
    assert start_reckoning(evalset=large, reports=["standing"], back="/e/handbook/", by=carol) != job


@pytest.mark.parametrize("report", ["nothing", "standing:x", "pool:1:2"])
def test_figures_that_there_are_not_are_refused(large, carol, report) -> None:
    with pytest.raises(BadInput, match="no figures called"):
        start_reckoning(evalset=large, reports=["standing", report], back="/", by=carol)


@pytest.mark.django_db(transaction=True)
def test_the_button_starts_the_job(large, carol, client_for) -> None:
    client = client_for(carol)
    page = client.get("/e/handbook/").content.decode()
    assert "a worker has to work the figures out" in page
    assert 'name="report" value="standing"' in page
    assert "Judged pairs" not in page, "no number is shown that is not known"
    fields = {"report": ["standing", "coverage"], "back": "/e/handbook/"}
    client.post("/e/handbook/figures/", fields)
    reckon_job(Job.objects.get().pk)
    page = client.get("/e/handbook/")
    assert "nothing has changed since" in page.content.decode()
    assert page.context["overview"].standing.pairs.contested == 1
    judge(large.questions.get(external_id="q2"), large.chunks.get(external_id="c1"), 1)
    assert "something has changed since" in client.get("/e/handbook/").content.decode()


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example/", "", "/" * 400])
def test_the_button_leads_nowhere_else(large, carol, client_for, back) -> None:
    client_for(carol).post("/e/handbook/figures/", {"report": "standing", "back": back})
    assert Job.objects.get().parameters["back"] == "/e/handbook/"


PAGES = [
    "/e/handbook/",
    "/e/handbook/systems/",
    "/e/handbook/contested/",
    "/e/handbook/contested/?why=skipped-only",
    "/e/handbook/releases/new/",
    "/e/handbook/agreement/",
    "/e/handbook/agreement/pairs/?low=0&high=3",
    "/e/handbook/judges/",
    "/e/handbook/judges/{judge}/",
    "/e/handbook/duplicates/",
    "/e/handbook/mappings/",
    "/e/handbook/pools/{pool}/",
]
LEAD_ONLY = ("new", "agreement", "duplicates", "mappings")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_of_a_large_eval_set_says_so_and_settles_no_whole_eval_set(
    large, carol, victor, client_for, address
) -> None:
    keys = {"judge": large.assessors.get(kind="model").pk, "pool": large.pools.get().pk}
    for user in (carol, victor):
        if user == victor and any(name in address for name in LEAD_ONLY):
            continue
        with CaptureQueriesContext(connection) as statements:
            html = client_for(user).get(address.format(**keys)).content.decode()
        assert "work the figures out" in html
        assert ("Work them out</button>" in html) == (user == carol)
        assert not [one for one in statements if "labelled AS (" in one["sql"]]


@pytest.mark.parametrize("address", PAGES)
def test_a_page_shows_kept_figures_as_it_shows_those_of_this_moment(
    large, carol, client_for, address, monkeypatch
) -> None:
    reckon(evalset=large, reports=named(large))
    keys = {"judge": large.assessors.get(kind="model").pk, "pool": large.pools.get().pk}
    client, address = client_for(carol), address.format(**keys)
    kept = client.get(address).content.decode()
    assert "nothing has changed since" in kept
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 100)
    monkeypatch.setattr(pool_report, "ENTRIES_AT_ONCE", 100)
    assert main_part(kept) == main_part(client.get(address).content.decode())


def main_part(page: str) -> str:
    """The page without what is said of when its figures are of, and without what differs at every look."""
    main = page[page.index("<main") : page.index("</main>")]
    main = re.sub(r'<div class="as-of.*?</div>', "", main, flags=re.DOTALL)
    main = re.sub(r'name="(csrfmiddlewaretoken|key)" value="[^"]*"', "", main)
    main = main.replace("The numbers are counted anew from the runs and judgments as they stand.", "")
    return re.sub(r"\s+", " ", main).strip()


def test_a_run_that_came_in_since_is_said_to_be_not_worked_out(large, carol, client_for) -> None:
    reckon(evalset=large, reports=["standing", "coverage"])
    client = client_for(carol)
    assert client.get("/e/handbook/").context["next_step"] is not None
    run = make_run(large, "newer", {"q1": ["c1", "c2"]})
    pages = ["/e/handbook/", "/e/handbook/systems/", f"/e/handbook/systems/{run.system_id}/"]
    for page in pages:
        assert "not worked out yet" in client.get(page).content.decode()
    home = client.get("/e/handbook/")
    assert home.context["next_step"] is None, "it may be what the newer run leaves unjudged"
    reckon(evalset=large, reports=["standing", "coverage"])
    for page in pages:
        assert "not worked out yet" not in client.get(page).content.decode()


def test_a_new_pool_with_much_to_read_is_counted_when_that_is_asked_for(large, carol, client_for) -> None:
    client = client_for(carol)
    page = client.get("/e/handbook/pools/new/")
    assert "numbers" not in page.context
    assert "entries of rankings have to be read" in page.content.decode()
    fields = {**page.context["form"].data.dict(), "preview": "1"}
    assert client.post("/e/handbook/pools/new/", fields).context["numbers"].totals.union == 4


def test_a_batch_of_a_large_pool_says_as_of_when_its_cost_is(large, carol, client_for) -> None:
    client, pool = client_for(carol), large.pools.get()
    page = client.get("/e/handbook/batches/new/")
    assert "cost" not in page.context
    assert "have not been worked out yet" in page.content.decode()
    reckon(evalset=large, reports=[f"pool:{pool.pk}"])
    page = client.get("/e/handbook/batches/new/")
    assert page.context["cost"].pairs == 2
    assert "nothing has changed since" in page.content.decode()


def test_a_listed_pair_that_was_decided_since_is_left_out(large, carol, client_for) -> None:
    client = client_for(carol)
    reckon(evalset=large, reports=["queue"])
    assert len(client.get("/e/handbook/contested/").context["rows"]) == 1
    assert client.get("/e/handbook/contested/next/").status_code == 302
    decided(large, carol)
    assert QUEUE.read(large).value.counts.waiting == 1, "as of the time that the page says"
    page = client.get("/e/handbook/contested/")
    assert page.context["rows"] == []
    assert "1 of the pairs listed here does not belong here any more" in page.content.decode()
    assert client.get("/e/handbook/contested/next/")["Location"] == "/e/handbook/contested/"


def test_the_summary_on_a_batch_page_says_as_of_when(large, carol, client_for) -> None:
    client = client_for(carol)
    htmx = {"HX-Request": "true"}
    assert "work the figures out" in client.get("/e/handbook/agreement/", headers=htmx).content.decode()
    reckon(evalset=large, reports=["agreement"])
    assert "nothing has changed since" in client.get("/e/handbook/agreement/", headers=htmx).content.decode()

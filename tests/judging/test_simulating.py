"""Comparing strategies on an eval set's own labels, from the form to the table that the picture is drawn from."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsets.models import Job
from judging.pool_course import FoundRow, lines_picture
from judging.tasks import simulate_strategies
from pooling.simulation import SIMULATED
from tests.commands import call_json
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge

pytestmark = pytest.mark.django_db

PAGE = "/e/handbook/pools/strategies/"


@pytest.fixture
def runs(evalset):
    """q1: relevant are a and d; q2: y, which nobody returned at rank 1."""
    q1, q2 = make_questions(evalset, "q1", "q2")
    chunks = {chunk.external_id: chunk for chunk in make_chunks(evalset, *"abcdxy")}
    first = make_run(evalset, "first", {"q1": ["a", "b", "c"], "q2": ["x", "y"]})
    second = make_run(evalset, "second", {"q1": ["d", "a"], "q2": []})
    for question, name, grade in ((q1, "a", 1), (q1, "b", 0), (q1, "d", 3), (q2, "y", 2), (q2, "x", 0)):
        judge(question, chunks[name], grade)
    judge(q1, chunks["c"], 3, by="model:gpt")
    return [first, second]


@pytest.mark.django_db(transaction=True)
def test_a_lead_compares_and_all_see_it(evalset, runs, carol, victor, client_for) -> None:
    assert "Nobody has compared strategies yet" in client_for(victor).get(PAGE).content.decode()
    lead = client_for(carol)
    assert [run.name for run in lead.get(PAGE).context["form"].initial["run"]] == ["first", "second"]
    answer = lead.post(
        reverse("judging:pool-simulate", args=["handbook"]), {"run": [r.pk for r in runs], "k": 3}
    )
    job = Job.objects.get()
    assert answer["Location"] == job.get_absolute_url()
    simulate_strategies(job.pk)
    job.refresh_from_db()
    assert job.result_url == PAGE

    page = client_for(victor).get(PAGE)
    found = page.context["job"].result
    # Of the union a b c d, x y the pair c has only a model's word, which is none.
    assert (found["union"], found["unlabelled"], found["relevant_in_union"], found["relevant"]) == (
        6,
        1,
        3,
        3,
    )
    assert [row["name"] for row in found["rows"]] == list(SIMULATED)
    assert found["rows"][0]["name"] == "depth"
    at = found["columns"].index(3)
    assert found["rows"][0]["cells"][at] == [2, pytest.approx(2 / 3)]  # a, d and x at rank 1
    assert dict(found["costs"])["depth"] == [3, 5, 5, 5, 5]
    body = page.content.decode()
    assert "6 pairs in the union of 2 runs (first to 3, second to 3)" in body
    assert '<th scope="col" class="number">to find 50' in body


def test_what_cannot_be_compared_is_told_before(evalset, runs, carol, client_for) -> None:
    lead = client_for(carol)
    address = reverse("judging:pool-simulate", args=["handbook"])
    one = lead.post(address, {"run": [runs[0].pk], "k": 3})
    assert (one.status_code, "name at least two" in one.content.decode()) == (422, True)
    evalset.threshold = 9
    evalset.save()
    none = lead.post(address, {"run": [run.pk for run in runs], "k": 3})
    assert (none.status_code, "No pair is known to be relevant" in none.content.decode()) == (422, True)
    assert lead.post(address, {"k": 0}).status_code == 422
    assert not Job.objects.exists()


def test_the_picture_of_a_table() -> None:
    columns = [0, 10, 20, 30, 40]
    slow = FoundRow("slow", [(0, 0.0), (1, 0.1), (5, 0.5), (9, 0.9), (10, 1.0)])
    quick = FoundRow("quick", [(0, 0.0), (6, 0.6), (8, 0.8), (9, 0.9), (10, 1.0)])
    picture = lines_picture(columns, [slow, quick], width=400, height=100)
    assert [(line.number, line.name) for line in picture.lines] == [(1, "quick"), (0, "slow")]
    assert picture.lines[1].points == "0.0,100.0 100.0,90.0 200.0,50.0 300.0,10.0 400.0,0.0"
    assert picture.ticks == [(0.0, 0), (100.0, 10), (200.0, 20), (300.0, 30), (400.0, 40)]


def test_the_command_replays_them_on_the_eval_sets_own_labels(evalset, runs, capsys) -> None:
    arguments = ("simulate_pooling", "--evalset", "handbook", "--run", "first", "second", "--k", 3)
    status, document = call_json(*arguments, capsys=capsys)
    assert status == 0
    assert (document["union"], document["unlabelled"], document["relevant_in_union"]) == (6, 1, 3)
    assert (document["threshold"], [one["name"] for one in document["strategies"]]) == (1, list(SIMULATED))
    _, document = call_json(*arguments, "--threshold", 3, "--strategy", "budget", "depth", capsys=capsys)
    assert [one["name"] for one in document["strategies"]] == ["budget:rrf", "depth"]
    assert (document["threshold"], document["relevant"]) == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "first"], "name at least two"),
        (["--run", "first", "third"], "has no run 'third'"),
        (["--run", "first", "second", "--strategy", "luck"], "luck"),
        (["--run", "first", "second", "--threshold", 0], "from 1 up"),
    ],
)
def test_the_command_says_what_is_wrong(evalset, runs, capsys, arguments, message) -> None:
    status, document = call_json("simulate_pooling", "--evalset", "handbook", *arguments, capsys=capsys)
    assert (status, message in document["error"]) == (3, True)

"""Pools, batches, releases, scores and comparisons over the API: the same answers that the commands give."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from django.core.management import call_command

from evalsets.models import Job
from judging.models import Batch, Judgment
from labels.models import Release
from labels.services.publishing import publish_release
from labels.tasks import publish_release_job
from pooling.models import Pool, Run
from scoring.models import Comparison, ScoreResult
from scoring.tasks import perform_job
from tests.config.api import ApiClient, token_for
from tests.config.test_api import assert_problem
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge
from tests.scoring.test_measures import LABELS, RUN_A, RUN_B
from tests.scoring.test_scoring_services import release_labels


@pytest.fixture
def lead(evalset, carol) -> ApiClient:
    return ApiClient(token_for(evalset, carol, name="ci"))


@pytest.fixture
def runs(evalset) -> tuple[Run, Run]:
    """Two runs over two questions; c1 is judged for q1."""
    q1, _ = make_questions(evalset, "q1", "q2")
    c1, *_ = make_chunks(evalset, "c1", "c2", "c3", "c4")
    judge(q1, c1, 0)
    return (
        make_run(evalset, "bm25", {"q1": ["c1", "c2"], "q2": ["c3"]}),
        make_run(evalset, "dense", {"q1": ["c2", "c4"], "q2": ["c3", "waits"]}),
    )


def command(*line: object) -> dict:
    """The document that a command prints with --json, whatever its exit status."""
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command(*map(str, line), "--json", stdout=out)
    return json.loads(out.getvalue())


def status_of(*line: str) -> int:
    """The exit status of a command."""
    try:
        call_command(*line, stdout=io.StringIO())
    except SystemExit as ended:
        return int(ended.code)
    return 0


def content(response) -> bytes:
    return b"".join(response.streaming_content)


# Pools and batches


def test_a_preview_says_what_the_command_says_and_writes_nothing(evalset, lead, runs) -> None:
    asked = {"runs": [{"run": "bm25"}, {"run": "dense", "k": 2}], "k": 1}
    numbers = lead.call("post", "/pools/preview", asked).json()
    assert (numbers["union"], numbers["judged"], numbers["waiting_for_text"], numbers["remainder"]) == (
        5,
        1,
        1,
        3,
    )
    said = command("build_pool", "handbook", "--run", "bm25:1", "--run", "dense:2", "--preview")
    assert numbers == {key: value for key, value in said.items() if key != "written"}
    assert not Pool.objects.exists()


def test_building_twice_is_one_pool(evalset, lead, runs) -> None:
    asked = {"name": "both", "runs": [{"run": "bm25"}, {"run": "dense"}], "k": 2}
    first = lead.call("post", "/pools", asked)
    again = lead.call("post", "/pools", {**asked, "name": "another name"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["written"], again.json()["written"], again.json()["pool"]) == (True, False, "both")
    pool = Pool.objects.get()
    assert lead.call("get", f"/pools/{pool.pk}").json()["union"] == 5
    [listed] = lead.call("get", "/pools").json()["items"]
    assert listed["runs"] == [{"run": "bm25", "k": 2}, {"run": "dense", "k": 2}]
    assert evalset.events.first().actor == "token ci of Carol"


def test_a_very_large_pool_is_a_job(evalset, lead, runs, monkeypatch) -> None:
    monkeypatch.setattr("judging.api.pools.BUILT_AT_ONCE", 1)
    response = lead.call("post", "/pools", {"name": "both", "runs": [{"run": "bm25"}]})
    assert response.status_code == 202
    assert response["Location"] == f"/api/v1/evalsets/handbook/jobs/{Job.objects.get().pk}"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"runs": []}, "runs: List should have at least 1 item"),
        ({"runs": [{"run": "bm25", "k": 0}]}, "runs.0.k: Input should be greater than or equal to 1"),
        ({"runs": [{"run": "bm25", "depth": 3}]}, "runs.0.depth: Extra inputs"),
        ({"runs": [{"run": "bm52"}]}, "has no run 'bm52'. Known: bm25, dense"),
        ({"runs": [{"run": "bm25"}], "strategy": "guess"}, "guess"),
        ({"runs": [{"run": "bm25"}], "questions": ["q9"]}, "not in this eval set: q9"),
        ({"runs": [{"run": "bm25"}], "extends": "none"}, "has no pool 'none'"),
        ({"runs": [{"run": "bm25\x00"}]}, "runs.0.run: String should match pattern"),
    ],
)
def test_wrong_pools(asked, words, lead, runs) -> None:
    assert_problem(lead.call("post", "/pools/preview", asked), 422, words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"name": "both",\n "runs": [}', "Expecting value: line 2 column 11"),
        (b'{"name": "\xff"}', "can't decode byte 0xff in position 10"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_json_that_is_none_is_told_where(body, words, lead) -> None:
    response = lead.call("post", "/pools", body, content_type="application/json")
    assert_problem(response, 400, words)
    assert_problem(response, 400, "Send one JSON document in UTF-8")


def test_json_that_is_too_large(lead) -> None:
    large = b'{"name": "' + b"x" * 5_000_000 + b'"}'
    assert_problem(
        lead.call("post", "/pools", large, content_type="application/json"), 413, "too large for JSON"
    )


def test_the_remainder_goes_out(evalset, lead, runs) -> None:
    pool = lead.call("post", "/pools", {"name": "both", "runs": [{"run": "bm25"}, {"run": "dense"}]}).json()
    response = lead.call("get", f"/pools/{pool['id']}/remainder")
    assert (response.streaming, response["Content-Type"]) == (True, "application/jsonl")
    pairs = [json.loads(line) for line in content(response).splitlines()]
    assert sorted((pair["question_id"], pair["chunk_id"]) for pair in pairs) == [
        ("q1", "c2"),
        ("q1", "c4"),
        ("q2", "c3"),
    ]
    assert pairs[0]["grade"] is None


def test_a_batch_is_made_and_seen(evalset, lead, runs, alice, bob, carol) -> None:
    evalset.rubrics.create(version=1, scale=evalset.scale, instructions="Read to the end.")
    lead.call("post", "/pools", {"name": "both", "runs": [{"run": "bm25"}, {"run": "dense"}]})
    asked = {"pool": "both", "name": "first", "assessors": ["alice"], "sharing": "shared", "overlap": 1}
    response = lead.call("post", "/batches", asked)
    assert response.status_code == 201, response.content
    batch = response.json()
    assert (batch["pairs"], batch["filled"], batch["pool"], batch["sharing"]) == (3, 0, "both", "shared")
    assert lead.call("get", f"/batches/{batch['id']}").json() == batch
    assert Batch.objects.get().rubric.instructions == "Read to the end."
    assert_problem(
        lead.call("post", "/batches", {**asked, "name": "x", "assessors": ["nobody"]}), 422, "nobody"
    )
    assert_problem(lead.call("post", "/batches", {**asked, "name": "bm25 again"}), 422)
    assert_problem(
        lead.call("post", "/batches", {**asked, "name": "x", "again": True}), 422, "without overlap"
    )
    assert_problem(lead.call("post", "/batches", {**asked, "name": "x", "gold_share": 1}), 422, "gold_share")
    assert_problem(lead.call("post", "/batches", {**asked, "name": "x", "sharing": "all"}), 422, "sharing")
    # Carol's token as assessor sees the batches that Carol judges in: none.
    blind = ApiClient(token_for(evalset, carol, "assessor"))
    assert blind.call("get", "/batches").json()["items"] == []
    assert blind.call("get", f"/batches/{batch['id']}").status_code == 404
    Batch.objects.get().assessors.create(evalset=evalset, kind="person", user=carol, name="carol")
    [mine] = blind.call("get", "/batches").json()["items"]
    assert (mine["name"], mine["pool"]) == ("first", None)


# Releases


@pytest.mark.django_db(transaction=True)
def test_a_release_is_published_by_a_job(evalset, lead, runs) -> None:
    response = lead.call("post", "/releases", {"notes": "the first"})
    assert response.status_code == 202
    publish_release_job(response.json()["id"])
    result = lead.get(response["Location"] + "/result").json()
    assert (result["release"], result["created"], result["labels"]) == (1, True, 1)
    again = lead.call("post", "/releases", {}).json()
    publish_release_job(again["id"])
    assert lead.call("get", f"/jobs/{again['id']}").json()["result"]["created"] is False
    release = Release.objects.get()
    assert (release.notes, release.published_by.username) == ("the first", "carol")
    assert_problem(lead.call("post", "/releases", {"judges": ["x"], "note": ""}), 422, "note: Extra inputs")


def test_releases_and_their_files(evalset, lead, runs, carol) -> None:
    release = publish_release(evalset=evalset, by=carol, notes="the first").release
    [brief] = lead.call("get", "/releases").json()["items"]
    assert (brief["number"], brief["hash"], brief["labels"]) == (1, release.content_hash, 1)
    detail = lead.call("get", "/releases/1").json()
    assert detail["notes"] == "the first"
    assert detail["counts"]["by_grade"]["0"] == 1
    for file in detail["files"]:
        response = lead.get(file["url"])
        assert (response.status_code, response.streaming) == (200, True), file
        assert content(response) or file["format"] == "classes", file
    qrels = lead.call("get", "/releases/1/files/qrels")
    assert content(qrels) == b"q1 0 c1 0\n"
    assert 'filename="handbook-r1-qrels.txt"' in qrels["Content-Disposition"]
    assert release.content_hash[:32] in qrels["ETag"]
    known = lead.call("get", "/releases/1/files/qrels", headers={"If-None-Match": qrels["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert_problem(lead.call("get", "/releases/1/files/xls"), 404, "no format xls")
    assert_problem(lead.call("get", "/releases/2"), 404)


def test_a_file_that_cannot_be_written_says_why(evalset, lead) -> None:
    [question] = make_questions(evalset, "two words")
    [chunk] = make_chunks(evalset, "c1")
    judge(question, chunk, 1)
    publish_release(evalset=evalset, by=None)
    assert_problem(lead.call("get", "/releases/1/files/qrels"), 422, "two words")


def test_the_difference_of_releases(evalset, lead, runs) -> None:
    publish_release(evalset=evalset, by=None)
    judge(evalset.questions.get(external_id="q2"), evalset.chunks.get(external_id="c3"), 3)
    publish_release(evalset=evalset, by=None)
    answer = lead.call("get", "/releases/1/difference/2").json()
    assert answer == command("diff_releases", "handbook", 1, 2)
    [pair] = answer["pairs"]
    assert (answer["added"], pair["question"], pair["chunk"], pair["from"], pair["to"]) == (
        1,
        "q2",
        "c3",
        None,
        3,
    )


# Scores and comparisons


@pytest.fixture
def worked(evalset) -> None:
    release_labels(evalset, LABELS)
    make_run(evalset, "A", RUN_A)
    make_run(evalset, "B", RUN_B)


def test_scores_are_those_of_the_command_and_are_stored(lead, worked) -> None:
    asked = {"release": 1, "runs": ["A", "B"], "measures": ["Recall@3", "nDCG@3"]}
    answer = lead.call("post", "/scores", asked).json()
    assert answer["runs"][1]["measures"]["nDCG@3"] == pytest.approx(0.8541, abs=1e-4)
    assert answer["runs"][0]["unjudged"] == {"3": 0.0}
    said = command("score", "handbook", "--release", 1, "--run", "A", "B", "--measure", "Recall@3", "nDCG@3")
    assert answer == said
    assert ScoreResult.objects.count() == 2
    listed = lead.call("get", "/scores").json()["items"]
    assert [(item["run"], item["unjudged"]) for item in listed] == [
        (name, {"Recall@3": 0.0, "nDCG@3": 0.0}) for name in ("B", "A")
    ]
    one = lead.call("get", f"/scores/{listed[1]['id']}").json()
    assert one == {**answer, "runs": answer["runs"][:1]}


def test_comparisons_are_those_of_the_command_and_are_counted_once(evalset, lead, worked) -> None:
    asked = {"release": 1, "a": "B", "b": "A", "measures": ["nDCG@3", "Recall@3"], "margin": 0.01}
    first = lead.call("post", "/comparisons", asked).json()
    again = lead.call("post", "/comparisons", asked).json()
    assert first == again
    assert first["comparisons_so_far"] == Comparison.objects.count() == 2
    measures = ("--measure", "nDCG@3", "Recall@3")
    assert first == command("compare", "handbook", "B", "A", "--release", 1, *measures, "--margin", 0.01)
    assert len(first["all"]) == 2
    comparison = Comparison.objects.get(measure="nDCG@3")
    one = lead.call("get", f"/comparisons/{comparison.pk}?margin=0.01").json()
    changing = ("all", "p_holm", "status")
    assert {k: v for k, v in one.items() if k not in changing} == {
        k: v for k, v in first.items() if k not in changing
    }
    listed = lead.call("get", "/comparisons").json()["items"]
    assert [(item["a"], item["b"], item["measure"]) for item in listed] == [
        ("B", "A", "Recall@3"),
        ("B", "A", "nDCG@3"),
    ]
    assert lead.get(first["page"]).status_code in (200, 302)
    assert evalset.events.first().actor == "token ci of Carol"


def test_the_status_is_that_of_the_command(evalset, lead) -> None:
    """0: no regression is shown, 1: one is, 2: the comparison may not be read."""
    questions = [f"q{number}" for number in range(30)]
    release_labels(evalset, {qid: {"good": 3, "bad": 0} for qid in questions})
    make_run(evalset, "right", {qid: ["good", "bad"] for qid in questions})
    make_run(evalset, "wrong", {qid: ["bad", "good"] for qid in questions})
    make_run(evalset, "new", {qid: ["unseen", "good"] for qid in questions})
    answers = {}
    for a, b in (("wrong", "right"), ("right", "wrong"), ("right", "new")):
        asked = {"release": 1, "a": a, "b": b, "measures": ["RR@2"]}
        answer = lead.call("post", "/comparisons", asked).json()
        said = status_of("compare", "handbook", a, b, "--release", "1", "--measure", "RR@2")
        assert answer["status"] == said
        answers[b] = (answer["status"], answer["reading"])
    assert answers == {"right": (0, "meaningful"), "wrong": (1, "meaningful"), "new": (2, "uninterpretable")}


@pytest.mark.parametrize(
    ("address", "changes", "words"),
    [
        ("/scores", {"measures": ["Recal@5"]}, "Recal@5"),
        ("/scores", {"release": 7}, "has no release 7. Known: 1"),
        ("/scores", {"policy": "kind"}, "policy"),
        ("/scores", {"threshold": 4}, "not a grade from 1 to 3"),
        ("/comparisons", {"b": "A"}, "cannot be compared with itself"),
        ("/comparisons", {"margin": 2}, "margin: Input should be less than or equal to 1"),
        ("/comparisons", {"seed": -1}, "seed: Input should be greater than or equal to 0"),
    ],
)
def test_wrong_questions(address, changes, words, lead, worked) -> None:
    asked = {"measures": ["Recall@3"], **({"runs": ["A"]} if address == "/scores" else {"a": "A", "b": "B"})}
    assert_problem(lead.call("post", address, {**asked, **changes}), 422, words)


def test_missing_rankings_come_with_a_report(evalset, lead, worked) -> None:
    make_run(evalset, "C", {"refund": ["policy"]})
    response = lead.call("post", "/scores", {"runs": ["C"], "measures": ["Recall@3"]})
    document = assert_problem(response, 422)
    assert document["report"]["missing"] == {"C": ["limits", "restore"]}


@pytest.mark.django_db(transaction=True)
def test_very_many_rankings_are_a_job(evalset, lead, worked, monkeypatch) -> None:
    monkeypatch.setattr("scoring.services.requests.RANKINGS_AT_ONCE", 1)
    asked = {"a": "A", "b": "B", "measures": ["Recall@3"], "seed": 5}
    response = lead.call("post", "/comparisons", asked)
    assert response.status_code == 202
    perform_job(response.json()["id"])
    [pk] = lead.get(response["Location"] + "/result").json()["comparisons"]
    assert Comparison.objects.get().seed == 5
    assert lead.call("get", f"/comparisons/{pk}").json()["measure"] == "Recall@3"
    scored = lead.call("post", "/scores", {"runs": ["A"], "measures": ["Recall@3"]})
    assert scored.status_code == 202


def test_verdicts_are_an_import(evalset, lead, runs, alice) -> None:
    response = lead.call(
        "post",
        "/imports/verdicts?assessor=alice&check=true",
        b'{"question_id": "q1"}',
        content_type="text/plain",
    )
    assert response.status_code == 202
    assert Job.objects.get().parameters["options"] == {"assessor": "alice"}
    assert Judgment.objects.count() == 1

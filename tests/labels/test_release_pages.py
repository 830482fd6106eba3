"""Releases as leads, viewers and assessors see them: list, page, publishing, difference, files."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from evalsets.models import Job
from labels.models import Release
from labels.services.publishing import publish_release
from labels.tasks import publish_release_job
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge, make_class


@pytest.fixture
def judged(evalset, alice, bob):
    q1, q2 = make_questions(evalset, "q1", "q2")
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    make_run(evalset, "new-run", {"q1": ["c1", "c9"], "q2": []}, system="new-system")
    judge(q1, c1, 3, by=alice)
    judge(q1, c2, 0, by=alice)
    judge(q2, c1, 1, by=alice)
    judge(q2, c1, 2, by=bob)
    judge(q2, c3, None, by=bob)
    return evalset


@pytest.fixture
def release(judged):
    return publish_release(evalset=judged, by=None, notes="Judged in <March>.").release


def text(response) -> str:
    assert response.status_code == 200
    return response.content.decode()


def test_an_empty_list_says_what_to_do(evalset, carol, client_for):
    assert "Nothing has been released yet" in text(client_for(carol).get("/e/handbook/releases/"))


def test_the_list_names_each_release(release, victor, client_for):
    page = text(client_for(victor).get("/e/handbook/releases/"))
    assert "Release 1" in page
    assert release.short_hash in page
    assert "Judged in &lt;March&gt;." in page
    assert "Publish a release" not in page


def test_the_page_says_what_is_in_it_and_to_whom_it_is_fair(release, victor, client_for):
    page = text(client_for(victor).get("/e/handbook/releases/1/"))
    assert release.content_hash in page
    assert "new-system" in page
    assert "50.0 %" in page
    assert "judge or decide the rest first" in page
    assert "1 contested, 1 only skipped" in page
    assert 'href="/e/handbook/releases/1/files/qrels/"' in page
    assert "handbook-r1-labels.json" in page


def test_an_assessor_sees_neither_systems_nor_files(release, alice, client_for):
    client = client_for(alice)
    page = text(client.get("/e/handbook/releases/1/"))
    assert "new-system" not in page
    assert "files/qrels" not in page
    for address in ("files/label-json/", "files/judgments/", "unlabelled/"):
        assert client.get(f"/e/handbook/releases/1/{address}").status_code == 403
    assert client.get("/e/handbook/releases/difference/").status_code == 403
    assert client.get("/e/handbook/contested/").status_code == 403


def test_strangers_find_nothing(release, mallory, client_for):
    client = client_for(mallory)
    for address in ("", "1/", "1/files/qrels/", "difference/", "new/"):
        assert client.get(f"/e/handbook/releases/{address}").status_code == 404
    assert client.get("/e/elsewhere/releases/1/").status_code == 404


def test_a_file_streams_under_a_good_name(release, victor, client_for):
    response = client_for(victor).get("/e/handbook/releases/1/files/qrels/")
    assert response.streaming
    assert b"".join(response.streaming_content) == b"q1 0 c1 3\nq1 0 c2 0\n"
    assert response["Content-Disposition"] == 'attachment; filename="handbook-r1-qrels.txt"'
    assert response["Content-Type"] == "text/plain; charset=utf-8"


def test_a_file_that_is_known_is_not_sent_again(release, victor, client_for, monkeypatch):
    client = client_for(victor)
    etag = client.get("/e/handbook/releases/1/files/qrels/")["ETag"]
    again = client.get("/e/handbook/releases/1/files/qrels/", headers={"if-none-match": etag})
    assert again.status_code == 304
    other = client.get("/e/handbook/releases/1/files/label-json/", headers={"if-none-match": etag})
    assert other.status_code == 200
    monkeypatch.setattr("labels.exports.formats.code_digest", lambda: "newer")
    newer = client.get("/e/handbook/releases/1/files/qrels/", headers={"if-none-match": etag})
    assert newer.status_code == 200


def test_unknown_files_and_releases_are_not_found(release, victor, client_for):
    client = client_for(victor)
    assert client.get("/e/handbook/releases/1/files/xlsx/").status_code == 404
    assert client.get("/e/handbook/releases/2/files/qrels/").status_code == 404
    assert client.get("/e/handbook/releases/2/").status_code == 404


def test_a_file_that_cannot_be_written_says_why(judged, victor, client_for):
    judge(judged.questions.first(), make_chunks(judged, "User Guide")[0], 1)
    publish_release(evalset=judged, by=None)
    client = client_for(victor)

    assert "User Guide" in text(client.get("/e/handbook/releases/1/"))
    refused = client.get("/e/handbook/releases/1/files/qrels/")
    assert refused.status_code == 409
    assert "&#x27;User Guide&#x27;" in refused.content.decode()
    assert client.get("/e/handbook/releases/1/files/csv/").status_code == 200


def test_a_run_downloads_in_trec_form(judged, victor, client_for):
    run = judged.runs.get()
    response = client_for(victor).get(f"/e/handbook/runs/{run.pk}/file/")
    assert b"".join(response.streaming_content) == b"q1 Q0 c1 1 2 new-run\nq1 Q0 c9 2 1 new-run\n"


def test_the_preview_says_what_would_be_frozen(judged, carol, client_for):
    page = text(client_for(carol).get("/e/handbook/releases/new/"))
    assert "Publish release 1" in page
    assert "outside judges" not in page

    publish_release(evalset=judged, by=None)
    page = text(client_for(carol).get("/e/handbook/releases/new/"))
    assert "No label has changed since release 1" in page

    judge(judged.questions.get(external_id="q1"), judged.chunks.get(external_id="c3"), 1, by="model:judge")
    judge(judged.questions.get(external_id="q2"), judged.chunks.get(external_id="c2"), 1)
    response = client_for(carol).get("/e/handbook/releases/new/")
    assert response.context["changes"][:2] == (1, 0)
    assert response.context["together"] == 1
    assert "would add 1 label<" in text(response)


@pytest.mark.django_db(transaction=True)
def test_publishing_from_the_page_is_a_job(judged, carol, client_for):
    response = client_for(carol).post("/e/handbook/releases/new/", {"notes": "From the page"})
    job = Job.objects.get()
    assert response["Location"] == job.get_absolute_url()
    assert not Release.objects.exists()

    publish_release_job(job.pk)

    job.refresh_from_db()
    release = Release.objects.get()
    assert (job.state, job.result_url) == (Job.State.DONE, release.get_absolute_url())
    assert (release.notes, release.published_by) == ("From the page", carol)


@pytest.mark.parametrize("who", ["alice", "victor"])
def test_only_a_lead_publishes(judged, who, request, client_for):
    client = client_for(request.getfixturevalue(who))
    assert client.get("/e/handbook/releases/new/").status_code == 403
    assert client.post("/e/handbook/releases/new/").status_code == 403
    assert not Job.objects.exists()


def test_the_unlabelled_pairs_of_a_release_are_listed(release, victor, client_for):
    response = client_for(victor).get("/e/handbook/releases/1/unlabelled/")
    assert [(external_id, item["id"], item["why"]) for _, external_id, item in response.context["page"]] == [
        ("q2", "c1", "contested"),
        ("q2", "c3", "skipped-only"),
    ]


def test_contested_and_skipped_pairs_of_today(judged, victor, client_for):
    client = client_for(victor)
    assert [str(row[2]) for row in client.get("/e/handbook/contested/").context["rows"]] == ["c1"]
    skipped = client.get("/e/handbook/contested/", {"why": "skipped-only"})
    assert [str(row[2]) for row in skipped.context["rows"]] == ["c3"]


@pytest.fixture
def two_releases(release, alice):
    """Release 2: c2 of q1 regraded from 0 to 2, c3 of q1 added, c1 of q1 gone (skipped instead), c1 and c2 a class."""
    evalset = release.evalset
    q1 = evalset.questions.get(external_id="q1")
    c1, c2, c3 = (evalset.chunks.get(external_id=cid) for cid in ("c1", "c2", "c3"))
    judge(q1, c1, None, by=alice, replaces=q1.judgments.get(chunk=c1))
    judge(q1, c2, 2, by=alice, replaces=q1.judgments.get(chunk=c2))
    judge(q1, c3, 0, by=alice)
    make_class(c1, c2)
    type(evalset).objects.update(threshold=2)
    make_questions(evalset, "q3")
    evalset.refresh_from_db()
    return release, publish_release(evalset=evalset, by=None).release


def test_the_difference_page(two_releases, victor, client_for):
    response = client_for(victor).get("/e/handbook/releases/difference/", {"from": "1", "to": "2"})
    assert [(pair.chunk, pair.kind, pair.before, pair.after) for pair in response.context["page"]] == [
        ("c1", "removed", 3, None),
        ("c2", "regraded", 0, 2),
        ("c3", "added", None, 0),
    ]
    assert "0 to 2: 1" in text(response)
    assert client_for(victor).get("/e/handbook/releases/difference/").context["before"].number == 1


def test_the_difference_of_a_release_with_itself(two_releases, victor, client_for):
    page = text(client_for(victor).get("/e/handbook/releases/difference/", {"from": "2", "to": "2"}))
    assert "They hold the same content." in page


@pytest.mark.parametrize("asked", ["7", "x", "-1"])
def test_the_difference_with_a_release_that_is_not_there(two_releases, victor, client_for, asked):
    assert client_for(victor).get("/e/handbook/releases/difference/", {"from": asked}).status_code == 404


def test_the_difference_command(two_releases, capsys):
    import json

    call_command("diff_releases", "handbook", "1", "2", "--json")
    document = json.loads(capsys.readouterr().out)
    first, second = two_releases
    assert document == {
        "from": {"release": 1, "hash": first.content_hash, "from_models": 0, "judges": []},
        "to": {"release": 2, "hash": second.content_hash, "from_models": 0, "judges": []},
        "added": 1,
        "removed": 1,
        "regraded": [{"from": 0, "to": 2, "count": 1}],
        "of_models": dict.fromkeys(("models_added", "models_removed", "judged", "unjudged", "same_grade"), 0),
        "pairs": [
            {"question": "q1", "chunk": "c1", "from": 3, "to": None, "from_model": False, "to_model": False},
            {"question": "q1", "chunk": "c2", "from": 0, "to": 2, "from_model": False, "to_model": False},
            {"question": "q1", "chunk": "c3", "from": None, "to": 0, "from_model": False, "to_model": False},
        ],
        "questions": {"added": ["q3"], "removed": [], "changed": []},
        "classes": {"joined": [["c1", "c2"]], "split": []},
        "settings": {"threshold": {"from": 1, "to": 2}},
        "scores": [],
        "not_scored_on_both": [],
    }

    call_command("diff_releases", "handbook", "2", "1")
    printed = capsys.readouterr().out
    assert "labels: 1 added, 1 removed, 1 regraded" in printed
    assert "class split: c1, c2" in printed


def test_unlabelled_pairs_are_searched_and_filtered(release, victor, client_for):
    client = client_for(victor)

    def listed(**address) -> list[str]:
        return [
            item["id"]
            for _, _, item in client.get(release.get_absolute_url() + "unlabelled/", address).context["page"]
        ]

    assert listed(why="skipped-only") == listed(q="C3") == ["c3"]
    assert listed(q="q2") == ["c1", "c3"]
    page = text(client.get("/e/handbook/releases/1/unlabelled/", {"why": "contested", "q": "c3"}))
    assert 'No pair is like that. <a href="?">Show all</a>' in page

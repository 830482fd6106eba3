"""Releases: what is frozen, the hash, numbers, what the database refuses, one snapshot beside other people's work."""

from __future__ import annotations

import contextlib
import datetime
import threading

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from evalsets.errors import Refused
from evalsets.models import Event
from labels.models import Release, ReleaseClass, ReleaseQuestion
from labels.releases import load_release
from labels.services.publishing import publish_release
from labels.services.snapshot import one_snapshot
from pooling.models import Pool, PoolQuestion, PoolRun
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import DAY, judge, make_class


@pytest.fixture
def judged(evalset, alice, bob):
    """Three questions: one with labels, a contested and a skipped pair; one with a zero only; one with nothing."""
    q1, q2, _ = make_questions(evalset, "q1", "q10", "q2", slices=["refunds"])
    c1, c2, c3, c10 = make_chunks(evalset, "c1", "c2", "c3", "c10")
    judge(q1, c2, 3, by=alice)
    judge(q1, c10, 0, by=bob)
    judge(q1, c1, 1, by=alice)
    judge(q1, c1, 2, by=bob)
    judge(q1, c3, None, by=bob)
    judge(q2, c3, 0, by=alice)
    return evalset


def rows(release: Release) -> dict[str, ReleaseQuestion]:
    return {row.external_id: row for row in release.release_questions.all()}


def test_what_a_release_freezes(judged, carol):
    release, created = publish_release(evalset=judged, by=carol, notes=" First. ")

    assert (release.number, created, release.notes, release.published_by) == (1, True, "First.", carol)
    assert [row.external_id for row in release.release_questions.all()] == ["q1", "q10", "q2"]
    q1 = rows(release)["q1"]
    assert (q1.external_ids, q1.grades, q1.why) == (["c10", "c2"], [0, 3], ["unanimous", "unanimous"])
    assert [(item["id"], item["why"], item["grades"], item["skips"]) for item in q1.unlabelled] == [
        ("c1", "contested", [2, 1], 0),
        ("c3", "skipped-only", [], 1),
    ]
    assert len(q1.judgment_ids) == 5
    assert rows(release)["q10"].grades == [0]
    assert rows(release)["q2"].chunk_ids == []
    assert release.counts | {} == {
        "questions": 3,
        "questions_with_labels": 2,
        "questions_with_relevant": 1,
        "labels": 3,
        "relevant": 1,
        "judgments": 6,
        "contested": 1,
        "skipped_only": 1,
        "from_models": 0,
        "cut_passages": 0,
        "without_text": 0,
        "classes": 0,
        "by_grade": {"0": 2, "1": 0, "2": 0, "3": 1},
        "by_why": {"unanimous": 3},
    }
    assert Event.objects.filter(verb="release-published", by=carol).count() == 1


def test_publishing_again_with_nothing_changed_makes_no_second_release(judged, carol):
    first = publish_release(evalset=judged, by=carol)
    again = publish_release(evalset=judged, by=carol, notes="Other notes")

    assert (again.created, again.release) == (False, first.release)
    assert Release.objects.count() == 1
    assert ReleaseQuestion.objects.count() == 3


def test_a_change_makes_the_next_release_and_leaves_the_first_alone(judged, alice, carol):
    first = publish_release(evalset=judged, by=carol).release
    before = rows(first)["q2"].grades
    judge(judged.questions.get(external_id="q2"), judged.chunks.get(external_id="c1"), 2, by=alice)

    second = publish_release(evalset=judged, by=carol).release

    assert second.number == 2
    assert second.content_hash != first.content_hash
    assert rows(first)["q2"].grades == before == []
    assert rows(second)["q2"].grades == [2]


@pytest.mark.parametrize(
    "change",
    [
        lambda evalset: evalset.questions.filter(external_id="q2").update(text="Another text?"),
        lambda evalset: type(evalset).objects.filter(pk=evalset.pk).update(threshold=2),
        lambda evalset: type(evalset).objects.filter(pk=evalset.pk).update(settle_policy="median"),
        lambda evalset: make_class(*evalset.chunks.filter(external_id__in=["c1", "c2"])),
        lambda evalset: add_revision(evalset.chunks.get(external_id="c2"), "A newer text."),
    ],
    ids=["question", "threshold", "policy", "class", "revision"],
)
def test_the_hash_knows_each_thing_that_is_frozen(judged, change):
    first = publish_release(evalset=judged, by=None).release
    change(judged)
    judged.refresh_from_db()

    assert publish_release(evalset=judged, by=None).release.content_hash != first.content_hash


def test_equal_content_has_equal_hashes_in_two_eval_sets(judged, other_evalset, alice, bob):
    first = publish_release(evalset=judged, by=None).release
    make_chunks(other_evalset, "unused")
    c10, c3, c2, c1 = make_chunks(other_evalset, "c10", "c3", "c2", "c1")
    _, q10, q1 = make_questions(other_evalset, "q2", "q10", "q1", slices=["refunds"])
    judge(q10, c3, 0, by="file:a")
    judge(q1, c3, None, by="file:a")
    judge(q1, c1, 1, by="file:a", at=0)
    judge(q1, c1, 2, by="file:b", at=1)
    judge(q1, c10, 0, by="file:b")
    judge(q1, c2, 3, by="file:b")

    assert publish_release(evalset=other_evalset, by=None).release.content_hash == first.content_hash


def test_nothing_to_release_is_refused(evalset):
    make_questions(evalset, "q1")
    with pytest.raises(Refused, match="no label yet"):
        publish_release(evalset=evalset, by=None)
    assert ReleaseQuestion.objects.count() == 0


def test_a_label_rests_on_the_text_of_today(judged):
    add_revision(judged.chunks.get(external_id="c2"), "Newer.")
    release = publish_release(evalset=judged, by=None).release
    assert rows(release)["q1"].external_ids == ["c10"]


def test_a_judged_chunk_without_text_is_kept_and_counted(judged):
    [ghost] = make_chunks(judged, "c424", text=False)
    judge(judged.questions.get(external_id="q1"), ghost, 1)
    release = publish_release(evalset=judged, by=None).release
    assert "c424" in rows(release)["q1"].external_ids
    assert release.counts["without_text"] == 1


def test_grades_of_models_stay_out_unless_asked_for_and_are_marked(judged):
    question, chunk = judged.questions.get(external_id="q2"), judged.chunks.get(external_id="c1")
    judge(question, chunk, 2, by="model:judge")

    without = publish_release(evalset=judged, by=None).release
    assert rows(without)["q2"].chunk_ids == []
    assert without.counts["judgments"] == 6
    with_models = publish_release(evalset=judged, by=None, judges=["judge"]).release
    assert (rows(with_models)["q2"].model_chunk_ids, rows(with_models)["q2"].why) == ([chunk.pk], ["model"])
    assert rows(with_models)["q2"].judgment_counts == [0]
    assert (with_models.counts["from_models"], with_models.counts["judgments"]) == (1, 6)
    assert with_models.judges == ["judge"]


def make_pool(evalset, name, runs, questions, **fields) -> Pool:
    pool = Pool.objects.create(
        evalset=evalset, name=name, strategy="depth", seed=1, specification_hash=name.ljust(64, "0")
    )
    for position, (run, k) in enumerate(runs):
        PoolRun.objects.create(pool=pool, run=run, position=position, k=k)
    for question in questions:
        PoolQuestion.objects.create(
            pool=pool,
            question=question,
            **{"chunk_ids": [], "return_counts": [], "returned_by": [], "returned_rank": [], **fields},
        )
    return pool


def test_provenance_names_pools_runs_depth_coverage_and_birth(judged):
    q1, q10, _ = judged.questions.all()
    old = make_run(judged, "old-1", {"q1": ["c2", "c10", "c1"], "q10": ["c3"]}, system="old")
    new = make_run(judged, "new-1", {"q1": ["c9", "c2"]}, system="new", stage="candidates")
    make_pool(judged, "first", [(old, 2)], [q1, q10])
    make_pool(judged, "second", [(old, 1), (new, 2)], [q1])

    release = publish_release(evalset=judged, by=None).release

    coverage = [
        (run["run"], run["k"], run["returned"], run["unlabelled"]) for run in release.provenance["runs"]
    ]
    assert coverage == [("new-1", 2, 2, 1), ("old-1", 1, 2, 0), ("old-1", 2, 3, 0)]
    assert [pool["name"] for pool in release.provenance["pools"]] == ["first", "second"]
    assert rows(release)["q1"].pool == [
        {"system": "new", "run": "new-1", "stage": "candidates", "k": 2, "date": "2026-01-01"},
        {"system": "old", "run": "old-1", "stage": "reranked", "k": 2, "date": "2026-01-01"},
    ]
    assert [item["run"] for item in rows(release)["q10"].pool] == ["old-1"]
    assert rows(release)["q2"].pool == []


def test_a_copy_of_a_labelled_chunk_is_covered(judged):
    run = make_run(judged, "run", {"q1": ["copy", "c2", "c1"], "q2": ["copy"]})
    make_class(judged.chunks.get(external_id="c2"), judged.chunks.get(external_id="copy"))
    [found] = publish_release(evalset=judged, by=None).release.provenance["runs"]
    assert (found["run_id"], found["pooled"]) == (run.pk, False)
    # For q1 the copy is labelled with its class; c1 is contested; for q2 nothing is labelled.
    assert (found["k"], found["returned"], found["unlabelled"]) == (10, 4, 2)


def test_a_sampled_pool_leaves_its_probabilities_and_its_unsampled_pairs(judged):
    q1 = judged.questions.get(external_id="q1")
    by_id = {chunk.external_id: chunk.pk for chunk in judged.chunks.all()}
    run = make_run(judged, "run", {"q1": ["c2", "c10"]})
    make_pool(
        judged,
        "sampled",
        [(run, 2)],
        [q1],
        chunk_ids=[by_id["c2"]],
        return_counts=[1],
        returned_by=[0],
        returned_rank=[1],
        inclusion=[0.25],
        unsampled_ids=[by_id["c3"], by_id["c10"]],
        unsampled_inclusion=[0.25, 0.25],
    )
    Pool.objects.update(created_at=DAY - datetime.timedelta(days=1))

    release = publish_release(evalset=judged, by=None).release

    # c10 is labelled, but not through the sample; of q10 nothing was sampled.
    assert rows(release)["q1"].external_ids == ["c10", "c2"]
    assert rows(release)["q1"].inclusion == [0.0, 0.25]
    assert rows(release)["q1"].pooled_ids == [by_id["c3"]]
    arrays = load_release(release)
    assert arrays.inclusion.tolist() == [0.0, 0.25, 1.0]
    assert (arrays.pooled_question.tolist(), arrays.pooled_chunk.tolist()) == ([0], [by_id["c3"]])


def test_a_release_as_arrays(judged):
    by_id = {chunk.external_id: chunk.pk for chunk in judged.chunks.all()}
    make_class(*judged.chunks.filter(external_id__in=["c2", "c1"]))
    arrays = load_release(publish_release(evalset=judged, by=None).release)

    assert [question.external_id for question in arrays.questions] == ["q1", "q10", "q2"]
    assert arrays.questions[0].details["slices"] == ["refunds"]
    assert arrays.first.tolist() == [0, 2, 3, 3]
    assert arrays.question.tolist() == [0, 0, 1]
    assert arrays.chunk.tolist() == [by_id["c10"], by_id["c2"], by_id["c3"]]
    assert arrays.grade.tolist() == [0, 3, 0]
    assert arrays.class_chunk.tolist() == sorted([by_id["c1"], by_id["c2"]])
    assert arrays.class_number.tolist() == [0, 0]
    assert arrays.inclusion is None
    assert [part.tolist() for part in arrays.of(1)] == [[by_id["c3"]], [0]]


@pytest.mark.parametrize("table", ["labels_release", "labels_releasequestion", "labels_releaseclass"])
@pytest.mark.parametrize("act", ["UPDATE {} SET id = id", "DELETE FROM {}"])
def test_the_database_refuses_to_change_a_release(judged, table, act):
    make_class(*judged.chunks.filter(external_id__in=["c1", "c2"]))
    publish_release(evalset=judged, by=None)
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(act.format(table))


def release_of(evalset, **fields) -> Release:
    values = {
        "number": 1,
        "content_hash": "a" * 64,
        "scale": evalset.scale,
        "threshold": 1,
        "gain": "linear",
        "settle_policy": "none",
        "counts": {},
        "provenance": {},
    }
    return Release.objects.create(evalset=evalset, **{**values, **fields})


def question_of(release, question, **fields) -> ReleaseQuestion:
    arrays = {
        name: [] for name in ("chunk_ids", "external_ids", "revisions", "grades", "why", "judgment_counts")
    }
    values = {"position": 0, "external_id": question.external_id, "details": {}, **arrays}
    return ReleaseQuestion.objects.create(release=release, question=question, **{**values, **fields})


BROKEN = {
    "release_number_twice": lambda r, q: release_of(r.evalset),
    "release_number_below_one": lambda r, q: release_of(r.evalset, number=0),
    "release_hash_malformed": lambda r, q: release_of(r.evalset, number=2, content_hash="A" * 64),
    "release_question_twice": lambda r, q: question_of(r, q[0], position=1),
    "release_question_position_twice": lambda r, q: question_of(r, q[1]),
    "release_question_arrays_of_other_length": lambda r, q: question_of(
        r, q[1], position=1, chunk_ids=[1, 2], external_ids=["c1", "c2"], grades=[0]
    ),
    "release_class_number_twice": lambda r, q: class_of(r, number=0),
    "release_class_of_one": lambda r, q: class_of(r, chunk_ids=[1], external_ids=["c1"], revisions=[1]),
    "release_class_arrays_of_other_length": lambda r, q: class_of(r, revisions=[1]),
}


def class_of(release, **fields) -> ReleaseClass:
    values = {
        "number": 1,
        "representative": "c1",
        "chunk_ids": [1, 2],
        "external_ids": ["c1", "c2"],
        "revisions": [1, 1],
    }
    return ReleaseClass.objects.create(release=release, **{**values, **fields})


@pytest.mark.parametrize("name", BROKEN)
def test_each_constraint_of_a_release(evalset, name):
    questions = make_questions(evalset, "q1", "q2")
    release = release_of(evalset)
    question_of(release, questions[0])
    class_of(release, number=0)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        BROKEN[name](release, questions)


@pytest.mark.django_db(transaction=True)
def test_one_snapshot_beside_somebody_who_judges(judged):
    """What is judged while a release is being written is in none of its rows; the next release has it."""
    question = judged.questions.get(external_id="q10")
    chunk = judged.chunks.get(external_id="c1")

    def judge_meanwhile() -> None:
        judge(question, chunk, 2)
        connection.close()

    def progress(done, total=None, phase=""):
        # The first batch is written; counts and provenance are still to be read.
        thread = threading.Thread(target=judge_meanwhile)
        thread.start()
        thread.join()

    run = make_run(judged, "run", {"q10": ["c1"]})
    make_pool(judged, "pool", [(run, 1)], [question])

    first = publish_release(evalset=judged, by=None, progress=progress).release
    assert first.counts["labels"] == 3
    assert first.provenance["runs"][0]["unlabelled"] == 1

    second = publish_release(evalset=judged, by=None).release
    assert second.counts["labels"] == 4
    assert second.provenance["runs"][0]["unlabelled"] == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("inside", [False, True], ids=["on its own", "inside a job's transaction"])
def test_the_snapshot_is_one_state_also_in_a_job(inside):
    outer = transaction.atomic() if inside else contextlib.nullcontext()
    with outer, one_snapshot(lock_table="labels_release"), connection.cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)


@pytest.mark.django_db(transaction=True)
def test_two_people_publish_at_once(judged):
    """One release comes of it, and the other person is told its number."""
    outcomes, barrier = [], threading.Barrier(2)

    def publish() -> None:
        barrier.wait()
        outcomes.append(publish_release(evalset=judged, by=None))
        connection.close()

    threads = [threading.Thread(target=publish) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcome.created for outcome in outcomes) == [False, True]
    assert {outcome.release.number for outcome in outcomes} == {1}


def test_the_command_prints_its_shape(judged, capsys):
    call_command("publish_release", "handbook", "--json", "--notes", "From a terminal")
    release = Release.objects.get()
    import json

    assert json.loads(capsys.readouterr().out) == {
        "release": 1,
        "hash": release.content_hash,
        "created": True,
        "judges": [],
        "labels": 3,
        "from_models": 0,
        "questions": 3,
        "contested": 1,
        "skipped_only": 1,
        "classes": 0,
    }


def test_ids_and_texts_of_any_characters_are_frozen_as_they_are(evalset):
    names = [
        '"quoted"',
        "back\\slash",
        "{a,b}",
        "NULL",
        "null",
        " 007 ",
        "c'1",
        "ä\N{LINE SEPARATOR}ö",
        "\\N",
        "\\.",
    ]
    [question] = make_questions(
        evalset, 'q"1"\\', text='Is "100\\%" {true}?\n\tYes', slices=['a,"b"', "NULL"]
    )
    for name in names:
        judge(question, make_chunks(evalset, name)[0], 1)

    row = publish_release(evalset=evalset, by=None).release.release_questions.get()

    assert row.external_ids == sorted(names, key=str.encode)
    assert (row.external_id, row.details) == (question.external_id, question.as_json())

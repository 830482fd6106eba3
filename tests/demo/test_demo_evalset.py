"""What is in the demo eval set that make_demo makes."""

import datetime
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import override_settings

from config.demo_evalset import DECIDED, FOLDER, PASSWORD, make_demo, sign_ins
from demo import story
from demo.ground_truth import read_jsonl, read_relevance
from evalsets.models import EvalSet, User
from judging.models import Batch, BatchPair, Judgment
from judging.services.claims import claim_next
from labels.coverage import coverage_of_runs
from labels.models import Release, ReleaseQuestion
from labels.settling import settled_counts
from pooling.models import Ranking, Run

pytestmark = pytest.mark.django_db
TODAY = datetime.date(2026, 3, 2)


@pytest.fixture(scope="module")
def made_once(django_db_setup, django_db_blocker) -> Iterator[EvalSet]:
    """The demo, made once for all tests of this file and taken back after them."""
    hashers = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # as in each test
    with django_db_blocker.unblock(), transaction.atomic():
        with override_settings(PASSWORD_HASHERS=hashers):
            made = make_demo(today=TODAY)
        yield made
        transaction.set_rollback(True)


@pytest.fixture
def demo(made_once) -> Iterator[EvalSet]:
    """The demo; what a test writes is taken back."""
    with transaction.atomic():
        yield made_once
        transaction.set_rollback(True)


def batch_named(name: str) -> Batch:
    return Batch.objects.get(evalset__slug="demo", name=name)


def standing_judgments() -> dict[tuple[str, str], list[Judgment]]:
    """By question and chunk, the judgments that no later one replaces."""
    found: dict[tuple[str, str], list[Judgment]] = {}
    rows = Judgment.objects.filter(replaced_by__isnull=True, source="desk")
    for judgment in rows.select_related("question", "chunk"):
        key = (judgment.question.external_id, judgment.chunk.external_id)
        found.setdefault(key, []).append(judgment)
    return found


def test_everything_is_there(demo):
    assert demo.questions.count() == 60
    assert demo.chunks.whole().filter(has_text=True).count() == demo.chunks.whole().count() == 198
    assert demo.chunks.exclude(cut_from=None).count() == 57
    assert list(demo.runs.order_by("id").values_list("name", "stage", "k")) == [
        ("bm25", "reranked", 20),
        ("bm25-tuned", "reranked", 20),
        ("char-tfidf", "reranked", 20),
        ("lsa", "reranked", 20),
        ("hybrid-candidates", "candidates", 20),
        ("hybrid-context", "context", 10),
        ("hybrid", "reranked", 10),
    ]
    assert Run.objects.get(name="bm25").config["k1"] == 1.5
    assert Ranking.objects.count() == 7 * 60
    assert Ranking.objects.get(run__name="bm25-tuned", question__external_id="q56").chunk_ids == []


def test_a_system_stands_for_what_it_shows(demo):
    latest = {run.system.name: run.name for run in Run.objects.latest_of_each_system()}
    assert latest["hybrid"] == "hybrid"


def test_people_can_sign_in(demo):
    assert [(person.username, person.role, person.password) for person in sign_ins(demo)] == [
        ("carol", "lead", PASSWORD),
        ("alice", "assessor", PASSWORD),
        ("bob", "assessor", PASSWORD),
        ("victor", "viewer", PASSWORD),
    ]
    assert User.objects.get(username="alice").check_password(PASSWORD)
    assert set(demo.members.values_list("user__username", "role")) == {
        ("carol", "lead"),
        ("alice", "assessor"),
        ("bob", "assessor"),
        ("victor", "viewer"),
    }


def test_only_the_pool_of_the_two_oldest_is_judged(demo):
    assert standing_judgments().keys() == story.pool_labels().keys()


def test_the_first_batch_is_done_and_nothing_in_it_is_judged_too_often(demo):
    batch = batch_named("First labels")
    assert batch not in Batch.objects.open()
    for pair in BatchPair.objects.filter(batch=batch).prefetch_related("judgments__replaced_by"):
        standing = [row for row in pair.judgments.all() if not hasattr(row, "replaced_by")]
        counted = [row for row in standing if row.kind != "skip"]
        assert len(counted) == pair.wanted
        assert len({row.assessor_id for row in standing}) == len(standing)
        assert pair.filled_at == max(row.judged_at for row in pair.judgments.all() if row.kind != "skip")


def test_judging_lies_in_the_past(demo):
    at_the_desk = Judgment.objects.filter(source="desk")
    first, last = at_the_desk.order_by("judged_at").first(), at_the_desk.latest("judged_at")
    batch = batch_named("First labels")
    assert batch.pool.created_at < batch.created_at < first.judged_at
    assert last.judged_at.date() == datetime.date(2026, 2, 26)


def test_alice_has_something_to_grade_and_bob_has_not(demo):
    batch = batch_named("Second look")
    alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
    assert BatchPair.objects.filter(batch=batch, filled_at__isnull=True).count() > 50
    assert batch in Batch.objects.open().for_assessor(alice)
    assert batch not in Batch.objects.open().for_assessor(bob)
    assert claim_next(batch=batch, by=alice, count=3)
    judged = story.pool_labels()
    for pair in BatchPair.objects.filter(batch=batch, gold_grade=None).select_related("question", "chunk"):
        assert (pair.question.external_id, pair.chunk.external_id) not in judged


def test_the_release_holds_what_the_judgments_say(demo):
    release = Release.objects.get(evalset=demo)
    released = {
        (question.external_id, chunk): grade
        for question in ReleaseQuestion.objects.filter(release=release)
        for chunk, grade in zip(question.external_ids, question.grades, strict=True)
    }
    for key, judgments in standing_judgments().items():
        grades = {row.grade for row in judgments if row.kind == "grade"}
        if len(grades) == 1:
            assert released.pop(key) in grades
    assert not released, "what they disagree on and what nobody could grade carries no label"
    pooled = [run["run"] for run in release.provenance["pools"][0]["runs"]]
    assert sorted(pooled) == ["bm25", "bm25-tuned"]


def test_the_demo_opens_on_the_problem(demo):
    covered = coverage_of_runs(demo)
    rates = {run.name: covered[run.pk].unjudged(5).rate for run in demo.runs.all()}
    low = {name for name, rate in rates.items() if rate is not None and rate < 0.02}
    high = {name for name, rate in rates.items() if rate is not None and 0.25 < rate < 0.5}
    assert low == {"bm25", "bm25-tuned"}
    assert high == {"char-tfidf", "lsa", "hybrid-candidates", "hybrid"}
    assert rates["hybrid-context"] > rates["hybrid"], "what it cut short is nothing that anybody has judged"


def test_some_pairs_were_decided_and_some_wait(demo):
    decided = Judgment.objects.filter(source="adjudication").select_related("question", "chunk")
    truth = read_relevance()
    for row in decided:
        relevance = truth[row.question.external_id].get(row.chunk.external_id)
        assert row.grade == (relevance.grade if relevance else 0)
    # Which pairs two people see is drawn among the database's keys, so it is not the same in every database.
    seen_differently = {
        pair
        for pair, rows in standing_judgments().items()
        if len({row.grade for row in rows if row.kind == "grade"}) > 1
    }
    pairs_decided = {(row.question.external_id, row.chunk.external_id) for row in decided}
    assert pairs_decided & set(DECIDED) == seen_differently & set(DECIDED)
    assert settled_counts(demo).contested > 1


def test_the_lead_said_what_chunks_are_to_each_other(demo):
    said = read_jsonl(FOLDER / "pair-verdicts.jsonl")
    assert demo.pair_verdicts.count() == len(said)
    together = {
        frozenset(member.chunk.external_id for member in found.members.select_related("chunk"))
        for found in demo.chunk_classes.all()
    }
    assert frozenset({"faq#01", "start#05"}) in together
    assert not any({"returns-2025#05", "returns-2023#05"} <= members for members in together)


def test_a_rule_judged_the_same_pairs_twice_and_counts_for_nothing(demo):
    by_the_rule = Judgment.objects.filter(assessor__kind="model")
    assert by_the_rule.count() == 2 * len(story.pool_labels())
    by_people = Judgment.objects.exclude(assessor__kind="model").filter(kind="grade")
    assert settled_counts(demo).judged == by_people.values("question", "chunk").distinct().count()


def test_known_answers_are_mixed_into_what_alice_has_to_grade(demo):
    gold = BatchPair.objects.filter(batch=batch_named("Second look")).exclude(gold_grade=None)
    truth = read_relevance()
    assert gold.count() >= 3
    for pair in gold.select_related("question", "chunk"):
        relevance = truth[pair.question.external_id].get(pair.chunk.external_id)
        assert pair.gold_grade == (relevance.grade if relevance else 0)

"""From judgments over a release to stored scores and comparisons, on the real database."""

from __future__ import annotations

import datetime

import pytest

from evalsets.errors import BadInput
from evalsets.models import Chunk, Event, Question
from labels.services.publishing import publish_release
from pooling.models import Pool, PoolRun, Ranking
from scoring.models import Comparison, ScoreResult
from scoring.reading import read_known, read_run
from scoring.services.comparing import compare_runs, full_document
from scoring.services.scoring import resolve, score_document, score_runs
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import judge, make_class
from tests.scoring.test_measures import LABELS, RUN_A, RUN_B, WORKED

pytestmark = pytest.mark.django_db


def release_labels(evalset, labels, *, by="file:labels", questions=()):
    """Judge every pair as told and publish; questions and chunks are made where they are not there."""
    for qid in [*labels, *questions]:
        if not Question.objects.filter(evalset=evalset, external_id=qid).exists():
            make_questions(evalset, qid)
    for qid, known in labels.items():
        question = Question.objects.get(evalset=evalset, external_id=qid)
        for cid, grade in known.items():
            chunk = (
                Chunk.objects.filter(evalset=evalset, external_id=cid).first() or make_chunks(evalset, cid)[0]
            )
            judge(question, chunk, grade, by=by)
    return publish_release(evalset=evalset, by=None).release


@pytest.fixture
def worked(evalset):
    release = release_labels(evalset, LABELS)
    return release, make_run(evalset, "A", RUN_A), make_run(evalset, "B", RUN_B)


def scores_of(release, *runs, measures=("Recall@3", "RR@3", "nDCG@3"), **rules):
    asked = resolve(release, measures=list(measures), **rules)
    return score_document(score_runs(release=release, runs=runs, asked=asked).results)


def test_the_worked_example_from_judgments_to_numbers(worked) -> None:
    document = scores_of(*worked)
    for row in WORKED.strip().splitlines():
        name, question, *expected = row.split()
        run = next(run for run in document["runs"] if run["run"] == name)
        measures = run["measures"]
        if question != "mean":
            measures = next(q["measures"] for q in run["questions"] if q["id"] == question)
        assert [f"{measures[m]:.4f}" for m in ("Recall@3", "RR@3", "nDCG@3")] == expected
        assert run["unjudged"] == {"3": 0.0}
    release = worked[0]
    assert (document["release"], document["hash"]) == (1, release.content_hash)
    assert (document["threshold"], document["gain"], document["policy"]) == (1, "exponential", "raw")


def test_asking_again_returns_what_is_stored_and_what_it_depends_on_makes_it_anew(worked, evalset) -> None:
    release, a, b = worked
    first = scores_of(release, a, b)
    assert ScoreResult.objects.count() == 2
    assert scores_of(release, a, b) == first
    assert scores_of(release, a)["runs"] == first["runs"][:1]
    assert ScoreResult.objects.count() == 2
    for changed in ({"policy": "judged-only"}, {"threshold": 2}, {"gain": "linear"}, {"unit": "document"}):
        scores_of(release, a, **changed)
    scores_of(release, a, measures=["Recall@3"])
    assert ScoreResult.objects.count() == 7
    stored = ScoreResult.objects.get(run=b)
    assert (stored.release_hash, stored.run_hash) == (release.content_hash, b.content_hash)
    assert stored.pairs[0] == ("Recall@3", 1.0, 0.0)


def test_labels_of_a_class_and_of_another_release(evalset) -> None:
    copy, original = make_chunks(evalset, "copy", "policy")
    make_class(copy, original)
    release = release_labels(evalset, {"q": {"policy": 3}})
    run = make_run(evalset, "new", {"q": ["copy"]})
    row = scores_of(release, run, measures=["Recall@1"])["runs"][0]
    assert (row["measures"], row["unjudged"]) == ({"Recall@1": 1.0}, {"1": 0.0})
    later = release_labels(evalset, {"q": {"other": 1}})
    assert scores_of(later, run, measures=["Recall@1"])["runs"][0]["measures"] == {"Recall@1": 0.5}
    assert scores_of(release, run, measures=["Recall@1"])["runs"][0]["measures"] == {"Recall@1": 1.0}


def test_a_missing_ranking_is_refused_with_its_questions_or_the_common_ones_are_scored(evalset) -> None:
    release = release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    whole = make_run(evalset, "whole", {"q1": ["a"], "q2": ["a"]})
    partial = make_run(evalset, "partial", {"q1": ["a"]})
    with pytest.raises(BadInput, match=r"run “partial” has no ranking for 1 question \(q2\)") as caught:
        scores_of(release, whole, partial)
    assert caught.value.report["missing"] == {"partial": ["q2"]}
    rows = scores_of(release, whole, partial, common=True)["runs"]
    assert [row["n"] for row in rows] == [1, 1]
    assert rows[0]["skipped"] == [
        {"question": "q2", "why": "no ranking in run “partial”", "unjudged": {"3": 0.0}}
    ]


def test_empty_rankings_and_runs_of_nothing_but_empty_rankings(evalset) -> None:
    release = release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    run = make_run(evalset, "empty", {"q1": [], "q2": []})
    row = scores_of(release, run)["runs"][0]
    assert (row["n"], row["measures"]["Recall@3"], row["unjudged"]) == (2, 0.0, {"3": 0.0})
    half = make_run(evalset, "half", {"q1": [], "q2": ["a"]})
    assert scores_of(release, half)["runs"][0]["measures"]["Recall@3"] == 0.5


def test_strict_lists_the_unjudged(evalset) -> None:
    release = release_labels(evalset, {"q1": {"a": 1}})
    run = make_run(evalset, "new", {"q1": ["x", "a", "y"]})
    with pytest.raises(BadInput, match="q1: x at rank 1") as caught:
        scores_of(release, run, measures=["Recall@2"], policy="strict")
    assert caught.value.report["unjudged"] == [{"question": "q1", "chunk": "x", "rank": 1}]


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"measures": ["Recall@0"]}, "whole number from 1 up"),
        ({"threshold": 4}, "not a grade from 1 to 3"),
        ({"threshold": 0}, "not a grade from 1 to 3"),
        ({"measures": ["P(rel=9)@3"]}, "not a grade from 1 to 3"),
        ({"gain": "cubic"}, "not a gain"),
        ({"policy": "lenient"}, "not a policy"),
        ({"unit": "page"}, "not a unit"),
        ({"split": "train"}, "not a split"),
    ],
)
def test_wrong_rules_are_refused(worked, rules, told) -> None:
    with pytest.raises(BadInput, match=told):
        scores_of(*worked, **{"measures": ["Recall@3"], **rules})


def test_questions_asked_after_the_release_are_counted_and_not_scored(worked, evalset) -> None:
    make_questions(evalset, "later")
    run = make_run(evalset, "C", {**RUN_A, "later": ["policy"]})
    row = scores_of(worked[0], run)["runs"][0]
    assert (row["n"], row["unknown_questions"]) == (3, 1)


def test_a_split_narrows_questions_and_rates(evalset) -> None:
    make_questions(evalset, "q1", split="dev")
    make_questions(evalset, "q2", split="holdout")
    release = release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    run = make_run(evalset, "r", {"q1": ["a"], "q2": ["x"]})
    rows = [
        scores_of(release, run, measures=["P@1"], split=split)["runs"][0] for split in ("dev", "holdout", "")
    ]
    assert [(row["n"], row["measures"]["P@1"], row["unjudged"]["1"]) for row in rows] == [
        (1, 1.0, 0.0),
        (1, 0.0, 1.0),
        (2, 0.5, 0.5),
    ]
    assert rows[0]["skipped"] == []


def test_a_split_narrows_the_unanswerable_questions(evalset) -> None:
    make_questions(evalset, "q1", split="dev")
    make_questions(evalset, "q2", split="dev", answerable=False)
    make_questions(evalset, "q3", split="holdout", answerable=False)
    release = release_labels(evalset, {"q1": {"a": 1}})
    run = make_run(evalset, "r", {"q1": ["a"], "q2": [], "q3": ["x", "y"]})
    for question, abstained in (("q2", True), ("q3", False)):
        Ranking.objects.filter(run=run, question__external_id=question).update(abstained=abstained)
    slices = {
        split: scores_of(release, run, measures=["P@1"], split=split)["runs"][0]["unanswerable"]
        for split in ("", "dev")
    }
    assert (slices[""]["n"], slices[""]["mean_returned"], slices[""]["abstention"]["rate"]) == (2, 1.0, 0.5)
    assert (slices["dev"]["n"], slices["dev"]["mean_returned"]) == (1, 0.0)
    assert slices["dev"]["abstention"]["rate"] == 1.0


def test_inadmissible_chunks_are_not_relevant_unless_the_eval_set_counts_them(evalset) -> None:
    make_questions(evalset, "q", scope="staff", effective_date=datetime.date(2026, 3, 1))
    old, other, good = make_chunks(evalset, "old", "other", "good", text=False)
    add_revision(old, "last year's", number=1, effective_to=datetime.date(2025, 12, 31))
    add_revision(other, "for managers", number=1, scope="managers")
    add_revision(good, "for staff", number=1, scope="staff", effective_from=datetime.date(2026, 3, 1))
    release = release_labels(evalset, {"q": {"old": 3, "other": 2, "good": 1}})
    run = make_run(evalset, "r", {"q": ["old", "other", "good"]})
    row = scores_of(release, run, measures=["RR@3", "Recall@3", "P@3"])["runs"][0]
    assert row["measures"] == {"RR@3": 1 / 3, "Recall@3": 1.0, "P@3": 1 / 3}
    assert row["inadmissible"] == {"3": 2}
    assert row["questions"][0]["inadmissible"] == {"3": 2}
    evalset.count_inadmissible = True
    evalset.save()
    release.refresh_from_db()
    row = scores_of(release, run, measures=["RR@3", "P@3"])["runs"][0]
    assert row["measures"] == {"RR@3": 1.0, "P@3": 1.0}
    assert row["inadmissible"] == {"3": 0}


@pytest.mark.parametrize("unit", ["chunk", "document"])
def test_the_label_of_an_inadmissible_copy_holds_for_the_admissible_one(evalset, unit) -> None:
    make_questions(evalset, "q", scope="staff")
    theirs, ours = make_chunks(evalset, "theirs", "ours", text=False)
    add_revision(theirs, "the same", number=1, scope="managers", doc_id="managers' handbook")
    add_revision(ours, "the same", number=1, scope="staff", doc_id="staff handbook")
    make_class(theirs, ours)
    release = release_labels(evalset, {"q": {"theirs": 3, "other": 1}})
    run = make_run(evalset, "r", {"q": ["theirs", "ours"]})
    row = scores_of(release, run, measures=["RR@2", "Recall@2"], unit=unit)["runs"][0]
    assert row["measures"] == {"RR@2": 0.5, "Recall@2": 0.5}
    assert (row["inadmissible"], row["unjudged"]) == ({"2": 1}, {"2": 0.0})


def test_by_document(evalset) -> None:
    chunks = make_chunks(evalset, "p1", "p2", "r1", text=False)
    for chunk, document in zip(chunks, ("doc1", "doc1", "doc2"), strict=True):
        add_revision(chunk, chunk.external_id, number=1, doc_id=document)
    release = release_labels(evalset, {"q": {"p1": 2, "r1": 1}})
    run = make_run(evalset, "r", {"q": ["p2", "p1", "r1"]})
    document = scores_of(release, run, measures=["Recall@1", "P@3"], unit="document")
    assert document["unit"] == "document"
    assert document["runs"][0]["measures"] == {"Recall@1": 0.5, "P@3": 2 / 3}


def test_truncated_passages_of_a_context_are_unjudged(evalset) -> None:
    release = release_labels(evalset, {"q": {"a": 2, "b": 1}})
    run = make_run(evalset, "r", {"q": ["a", "b"]}, stage="context")
    Ranking.objects.filter(run=run).update(passages=[{"text": "cut", "truncated": True}, {"text": "whole"}])
    row = scores_of(release, run, measures=["Recall@2"])["runs"][0]
    assert (row["measures"]["Recall@2"], row["unjudged"]["2"]) == (0.5, 0.5)


def test_facts_and_abstention_have_numbers_of_their_own(evalset) -> None:
    make_questions(evalset, "q1", facts=[{"id": "f1", "text": "price"}, {"id": "f2", "text": "date"}])
    make_questions(evalset, "q2", answerable=False)
    a, b = make_chunks(evalset, "a", "b")
    q1, q2 = Question.objects.filter(evalset=evalset).order_by("external_id")
    first = judge(q1, a, 3, by="file:labels", facts=["f1", "f2"])
    judge(q1, a, 3, by="file:labels", facts=["f1"], replaces=first)
    judge(q2, b, 0, by="file:labels")
    release = publish_release(evalset=evalset, by=None).release
    run = make_run(evalset, "r", {"q1": ["a"], "q2": ["b"]})
    Ranking.objects.filter(run=run, question=q2).update(abstained=True)
    Ranking.objects.filter(run=run, question=q1).update(abstained=False)
    row = scores_of(release, run, measures=["Recall@2"])["runs"][0]
    assert row["facts"] == {"n": 1, "k": 2, "mean": 0.5, "supported": 1, "required": 2}
    assert row["questions"][0]["facts"] == {"supported": 1, "required": 2}
    assert row["unanswerable"]["n"] == 1
    assert row["unanswerable"]["abstention"]["rate"] == 1.0
    assert row["unanswerable"]["abstention"]["wrong_rate"] == 0.0
    assert row["skipped"][0]["why"].startswith("unanswerable")


def test_a_sampled_pool_is_scored_by_the_chances_of_its_pairs(evalset) -> None:
    release_labels(evalset, {"q": {"a": 1, "b": 0, "c": 1}})
    chunks = {chunk.external_id: chunk.pk for chunk in [*Chunk.objects.all(), *make_chunks(evalset, "s")]}
    pool = Pool.objects.create(
        evalset=evalset, name="p", strategy="depth", seed=1, specification_hash="0" * 64
    )
    pool.pool_questions.create(
        question=Question.objects.get(external_id="q"),
        chunk_ids=[chunks["a"], chunks["b"], chunks["c"]],
        return_counts=[0, 0, 0],
        returned_by=[],
        returned_rank=[],
        inclusion=[1.0, 1.0, 0.5],
        unsampled_ids=[chunks["s"]],
        unsampled_inclusion=[0.5],
    )
    Pool.objects.update(created_at="2000-01-01T00:00Z")  # before anybody judged
    release = release_labels(evalset, {"other": {"z": 0}})
    run = make_run(evalset, "r", {"q": ["a", "b", "s", "c"]})
    row = scores_of(release, run, measures=["infAP"])["runs"][0]
    assert row["measures"]["infAP"] == pytest.approx((1 + 2 * (1 + 1) / 4) / 3)


def test_what_is_read_equals_the_rows(worked) -> None:
    release, a, _ = worked
    known = read_known(release)
    loaded = read_run(a, known)
    ids = dict(Chunk.objects.values_list("pk", "external_id"))
    for number, question in enumerate(known.questions.ids):
        assert [ids[chunk] for chunk in loaded.rankings.of(number).tolist()] == RUN_A[question]


# Comparing


def compared(release, a, b, *measures, **rules):
    asked = resolve(release, measures=list(measures or ["Recall@3"]), **rules)
    return [full_document(one) for one in compare_runs(release=release, run_a=a, run_b=b, asked=asked)]


def test_a_comparison_of_the_worked_example(worked) -> None:
    (document,) = compared(*worked, "nDCG@3")
    assert (document["reading"], document["measure"]) == ("meaningful", "nDCG@3")
    assert document["a"] == {
        "run": "A",
        "system": "A",
        "raw": pytest.approx(0.7296, abs=5e-5),
        "judged_only": pytest.approx(0.7296, abs=5e-5),
        "unjudged": 0.0,
    }
    assert (document["n"], document["wins"], document["losses"], document["ties"]) == (3, 2, 1, 0)
    assert document["difference"] == pytest.approx(0.8541 - 0.7296, abs=1e-4)
    assert [row["id"] for row in document["regressions"]] == ["limits"]
    assert [row["id"] for row in document["improvements"]] == ["restore", "refund"]
    assert document["improvements"][0]["a"] < document["improvements"][0]["b"]
    assert document["sentence"].startswith("nDCG@3 improved on 2 of 3 questions and regressed on 1;")


def test_every_comparison_is_logged_once_and_counted(worked) -> None:
    first = compared(*worked, "nDCG@3", "RR@3")
    assert [document["comparisons_so_far"] for document in first] == [2, 2]
    again = compared(*worked, "RR@3", "nDCG@3")
    assert again[0]["comparisons_so_far"] == 2 + 2  # another measure set gives other stored scores
    assert compared(*worked, "nDCG@3", "RR@3")[0]["comparisons_so_far"] == 4
    assert Event.objects.filter(verb="runs-compared").count() == Comparison.objects.count() == 4


def test_another_limit_for_low_rates_reads_a_comparison_anew(evalset) -> None:
    release = release_labels(evalset, {"q": {"a": 1, "b": 0}})
    a = make_run(evalset, "A", {"q": ["a", "b"]})
    b = make_run(evalset, "B", {"q": ["a", "x"]})
    assert compared(release, a, b, "P@2")[0]["reading"] == "uninterpretable"
    evalset.low_unjudged_rate = 0.5
    evalset.save()
    release = evalset.releases.get()
    assert compared(release, a, b, "P@2")[0]["reading"] == "meaningful"


def test_a_run_outside_the_pool_is_not_compared_but_told(evalset) -> None:
    release = release_labels(evalset, {f"q{n}": {f"a{n}": 1, f"b{n}": 0} for n in range(6)})
    old = make_run(evalset, "old", {f"q{n}": [f"a{n}", f"b{n}"] for n in range(6)})
    new = make_run(evalset, "new", {f"q{n}": [f"x{n}", f"a{n}"] for n in range(6)})
    (document,) = compared(release, old, new, "P@1")
    assert document["reading"] == "uninterpretable"
    assert (document["a"]["unjudged"], document["b"]["unjudged"]) == (0.0, 1.0)
    assert (document["b"]["raw"], document["b"]["judged_only"]) == (0.0, 1.0)
    assert "Run “new” is in no pool of this release." in document["why"]
    assert document["sentence"].startswith("Not to be read as a difference in quality")
    assert not document["regression_shown"]


def test_the_pool_of_the_release_is_looked_at(evalset) -> None:
    release_labels(evalset, {"q": {"a": 1}})
    a, b = (
        make_run(evalset, "a", {"q": ["a", "x"]}),
        make_run(evalset, "b", {"q": ["a", "y"]}, config={"chunker": "2"}),
    )
    pool = Pool.objects.create(
        evalset=evalset, name="p", strategy="depth", seed=1, specification_hash="0" * 64
    )
    PoolRun.objects.create(pool=pool, run=a, position=0, k=1)
    PoolRun.objects.create(pool=pool, run=b, position=1, k=5)
    release = release_labels(evalset, {"q": {"b": 0}})
    (document,) = compared(release, a, b, "P@2")
    assert "Run “a” was pooled only to depth 1, less than the measure's 2." in document["why"]
    assert document["configuration_differences"] == ["chunker differs: not recorded for A, “2” for B."]


def test_what_cannot_be_compared_is_refused(worked, evalset) -> None:
    release, a, _ = worked
    with pytest.raises(BadInput, match="with itself"):
        compared(release, a, a)
    nothing = make_run(evalset, "nothing", dict.fromkeys(RUN_A, ()))
    with pytest.raises(BadInput, match="“nothing” returned nothing for any question: it did not run"):
        compared(release, a, nothing)
    with pytest.raises(BadInput, match="same rankings, chunk for chunk"):
        compared(release, a, make_run(evalset, "again", RUN_A))
    with pytest.raises(BadInput, match="No question could be scored"):
        compared(release, a, make_run(evalset, "elsewhere", {"refund": ["policy"]}), common=True, split="dev")
    assert Comparison.objects.count() == 0


def test_a_look_at_the_holdout_is_counted(evalset) -> None:
    make_questions(evalset, "q1", split="dev")
    make_questions(evalset, "q2", split="holdout")
    release = release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    a = make_run(evalset, "a", {"q1": ["a"], "q2": ["a", "x"]})
    b = make_run(evalset, "b", {"q1": ["x", "a"], "q2": ["a"]})
    assert compared(release, a, b, "P@1", split="dev")[0]["holdout_uses"] == 0
    assert compared(release, a, b, "P@1")[0]["holdout_uses"] == 1

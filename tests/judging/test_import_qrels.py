"""Existing labels and answers to a remainder become judgments."""

import json

import pytest

from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet, Event, ImportedFile
from judging.models import Assessor, Judgment
from judging.services.assessors import assessor_for
from judging.services.import_qrels import import_qrels, import_verdicts
from tests.conftest import add_revision, make_chunks, make_questions, make_run


@pytest.fixture
def questions(evalset):
    return make_questions(evalset, "q1", "q2")


@pytest.fixture
def bring(evalset, carol, tmp_path):
    def bring(text: str, *, file: str = "qrels.txt", **options):
        path = tmp_path / file
        path.write_text(text)
        return import_qrels(evalset=evalset, source=path, by=carol, **options)

    return bring


@pytest.fixture
def bring_verdicts(evalset, carol, alice, tmp_path):
    def bring(*answers: dict, assessor="alice", **options):
        path = tmp_path / "answers.jsonl"
        path.write_text("\n".join(map(json.dumps, answers)))
        return import_verdicts(evalset=evalset, source=path, by=carol, assessor=assessor, **options)

    return bring


def counts(report) -> tuple[int, int, int, bool]:
    return report.new, report.unchanged, report.revised, report.written


def faults(caught) -> dict[str, int]:
    return {fault["kind"]: fault["count"] for fault in caught.value.report["faults"]}


def current(evalset: EvalSet) -> list[tuple[str, str, int | None, str]]:
    """The judgments that hold: question, chunk, grade, assessor."""
    return sorted(
        Judgment.objects.filter(evalset=evalset, replaced_by__isnull=True).values_list(
            "question__external_id", "chunk__external_id", "grade", "assessor__name"
        ),
        key=str,
    )


def grade(evalset, user, question: str, chunk: str, value: int | None, **fields) -> Judgment:
    row = Chunk.objects.get(evalset=evalset, external_id=chunk)
    return Judgment.objects.create(
        evalset=evalset,
        question=evalset.questions.get(external_id=question),
        chunk=row,
        assessor=assessor_for(evalset=evalset, user=user),
        **{"revision": row.revision, "kind": "grade", "grade": value, **fields},
    )


def test_labels_become_judgments_by_the_file_and_zero_survives(bring, evalset, questions, carol):
    make_chunks(evalset, "c1", "c2", "c3")
    report = bring("q1 0 c1 0\nq1 Q0 c2 3\nq2 7 c3 1\n")
    assert counts(report) == (3, 0, 0, True)
    assert current(evalset) == [
        ("q1", "c1", 0, "qrels.txt"),
        ("q1", "c2", 3, "qrels.txt"),
        ("q2", "c3", 1, "qrels.txt"),
    ]
    judgment = Judgment.objects.get(chunk__external_id="c1")
    file = ImportedFile.objects.get()
    assert (judgment.source, judgment.imported_file, judgment.revision) == ("import", file, 1)
    assert (judgment.assessor.kind, judgment.details) == ("file", {"line": 1})
    assert Event.objects.get(verb="qrels-imported").by == carol
    assert report.details["grades"] == {"0": 1, "1": 1, "3": 1}


def test_the_same_labels_twice_change_nothing(bring, evalset, questions):
    bring("q1 0 c1 0\nq1 0 c2 2\n")
    for file in ("qrels.txt", "renamed.txt"):
        again = bring("q1 0 c2 2\nq1 0 c1 0\n", file=file)
        assert counts(again) == (0, 2, 0, False)
    assert Judgment.objects.count() == 2
    assert Event.objects.count() == 1
    assert Assessor.objects.count() == 1


def test_an_export_of_peoples_labels_taken_back_changes_nothing(bring, evalset, questions, alice, bob):
    make_chunks(evalset, "c1", "c2")
    grade(evalset, alice, "q1", "c1", 0)
    grade(evalset, alice, "q1", "c2", 2)
    grade(evalset, bob, "q1", "c2", 1)
    assert counts(bring("q1 0 c1 0\nq1 0 c2 2\n")) == (0, 2, 0, False)
    label_json = json.dumps([{"id": "q1", "judged_ids": ["c1", "c2"], "grades": {"c1": 0, "c2": 1}}])
    assert counts(bring(label_json, file="labels.json")) == (0, 2, 0, False)


def test_a_median_that_nobody_gave_is_known_too(bring, evalset, questions, alice, bob):
    make_chunks(evalset, "c1")
    evalset.settle_policy = EvalSet.SettlePolicy.MEDIAN
    grade(evalset, alice, "q1", "c1", 1)
    grade(evalset, bob, "q1", "c1", 3)
    assert counts(bring("q1 0 c1 2\n", check=True)) == (0, 1, 0, False)
    assert counts(bring("q1 0 c1 0\n", check=True)) == (1, 0, 0, False)


def test_a_new_version_of_the_file_replaces_what_it_said(bring, evalset, questions):
    bring("q1 0 c1 0\nq1 0 c2 2\n")
    report = bring("q1 0 c1 3\nq1 0 c2 2\nq2 0 c1 1\n")
    assert counts(report) == (1, 1, 1, True)
    assert current(evalset) == [
        ("q1", "c1", 3, "qrels.txt"),
        ("q1", "c2", 2, "qrels.txt"),
        ("q2", "c1", 1, "qrels.txt"),
    ]
    assert Judgment.objects.get(grade=0).replaced_by.grade == 3
    assert counts(bring("q1 0 c1 3\nq1 0 c2 2\nq2 0 c1 1\n")) == (0, 3, 0, False)


def test_another_grade_than_a_persons_is_kept_beside_it_and_told(bring, evalset, questions, alice):
    make_chunks(evalset, "c1")
    grade(evalset, alice, "q1", "c1", 0)
    report = bring("q1 0 c1 2\n")
    assert counts(report) == (1, 0, 0, True)
    (example,) = report.findings.warnings.examples("other-grade")
    assert (example.field, example.value) == ("q1, c1", "2")
    assert current(evalset) == [("q1", "c1", 0, "alice"), ("q1", "c1", 2, "qrels.txt")]


def test_grades_of_models_and_older_texts_do_not_count_as_the_same(bring, evalset, questions, alice):
    (chunk,) = make_chunks(evalset, "c1")
    model = Assessor.objects.create(evalset=evalset, kind="model", name="m")
    Judgment.objects.create(
        evalset=evalset, question=questions[0], chunk=chunk, revision=1, assessor=model, kind="grade", grade=2
    )
    assert counts(bring("q1 0 c1 2\n")) == (1, 0, 0, True)
    add_revision(chunk, "another text")
    assert counts(bring("q1 0 c1 2\n")) == (1, 0, 0, True)
    assert sorted(Judgment.objects.filter(assessor__kind="file").values_list("revision", flat=True)) == [1, 2]


def test_chunks_that_are_not_there_are_kept_by_id(bring, evalset, questions):
    make_chunks(evalset, "c1")
    report = bring("q1 0 c1 1\nq1 0 c424 1\n")
    assert report.details["chunks_without_text"] == 1
    assert report.findings.warnings.examples("chunks-without-text")[0].value == "c424"
    assert not Chunk.objects.get(external_id="c424").has_text


def test_chunks_that_are_known_by_id_are_in_common(bring, evalset, questions):
    make_chunks(evalset, "c1")
    bring("q1 0 c1 1\nq1 0 c424 1\n")
    assert bring("q2 0 c424 0\n").new == 1


def test_no_chunk_in_common_is_a_fault(bring, evalset, questions):
    make_chunks(evalset, "x1", "x2")
    with pytest.raises(BadInput) as caught:
        bring("q1 0 c1 1\n")
    assert faults(caught) == {"no-chunk-overlap": 1}
    assert not Judgment.objects.exists()
    assert Chunk.objects.count() == 2


def test_unknown_questions(bring, evalset, questions):
    text = "q1 0 c1 1\nq9 0 c1 1\nq9 0 c2 1\n"
    with pytest.raises(BadInput) as caught:
        bring(text)
    assert faults(caught) == {"unknown-question": 1}
    assert caught.value.report["faults"][0]["examples"][0]["line"] == 2
    report = bring(text, unknown_questions="skip")
    assert counts(report) == (1, 0, 0, True)
    assert (report.details["questions_skipped"], report.details["labels_skipped"]) == (1, 2)


def test_questions_counted_by_position_are_noticed(bring, evalset):
    make_questions(evalset, "1", "2", "4", "8")
    with pytest.raises(BadInput) as caught:
        bring("1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n4 0 d4 1\n")
    assert faults(caught) == {"unknown-question": 1}
    assert caught.value.report["questions_without_labels"] == 1
    report = bring("1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n4 0 d4 1\n", unknown_questions="skip")
    assert report.details["questions_without_labels"] == 1
    assert [e.value for e in report.findings.warnings.examples("questions-without-labels")] == ["8"]


def test_an_eval_set_without_questions(bring, evalset):
    with pytest.raises(BadInput) as caught:
        bring("q1 0 c1 1\n")
    assert faults(caught) == {"no-questions": 1}


def test_the_scale_of_the_eval_set_holds(bring, evalset, questions):
    evalset.scale = [{"grade": n, "name": "n", "definition": "d"} for n in range(2)]
    with pytest.raises(BadInput) as caught:
        bring("q1 0 c1 2\nq1 0 c2 -1\nq1 0 c3 0.5\n")
    assert faults(caught) == {"grade-outside-scale": 1, "grade-negative": 1, "grade-fraction": 1}
    assert not Judgment.objects.exists()


def test_negative_grades_by_choice(bring, evalset, questions):
    text = "q1 0 c1 -1\nq1 0 c2 -2\nq1 0 c3 1\n"
    assert counts(bring(text, negative="skip", check=True)) == (1, 0, 0, False)
    report = bring(text, negative="zero")
    assert counts(report) == (3, 0, 0, True)
    assert report.details["negative_zeroed"] == 2
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 0, 1]


def test_codes_that_run_backwards_are_noticed_from_the_runs(bring, evalset, questions):
    names = [f"c{n}" for n in range(40)]
    make_run(evalset, "bm25", {"q1": names[:20], "q2": names[:20]})
    backwards = "".join(f"q1 0 {name} {0 if n < 10 else 3}\n" for n, name in enumerate(names[:20]))
    report = bring(backwards, check=True)
    (example,) = report.findings.warnings.examples("scale-reversed")
    assert example.value == "in the first 10 of some run: 100% of grade 0, 0% of grade 3"
    forwards = "".join(f"q1 0 {name} {3 if n < 10 else 0}\n" for n, name in enumerate(names[:20]))
    assert "scale-reversed" not in bring(forwards, check=True).findings.warnings.kinds()


def test_check_writes_nothing(bring, evalset, questions):
    report = bring("q1 0 c1 1\n", check=True)
    assert counts(report) == (1, 0, 0, False)
    assert report.sample == [{"line": 1, "question": "q1", "chunk": "c1", "grade": 1}]
    for model in (Judgment, Chunk, Assessor, ImportedFile, Event):
        assert not model.objects.exists()


def test_a_failure_in_the_middle_leaves_nothing(bring, evalset, questions, monkeypatch):
    def fail(**_named):
        raise RuntimeError("gone")

    monkeypatch.setattr("judging.services.imported_judgments.record_event", fail)
    with pytest.raises(RuntimeError):
        bring("q1 0 c1 1\n")
    for model in (Judgment, Chunk, Assessor, ImportedFile):
        assert not model.objects.exists()


def test_answers_become_the_assessors_judgments(bring_verdicts, evalset, questions):
    make_chunks(evalset, "c1", "c2", "c3", "c4")
    report = bring_verdicts(
        {"question_id": "q1", "chunk_id": "c1", "grade": 0, "note": "no", "seconds": 4.5, "revision": "1"},
        {"question_id": "q1", "chunk_id": "c2", "grade": None, "cannot_judge": "broken-text"},
        {
            "question_id": "q1",
            "chunk_id": "c3",
            "grade": None,
            "cannot_judge": "wrong language",
            "note": "Thai",
        },
        {"question_id": "q1", "chunk_id": "c4", "grade": None, "note": ""},
    )
    assert counts(report) == (3, 0, 0, True)
    assert report.details["open"] == 1
    rows = {row.chunk.external_id: row for row in Judgment.objects.select_related("chunk", "assessor")}
    assert (rows["c1"].grade, rows["c1"].note, rows["c1"].seconds) == (0, "no", 4.5)
    assert (rows["c2"].kind, rows["c2"].reason) == ("cannot-judge", "broken-text")
    assert (rows["c3"].reason, rows["c3"].note) == ("other", "wrong language\nThai")
    assert {row.assessor.user.username for row in rows.values()} == {"alice"}
    assert {row.source for row in rows.values()} == {"import"}


def test_the_same_answers_twice_change_nothing(bring_verdicts, evalset, questions):
    make_chunks(evalset, "c1", "c2")
    answers = (
        {"question_id": "q1", "chunk_id": "c1", "grade": 0},
        {"question_id": "q1", "chunk_id": "c2", "grade": None, "cannot_judge": "other"},
    )
    bring_verdicts(*answers)
    assert counts(bring_verdicts(*answers)) == (0, 2, 0, False)
    assert Judgment.objects.count() == 2


def test_an_answer_replaces_the_assessors_earlier_one_and_no_one_elses(
    bring_verdicts, evalset, questions, alice, bob
):
    make_chunks(evalset, "c1")
    first = grade(evalset, alice, "q1", "c1", 1)
    grade(evalset, bob, "q1", "c1", 3)
    report = bring_verdicts({"question_id": "q1", "chunk_id": "c1", "grade": 3})
    assert counts(report) == (0, 0, 1, True)
    assert current(evalset) == [("q1", "c1", 3, "alice"), ("q1", "c1", 3, "bob")]
    first.refresh_from_db()
    assert first.replaced_by.source == "import"


def test_an_answer_on_an_older_text_stays_with_it(bring_verdicts, evalset, questions):
    (chunk,) = make_chunks(evalset, "c1")
    add_revision(chunk, "another text")
    report = bring_verdicts({"question_id": "q1", "chunk_id": "c1", "grade": 2, "revision": "1"})
    assert report.findings.warnings.kinds() == ["older-text"]
    assert Judgment.objects.get().revision == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"question_id": "q1", "chunk_id": "c9", "grade": 1}, "unknown-chunk"),
        ({"question_id": "q9", "chunk_id": "c1", "grade": 1}, "no-question-overlap"),
        ({"question_id": "q1", "chunk_id": "c1", "grade": 1, "revision": "7"}, "unknown-revision"),
        ({"question_id": "q1", "chunk_id": "c1", "grade": 1, "revision": "first"}, "unknown-revision"),
        ({"question_id": "q1", "chunk_id": "c1", "grade": 9}, "grade-outside-scale"),
    ],
)
def test_answers_with_faults(bring_verdicts, evalset, questions, answer, kind):
    make_chunks(evalset, "c1")
    with pytest.raises(BadInput) as caught:
        bring_verdicts(answer)
    assert faults(caught) == {kind: 1}
    assert not Judgment.objects.exists()


def test_only_who_may_judge_has_verdicts(bring_verdicts, questions, victor, mallory, alice):
    answer = {"question_id": "q1", "chunk_id": "c1", "grade": 1}
    for name in ("victor", "mallory", "nobody"):
        with pytest.raises(BadInput, match=name):
            bring_verdicts(answer, assessor=name)

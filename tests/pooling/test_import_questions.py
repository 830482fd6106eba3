"""Importing questions: service over a real database."""

import json
from pathlib import Path

import pytest

from evalsets.errors import BadInput
from evalsets.models import Event, ImportedFile, Question
from pooling.services.importing import import_questions, report_text
from tests.conftest import make_chunks, make_questions


@pytest.fixture
def bring(evalset, carol, tmp_path):
    def bring(text: str, **options):
        path = tmp_path / "questions.any"
        path.write_text(text)
        return import_questions(evalset=evalset, source=path, by=carol, **options)

    return bring


def counts(report) -> tuple[int, int, int, bool]:
    return report.new, report.unchanged, report.revised, report.written


FULL = {
    "id": "q1",
    "text": "How long?",
    "narrative": "n",
    "slices": ["a", "b"],
    "split": "dev",
    "answerable": False,
    "group": "g",
    "scope": "staff",
    "effective_date": "2024-02-29",
    "facts": [{"id": "f1", "text": "14 days"}],
}


def test_every_field_arrives(bring, evalset, carol):
    report = bring(json.dumps(FULL))
    assert counts(report) == (1, 0, 0, True)
    question = Question.objects.get(evalset=evalset)
    assert question.as_json() == FULL
    event = Event.objects.get(evalset=evalset, verb="questions-imported")
    assert (event.by, event.details["new"]) == (carol, 1)
    file = ImportedFile.objects.get(evalset=evalset)
    assert (file.kind, file.name, file.created_by, file.report["new"]) == (
        "questions",
        "questions.any",
        carol,
        1,
    )
    assert file.sha256 == report.sha256


def test_the_same_file_twice_changes_nothing_and_says_so(bring):
    bring("q1\ta\nq2\tb\n")
    again = bring("q1\ta\nq2\tb\n")
    assert counts(again) == (0, 2, 0, False)
    assert again.details["imported_before"]["file"] == "questions.any"
    assert "nothing was new" in report_text(again.as_json())
    assert (Event.objects.count(), ImportedFile.objects.count(), Question.objects.count()) == (1, 1, 2)


def test_what_the_file_does_not_say_stays(bring, evalset):
    bring(json.dumps(FULL))
    report = bring("q1\tHow long now?\n")
    assert counts(report) == (0, 0, 1, True)
    assert Question.objects.get(evalset=evalset).as_json() == {**FULL, "text": "How long now?"}
    (example,) = report.findings.warnings.examples("question-reworded")
    assert (example.field, example.value, example.expected) == ("q1", "How long now?", "it was: How long?")


def test_a_field_can_be_emptied(bring, evalset):
    bring(json.dumps(FULL))
    bring(json.dumps({"id": "q1", "text": "How long?", "slices": [], "split": None, "facts": []}))
    question = Question.objects.get(evalset=evalset)
    assert (question.slices, question.split, question.facts, question.group) == ([], "", [], "g")


def test_check_reports_and_writes_nothing(bring):
    report = bring("q1\ta\nq2\tb\n", check=True)
    assert counts(report) == (2, 0, 0, False)
    assert [record["id"] for record in report.sample] == ["q1", "q2"]
    assert not Question.objects.exists()
    assert not Event.objects.exists()


def test_a_fault_stops_everything(bring):
    with pytest.raises(BadInput) as caught:
        bring("q1\ta\nno tab\nq1\tb\n")
    report = caught.value.report
    assert [(fault["kind"], fault["count"]) for fault in report["faults"]] == [
        ("columns", 1),
        ("same-id-other-content", 1),
    ]
    assert report["written"] is False
    assert "line 2" in str(caught.value)
    assert not Question.objects.exists()


def test_check_gives_the_faults_back(bring):
    report = bring("no tab", check=True, format="tsv")
    assert report.findings.faults.kinds() == ["columns"]
    assert report.as_json()["faults"][0]["examples"][0]["line"] == 1


def test_a_group_is_seen_with_its_questions_outside_of_the_file(bring):
    bring('{"id": "q1", "text": "a", "group": "g", "split": "dev"}')
    with pytest.raises(BadInput) as caught:
        bring('{"id": "q2", "text": "b", "group": "g", "split": "holdout"}')
    (fault,) = caught.value.report["faults"]
    assert (fault["kind"], fault["examples"][0]["field"]) == ("group-in-two-splits", "g")
    moved = bring(
        '{"id": "q1", "text": "a", "group": "g", "split": "holdout"}\n'
        '{"id": "q2", "text": "b", "group": "g", "split": "holdout"}'
    )
    assert counts(moved) == (1, 0, 1, True)


def test_rewording_a_judged_question_is_told(bring, evalset, alice):
    from judging.models import Assessor, Judgment

    (question,), (chunk,) = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    assessor = Assessor.objects.create(evalset=evalset, kind="person", user=alice, name="alice")
    Judgment.objects.create(
        evalset=evalset, question=question, chunk=chunk, revision=1, assessor=assessor, kind="grade", grade=0
    )
    report = bring("q1\tSomething else?\n")
    assert report.findings.warnings.kinds() == ["judged-question-reworded"]


def test_other_eval_sets_are_left_alone(bring, other_evalset):
    (theirs,) = make_questions(other_evalset, "q1")
    bring("q1\tours\n")
    theirs.refresh_from_db()
    assert theirs.text == "What is q1?"


def test_ids_and_texts_are_kept_exactly(bring, evalset):
    lines = {
        "007": "leading zeros",
        "7": "another",
        "NA": "not missing",
        "q\\1": "back\\slash\\n",
        "q1'; drop table x; --": "O'Neil's 100% _rule_",
        "Çağ #1/2:3": '"quoted" 语 🦊',
        "\\N": "\\N",
    }
    bring("".join(f"{name}\t{text}\n" for name, text in lines.items()))
    assert dict(Question.objects.filter(evalset=evalset).values_list("external_id", "text")) == lines


def test_a_failure_in_the_middle_leaves_nothing(bring, monkeypatch):
    def fail(**_arguments):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("pooling.services.importing.questions.record_event", fail)
    with pytest.raises(RuntimeError):
        bring("q1\ta\n")
    assert not Question.objects.exists()
    assert not ImportedFile.objects.exists()


def test_our_own_beir_questions_change_nothing(bring, evalset):
    bring(json.dumps(FULL))
    question = Question.objects.get(evalset=evalset).as_json()
    metadata = {key: value for key, value in question.items() if key not in ("id", "text")}
    report = bring(json.dumps({"_id": "q1", "text": question["text"], "metadata": metadata}))
    assert counts(report) == (0, 1, 0, False)


def test_size_limit_comes_from_the_settings(bring, settings):
    settings.DECOMPRESSED_LIMIT = 10
    with pytest.raises(BadInput) as caught:
        bring("q1\tlong enough\n")
    assert caught.value.report["faults"][0]["kind"] == "unpacked-size"


def test_a_file_that_is_not_there(evalset, carol):
    with pytest.raises(BadInput, match="cannot be imported"):
        import_questions(evalset=evalset, source=Path("/nowhere/at/all"), by=carol)

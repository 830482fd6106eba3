"""What an outside judge said becomes judgments of a model, repetition by repetition, and counts nowhere."""

import json

import pytest
from django.core.management import CommandError, call_command

from evalsets.errors import BadInput
from evalsets.models import Chunk, Event, ImportedFile
from judging.models import Assessor, Judgment
from judging.services.import_judge import import_judge
from judging.services.import_qrels import import_qrels
from tests.conftest import add_revision, make_chunks, make_questions

LABELS = "q1 0 c1 0\nq1 0 c2 3\nq2 0 c1 1\n"


@pytest.fixture
def pairs(evalset):
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1", "c2")
    return evalset


@pytest.fixture
def bring(pairs, carol, tmp_path):
    def bring(text: str = LABELS, *, judge: str = "gpt", file: str = "gpt.txt", **options):
        path = tmp_path / file
        path.write_text(text)
        return import_judge(evalset=pairs, source=path, by=carol, judge=judge, **options)

    return bring


def counts(report) -> tuple[int, int, int, bool]:
    return report.new, report.unchanged, report.revised, report.written


def current(**which) -> list[tuple[str, str, int, str, int]]:
    """The grades that hold: question, chunk, grade, judge, repetition."""
    rows = Judgment.objects.filter(replaced_by__isnull=True, **which).values_list(
        "question__external_id", "chunk__external_id", "grade", "assessor__name", "details__repetition"
    )
    return sorted(rows)


def test_the_grades_are_judgments_of_a_model(bring, carol):
    report = bring()
    assert counts(report) == (3, 0, 0, True)
    assert current() == [
        ("q1", "c1", 0, "gpt", 1),
        ("q1", "c2", 3, "gpt", 1),
        ("q2", "c1", 1, "gpt", 1),
    ]
    judgment = Judgment.objects.get(grade=3)
    file = ImportedFile.objects.get()
    assert (judgment.assessor.kind, judgment.source, judgment.pair) == ("model", "import", None)
    assert (judgment.imported_file, judgment.details) == (file, {"line": 2, "repetition": 1})
    assert (file.kind, file.options) == ("judge", {"judge": "gpt", "repetition": 1})
    assert Event.objects.get(verb="judge-imported").by == carol


def test_the_same_file_twice_changes_nothing(bring):
    bring()
    again = bring(file="renamed.txt")
    assert counts(again) == (0, 3, 0, False)
    assert again.details["imported_before"]["file"] == "gpt.txt"
    assert (Judgment.objects.count(), Event.objects.count(), Assessor.objects.count()) == (3, 1, 1)


def test_repetitions_stand_side_by_side_and_each_is_a_chain_of_its_own(bring):
    bring()
    assert counts(bring("q1 0 c1 2\nq1 0 c2 3\n", repetition=2)) == (2, 0, 0, True)
    assert counts(bring("q1 0 c1 2\nq1 0 c2 3\n", repetition=2)) == (0, 2, 0, False)
    assert counts(bring("q1 0 c1 1\n", repetition=2)) == (0, 0, 1, True)
    assert current(question__external_id="q1") == [
        ("q1", "c1", 0, "gpt", 1),
        ("q1", "c1", 1, "gpt", 2),
        ("q1", "c2", 3, "gpt", 1),
        ("q1", "c2", 3, "gpt", 2),
    ]
    assert Judgment.objects.get(grade=2).replaced_by.grade == 1
    assert Assessor.objects.count() == 1


def test_another_grade_in_one_repetition_replaces_it_and_is_told_with_its_line(bring):
    bring()
    bring(repetition=2)
    report = bring("q1 0 c1 0\n\nq1 0 c2 1\n")
    assert counts(report) == (0, 1, 1, True)
    (warning,) = report.findings.warnings.examples("judge-regraded")
    assert (warning.line, warning.field, warning.value) == (3, "q1, c2", "1")
    assert warning.expected == "it was 3; if the judge was run again, import the file as repetition 3"


def test_two_judges_know_nothing_of_each_other_nor_of_people(bring, pairs, carol, tmp_path):
    qrels = tmp_path / "people.txt"
    qrels.write_text(LABELS)
    import_qrels(evalset=pairs, source=qrels, by=carol)
    bring()
    assert counts(bring(judge="  llama   70B ")) == (3, 0, 0, True)
    assert counts(import_qrels(evalset=pairs, source=qrels, by=carol)) == (0, 3, 0, False)
    assert set(Assessor.objects.filter(kind="model").values_list("name", flat=True)) == {"gpt", "llama 70B"}


def test_a_new_text_is_graded_anew(bring):
    bring()
    add_revision(Chunk.objects.get(external_id="c1"), "another text")
    assert counts(bring()) == (2, 1, 0, True)


def test_a_fault_writes_nothing_and_names_its_line(bring):
    with pytest.raises(BadInput) as caught:
        bring("q1 0 c1 0\nq1 0 c2 10\nq1 0 c2\n")
    found = {fault["kind"]: fault["examples"][0]["line"] for fault in caught.value.report["faults"]}
    assert found == {"grade-outside-scale": 2, "columns": 3}
    assert not Assessor.objects.exists()


def test_a_check_writes_nothing(bring):
    assert counts(bring(check=True)) == (3, 0, 0, False)
    assert not Assessor.objects.exists()


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 201])
def test_a_name_that_will_not_do(bring, name):
    with pytest.raises(BadInput, match="name"):
        bring(judge=name)


@pytest.mark.parametrize("repetition", [0, -1, 1001])
def test_a_repetition_that_will_not_do(bring, repetition):
    with pytest.raises(BadInput, match="from 1 to 1000"):
        bring(repetition=repetition)


def test_the_command(pairs, tmp_path, capsys):
    path = tmp_path / "gpt.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\tc1\t2\nq9\tc1\t2\nq1\tc2\t-1\n")
    arguments = ("import_judge", "handbook", str(path), "--judge", "gpt", "--repetition", "2")
    with pytest.raises(CommandError) as refused:
        call_command(*arguments, "--json")
    assert refused.value.returncode == 3
    found = [fault["kind"] for fault in json.loads(capsys.readouterr().out)["faults"]]
    assert found == ["grade-negative"]
    call_command(*arguments, "--negative", "skip", "--unknown-questions", "skip", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["format"], document["new"]) == ("judge", "beir", 1)
    assert current() == [("q1", "c1", 2, "gpt", 2)]

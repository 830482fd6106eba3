"""What goes out comes in again: the files of a release through our own importers, and published qrels line by line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from evalsets.models import EvalSet
from judging.services.import_judge import import_judge
from judging.services.import_qrels import import_qrels
from labels.exports.formats import FORMATS
from labels.exports.trec import run_lines
from labels.services.publishing import publish_release
from pooling.services.importing import import_chunks, import_questions, import_run
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def released(evalset, alice, bob):
    q1, q10 = make_questions(
        evalset,
        "q1",
        "007",
        text='Is "100 %" refunded?\nEven on Sundays?',
        slices=["refunds"],
        facts=[{"id": "f1", "text": "14 days"}],
        narrative="The rule, with its exception.",
    )
    c1, c2, c3 = make_chunks(evalset, "c#1", "ä:b/c", "7")
    for question, chunk, grade in ((q1, c1, 3), (q1, c2, 0), (q10, c3, 2), (q10, c1, 0)):
        judge(question, chunk, grade, by=alice)
    make_run(evalset, "bm25", {"q1": ["ä:b/c", "c#1"], "007": ["7"]})
    return publish_release(evalset=evalset, by=None).release


@pytest.fixture
def files(released, tmp_path) -> Path:
    """Every file of the release under its format's name, and the BEIR folder unpacked."""
    for name, form in FORMATS.items():
        (tmp_path / name).write_bytes(b"".join(form.stream(released)))
    with zipfile.ZipFile(tmp_path / "beir") as archive:
        archive.extractall(tmp_path / "unpacked")
    return tmp_path


def labels_of(evalset: EvalSet) -> dict[str, dict[str, int]]:
    release = publish_release(evalset=evalset, by=None).release
    return {
        row.external_id: dict(zip(row.external_ids, row.grades, strict=True))
        for row in release.release_questions.all()
    }


FOLDER = "unpacked/handbook-r1"


@pytest.mark.parametrize("labels", ["qrels", "label-json", "label-jsonl", f"{FOLDER}/qrels/test.tsv"])
@pytest.mark.parametrize("questions", ["questions", f"{FOLDER}/queries.jsonl"])
def test_a_new_eval_set_from_the_files_of_a_release(released, files, other_evalset, labels, questions):
    import_questions(evalset=other_evalset, source=files / questions, by=None)
    import_chunks(evalset=other_evalset, source=files / FOLDER / "corpus.jsonl", by=None)
    report = import_qrels(evalset=other_evalset, source=files / labels, by=None)

    assert report.new == 4
    assert labels_of(other_evalset) == labels_of(released.evalset)
    before = {question.external_id: question.text for question in released.evalset.questions.all()}
    assert {question.external_id: question.text for question in other_evalset.questions.all()} == before
    if questions == "questions":
        details = [question.as_json() for question in released.evalset.questions.all()]
        assert [question.as_json() for question in other_evalset.questions.all()] == details


@pytest.mark.parametrize("labels", ["qrels", "label-json", "label-jsonl", f"{FOLDER}/qrels/test.tsv"])
def test_an_export_taken_back_in_changes_nothing(released, files, labels):
    report = import_qrels(evalset=released.evalset, source=files / labels, by=None)
    assert (report.new, report.revised, report.unchanged) == (0, 0, 4)
    assert not publish_release(evalset=released.evalset, by=None).created


def test_a_run_written_and_read_again_is_the_same_ranking(released, tmp_path):
    evalset = released.evalset
    path = tmp_path / "run.txt"
    path.write_bytes(b"".join(run_lines(evalset.runs.get(name="bm25"))))
    import_run(evalset=evalset, source=path, by=None, run="again")
    first, second = (
        dict(evalset.runs.get(name=name).rankings.values_list("question__external_id", "chunk_ids"))
        for name in ("bm25", "again")
    )
    assert first == second


@pytest.mark.skipif(
    not DATA.exists(), reason="the collections lie beside the checkout only where they were put"
)
@pytest.mark.parametrize("name", ["dl19-passage", "dl20-passage"])
def test_published_qrels_come_out_as_they_went_in(evalset, name):
    [path] = (DATA / name).glob("qrels*.txt")
    lines = {tuple(line.split()) for line in path.read_text().splitlines()}
    questions = sorted({line[0] for line in lines})
    make_questions(evalset, *questions)
    import_qrels(evalset=evalset, source=path, by=None)
    release = publish_release(evalset=evalset, by=None).release

    written = b"".join(FORMATS["qrels"].stream(release)).decode().splitlines()

    assert {(q, c, g) for q, _, c, g in map(str.split, written)} == {(q, c, g) for q, _, c, g in lines}
    assert written == sorted(written, key=lambda line: [part.encode() for part in line.split()])
    assert release.counts["labels"] == len(lines)


@pytest.mark.parametrize("name", ["qrels", "label-json", "label-jsonl", "csv"])
def test_a_models_label_does_not_come_back_in_as_a_judgment(evalset, other_evalset, tmp_path, name):
    [question] = make_questions(evalset, "q1")
    for chunk, grade, by in zip(
        make_chunks(evalset, "c1", "c2"), (2, 1), ("model:gpt", "file:a"), strict=True
    ):
        judge(question, chunk, grade, by=by)
    release = publish_release(evalset=evalset, by=None, judges=["gpt"]).release
    path = tmp_path / "labels"
    path.write_bytes(b"".join(FORMATS[name].stream(release)))
    make_questions(other_evalset, "q1")

    report = import_qrels(evalset=other_evalset, source=path, by=None)

    assert (report.read, report.new, report.details["models_skipped"]) == (2, 1, 1)
    assert report.findings.warnings.examples("label-of-model")[0].field == "q1, c1"
    assert other_evalset.judgments.get().chunk.external_id == "c2"
    judged = import_judge(evalset=other_evalset, source=path, by=None, judge="gpt")
    assert judged.new == 2

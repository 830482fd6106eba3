"""What goes out comes in again: the files of a release through our own importers, and published qrels line by line."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from judging.services.import_judge import import_judge
from judging.services.import_qrels import import_qrels
from labels.exports.formats import FORMATS
from labels.exports.trec import run_lines
from labels.services.freezing import has_space
from labels.services.publishing import publish_release
from labels.settling import labels_of_question
from pooling.formats import ChunkFile, read_qrels, read_questions, read_run
from pooling.services.importing import import_chunks, import_questions, import_run
from tests.conftest import add_revision, make_chunks, make_questions, make_run
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


@pytest.mark.parametrize("labels", ["qrels", "label-json", "label-jsonl", f"{FOLDER}/qrels/test.tsv", "csv"])
def test_an_export_taken_back_in_changes_nothing(released, files, labels):
    report = import_qrels(evalset=released.evalset, source=files / labels, by=None)
    assert (report.new, report.revised, report.unchanged) == (0, 0, 4)
    assert not publish_release(evalset=released.evalset, by=None).created


def test_ids_that_look_like_formulas_come_back_from_the_spreadsheet_as_they_were(evalset, alice, tmp_path):
    [question] = make_questions(evalset, "-1")
    for chunk in make_chunks(evalset, "=1", "'=1", "''@x", "'quoted'", "-a,b"):
        judge(question, chunk, 2, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    (tmp_path / "labels.csv").write_bytes(b"".join(FORMATS["csv"].stream(release)))
    report = import_qrels(evalset=evalset, source=tmp_path / "labels.csv", by=None)
    assert (report.new, report.revised, report.unchanged) == (0, 0, 5)


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


ODD_NAMES = ["007", "7", "q#1", "#1", "NA", "null", "1e5", '"q"', "'", "a,b", "=1", "\\", "\\t", "é", "🙂"]
NAMES = st.sampled_from([*ODD_NAMES, "[1", "{a}", "a b", " a", "\u2028", "\ufeffq", "e\u0301"]) | st.text(
    st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6
)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20).map(
    "text ".__add__
)


@settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_ids_and_texts_what_is_written_is_read_back(evalset, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("release")
    with transaction.atomic():
        questions = [
            make_questions(
                evalset, name, text=data.draw(TEXTS), narrative=data.draw(TEXTS), slices=["a;b", "=c"]
            )[0]
            for name in data.draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
        ]
        chunks = make_chunks(evalset, *data.draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)))
        add_revision(chunks[0], data.draw(TEXTS))
        for question in questions:
            for chunk in chunks:
                judge(question, chunk, data.draw(st.integers(0, 3)))
        labels = {
            (q.external_id, c.external_id): labels_of_question(q)[c.pk].label
            for q in questions
            for c in chunks
        }
        texts = {c.external_id: c.revisions.current().get().text for c in chunks}
        ranking = {q.external_id: [c.external_id for c in chunks] for q in questions}
        run = make_run(evalset, "a run", ranking)
        release = publish_release(evalset=evalset, by=None).release

        def written(name: str, lines: Iterable[bytes]) -> Path:
            path = folder / name
            path.write_bytes(b"".join(lines))
            return path

        def read_back(path: Path) -> dict[tuple[str, str], int]:
            read = read_qrels(path)
            assert not read.findings.faults, read.findings.faults.as_json()
            return {(record.question, record.chunk): record.grade for record in read.records}

        for name in ("label-json", "label-jsonl"):
            assert read_back(written(name, FORMATS[name].stream(release))) == labels
        asked = read_questions(written("questions", FORMATS["questions"].stream(release)))
        assert {record.id: (record.text, record.narrative, record.slices) for record in asked.records} == {
            question.external_id: (question.text, question.narrative, tuple(question.slices))
            for question in questions
        }
        with zipfile.ZipFile(written("beir", FORMATS["beir"].stream(release))) as archive:
            archive.extractall(folder)
        beir = folder / f"{evalset.slug}-r{release.number}"
        assert read_back(beir / "qrels" / "test.tsv") == labels
        assert {record.id: record.text for record in ChunkFile(beir / "corpus.jsonl")} == texts
        assert {record.id for record in read_questions(beir / "queries.jsonl").records} == set(ranking)
        if any(name[0] in "#\ufeff" for name in ranking):
            with pytest.raises(BadInput, match=r"white space|begin"):
                b"".join(FORMATS["qrels"].stream(release))
            with pytest.raises(BadInput, match=r"white space|begin"):
                b"".join(run_lines(run))
        elif not any(has_space(name) for name in (*ranking, *texts)):
            assert read_back(written("qrels", FORMATS["qrels"].stream(release))) == labels
            again = read_run(written("run", run_lines(run)))
            assert not again.findings.faults
            assert {
                record.question: [again.vocabulary[at] for at in record.chunks] for record in again.rankings
            } == ranking
        transaction.set_rollback(True)


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


def test_a_question_that_would_be_read_as_a_comment_is_refused_by_name(evalset):
    (question,), (chunk,) = make_questions(evalset, "#1"), make_chunks(evalset, "#c")
    judge(question, chunk, 0)
    run = make_run(evalset, "bm25", {"#1": ["#c"]})
    release = publish_release(evalset=evalset, by=None).release
    said = r"1 of the question IDs begin with # .*'#1'"
    for name in ("qrels", "qrels-propagated"):
        with pytest.raises(BadInput, match=said):
            FORMATS[name].stream(release)
    with pytest.raises(BadInput, match=said):
        run_lines(run)

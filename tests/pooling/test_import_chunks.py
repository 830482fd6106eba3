"""Importing chunks: revisions, texts that arrive later, repeated IDs, what labels it leaves behind."""

import datetime
import json

import pytest

from evalsets.errors import BadInput
from evalsets.models import Chunk, ChunkRevision, Event
from judging.models import Assessor, Judgment
from pooling.services.importing import import_chunks
from tests.conftest import make_chunks, make_questions, make_run


@pytest.fixture
def bring(evalset, carol, tmp_path):
    def bring(text: str, **options):
        path = tmp_path / "chunks.any"
        path.write_text(text)
        return import_chunks(evalset=evalset, source=path, by=carol, **options)

    return bring


def counts(report) -> tuple[int, int, int, bool]:
    return report.new, report.unchanged, report.revised, report.written


def texts(evalset) -> dict[str, list[tuple[int, str]]]:
    """By chunk ID, the numbers and texts of its revisions."""
    found: dict[str, list[tuple[int, str]]] = {}
    for revision in (
        ChunkRevision.objects.filter(chunk__evalset=evalset).select_related("chunk").order_by("number")
    ):
        found.setdefault(revision.chunk.external_id, []).append((revision.number, revision.text))
    return found


def judge(evalset, chunk: Chunk, *, grade: int = 0, revision: int | None = None) -> None:
    question = make_questions(evalset, f"q{Judgment.objects.count()}")[0]
    assessor, _ = Assessor.objects.get_or_create(evalset=evalset, kind="file", name="f")
    Judgment.objects.create(
        evalset=evalset,
        question=question,
        chunk=chunk,
        revision=revision or chunk.revision,
        assessor=assessor,
        kind="grade",
        grade=grade,
    )


def test_every_field_arrives(bring, evalset):
    report = bring(
        json.dumps(
            {
                "id": "c1",
                "title": "T",
                "text": "x",
                "doc_id": "d",
                "url": "http://e.org/",
                "revision": "r7",
                "start": 3,
                "end": 9,
                "effective_from": "2024-01-01",
                "effective_to": "2024-12-31",
                "scope": "staff",
                "metadata": {"k": [1, None]},
            }
        )
    )
    assert counts(report) == (1, 0, 0, True)
    chunk = Chunk.objects.get(evalset=evalset)
    assert (chunk.external_id, chunk.revision, chunk.has_text) == ("c1", 1, True)
    revision = chunk.revisions.get()
    assert (revision.number, revision.title, revision.text, revision.doc_id) == (1, "T", "x", "d")
    assert (revision.url, revision.source_revision, revision.start, revision.end) == (
        "http://e.org/",
        "r7",
        3,
        9,
    )
    assert (revision.effective_from, revision.effective_to) == (
        datetime.date(2024, 1, 1),
        datetime.date(2024, 12, 31),
    )
    assert (revision.scope, revision.metadata) == ("staff", {"k": [1, None]})


def test_the_same_file_twice_changes_nothing(bring, evalset):
    bring("c1\ta\nc2\tb\n")
    again = bring("c1\ta\nc2\tb\n")
    assert counts(again) == (0, 2, 0, False)
    assert again.details["imported_before"]
    assert Event.objects.filter(verb="chunks-imported").count() == 1


def test_another_text_is_a_new_revision_and_labels_stay_behind(bring, evalset):
    bring("c1\tRefunds take 14 days.\nc2\tb\n")
    first = Chunk.objects.get(external_id="c1")
    judge(evalset, first, grade=2)
    judge(evalset, first, grade=0)
    report = bring("c1\tRefunds take 30 days.\nc2\tb\n")
    assert counts(report) == (0, 1, 1, True)
    assert report.details["labels_left_behind"] == 2
    assert report.findings.warnings.count("labels-left-behind") == 2
    (example,) = report.findings.warnings.examples("chunk-revised")
    assert (example.line, example.field, example.expected) == (1, "c1", "it was: Refunds take 14 days.")
    assert texts(evalset)["c1"] == [(1, "Refunds take 14 days."), (2, "Refunds take 30 days.")]
    first.refresh_from_db()
    assert first.revision == 2
    assert set(Judgment.objects.values_list("revision", flat=True)) == {1}


def test_an_earlier_text_becomes_current_again(bring, evalset):
    for text in ("one", "two", "one"):
        bring(f"c1\t{text}\n")
    assert texts(evalset)["c1"] == [(1, "one"), (2, "two")]
    assert Chunk.objects.get().revision == 1
    bring("c1\tthree\n")
    assert Chunk.objects.get().revision == 3


def test_an_earlier_text_takes_the_details_of_the_file_at_once(bring, evalset):
    bring('{"id": "c1", "text": "one", "url": "old"}')
    bring("c1\ttwo\n")
    bring('{"id": "c1", "text": "one", "url": "new"}')
    assert Chunk.objects.get().revisions.get(number=1).url == "new"
    assert not bring('{"id": "c1", "text": "one", "url": "new"}').written


def test_another_title_is_another_text(bring, evalset):
    bring("c1\tA\tx\n", format="tsv-title")
    assert counts(bring("c1\tB\tx\n", format="tsv-title")) == (0, 0, 1, True)


def test_a_text_for_a_chunk_known_by_its_id_is_revision_one(bring, evalset):
    (chunk,) = make_chunks(evalset, "c1", text=False)
    judge(evalset, chunk, grade=3)
    report = bring("c1\tlate\nc2\tb\n")
    assert counts(report) == (2, 0, 0, True)
    assert (report.details["first_texts"], report.details["labels_left_behind"]) == (1, 0)
    chunk.refresh_from_db()
    assert (chunk.revision, chunk.has_text) == (1, True)
    assert texts(evalset)["c1"] == [(1, "late")]


def test_details_change_without_a_new_revision(bring, evalset):
    bring('{"id": "c1", "text": "x", "url": "old", "scope": "staff"}')
    report = bring('{"id": "c1", "text": "x", "url": "new", "effective_to": "2024-01-01"}')
    assert counts(report) == (0, 1, 0, True)
    assert report.details["details_changed"] == 1
    revision = ChunkRevision.objects.get()
    assert (revision.number, revision.url, revision.scope) == (1, "new", "staff")
    assert revision.effective_to == datetime.date(2024, 1, 1)


def test_only_referenced_chunks(bring, evalset):
    make_questions(evalset, "q1")
    make_run(evalset, "bm25", {"q1": ["c2", "c9"]})
    report = bring("c1\ta\nc2\tb\nc3\tc\n", only_referenced=True)
    assert counts(report) == (1, 0, 0, True)
    assert (report.read, report.details["left_out"]) == (3, 2)
    assert texts(evalset) == {"c2": [(1, "b")]}


def test_one_id_with_two_contents_is_a_fault_and_names_both_lines(bring, evalset):
    with pytest.raises(BadInput) as caught:
        bring("c1\ta\nc2\tb\nc1\tz\n")
    (fault,) = caught.value.report["faults"]
    example = fault["examples"][0]
    assert (fault["kind"], example["line"], example["field"], example["value"]) == (
        "same-id-other-content",
        3,
        "c1",
        "z",
    )
    assert "line 1" in example["expected"]
    assert not Chunk.objects.exists()


def test_one_id_with_one_content_counts_once(bring, evalset):
    report = bring("c1\ta\nc1\ta\nc1\ta\n")
    assert counts(report) == (1, 0, 0, True)
    assert report.read == 3
    assert report.findings.warnings.count("repeated") == 2


def test_other_fields_under_one_id_are_other_content(bring):
    report = bring('{"id": "c1", "text": "a"}\n{"id": "c1", "text": "a", "url": "u"}', check=True)
    assert report.findings.faults.kinds() == ["same-id-other-content"]


def test_a_fault_far_down_stops_everything(bring, evalset):
    text = "".join(f"c{n}\ttext {n}\n" for n in range(3000)) + "no tab\n"
    with pytest.raises(BadInput):
        bring(text)
    assert not Chunk.objects.exists()


def test_check_counts_as_the_import_would(bring, evalset):
    bring("c1\ta\nc2\tb\n")
    checked = bring("c1\tz\nc2\tb\nc3\tc\n", check=True)
    assert counts(checked) == (1, 1, 1, False)
    assert Chunk.objects.get(external_id="c1").revision == 1
    assert counts(bring("c1\tz\nc2\tb\nc3\tc\n")) == (1, 1, 1, True)


def test_odd_ids_and_texts_are_kept_exactly(bring, evalset):
    rows = {
        "=1+1": "\t=1+1",
        "73928e03": "a",
        "1-2": "\\N",
        "04567": "back\\slash",
        "\\N": "x",
        "a b": "line\nfeed\r\n",
        "Cafe\u0301": "\u2028",
    }
    bring("\n".join(json.dumps({"id": name, "text": text}) for name, text in rows.items()))
    assert {name: found[0][1] for name, found in texts(evalset).items()} == rows


def test_a_long_chunk(bring, evalset):
    bring(json.dumps({"id": "c1", "text": "word " * 40_000}))
    assert len(ChunkRevision.objects.get().text) == 200_000


def test_other_eval_sets_are_left_alone(bring, other_evalset):
    (theirs,) = make_chunks(other_evalset, "c1")
    bring("c1\tours\n")
    theirs.refresh_from_db()
    assert (theirs.revision, theirs.revisions.get().text) == (1, "Text of c1.")


def test_a_failure_in_the_middle_leaves_nothing(bring, monkeypatch):
    def fail(*_arguments, **_named):
        raise RuntimeError("gone")

    monkeypatch.setattr("pooling.services.importing.chunks.record_file", fail)
    with pytest.raises(RuntimeError):
        bring("c1\ta\n")
    assert not Chunk.objects.exists()


def test_our_own_beir_corpus_changes_nothing(bring):
    bring('{"id": "c1", "title": "T", "text": "x", "doc_id": "d", "url": "u", "metadata": {"k": 1}}')
    report = bring(
        '{"_id": "c1", "title": "T", "text": "x", "metadata": {"doc_id": "d", "url": "u", "k": 1}}'
    )
    assert counts(report) == (0, 1, 0, False)

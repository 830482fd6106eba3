"""Importing runs: names, questions, chunks, missing and empty, repeated imports."""

import datetime
import gzip
import json

import pytest

from evalsets.errors import BadInput
from evalsets.models import Chunk, Event, ImportedFile
from pooling.models import Ranking, Run, System
from pooling.services.importing import import_run
from tests.conftest import make_chunks, make_questions, make_run

RUN = "q1 Q0 c1 1 2.5 bm25\nq1 Q0 c2 2 1.5 bm25\nq2 Q0 c2 1 7 bm25\n"


@pytest.fixture
def bring(evalset, carol, tmp_path):
    def bring(content: str | bytes, *, file: str = "run.txt", **options):
        path = tmp_path / file
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return import_run(evalset=evalset, source=path, by=carol, **options)

    return bring


@pytest.fixture
def questions(evalset):
    return make_questions(evalset, "q1", "q2")


def stored(run: Run) -> dict[str, list[str]]:
    names = dict(Chunk.objects.filter(evalset=run.evalset).values_list("pk", "external_id"))
    return {
        ranking.question.external_id: [names[pk] for pk in ranking.chunk_ids]
        for ranking in run.rankings.select_related("question")
    }


def faults(caught) -> dict[str, int]:
    return {fault["kind"]: fault["count"] for fault in caught.value.report["faults"]}


def test_rankings_arrive_in_their_order_with_scores(bring, evalset, questions, carol):
    report = bring(
        "q1 Q0 low 1 1.5 bm25\nq1 Q0 high 2 2.5 bm25\nq2 Q0 low 1 7 bm25\n", k=10, stage="candidates"
    )
    assert (report.new, report.unchanged, report.revised, report.written) == (2, 0, 0, True)
    run = Run.objects.get(evalset=evalset)
    assert stored(run) == {"q1": ["high", "low"], "q2": ["low"]}
    assert run.rankings.get(question=questions[0]).scores == [2.5, 1.5]
    assert (run.name, run.system.name, run.stage, run.k, run.created_by) == (
        "bm25",
        "bm25",
        "candidates",
        10,
        carol,
    )
    assert run.provenance["tags"] == ["bm25"]
    assert run.provenance["entries"] == 3
    assert run.warnings == report.findings.warnings.as_json()
    event = Event.objects.get(verb="run-imported")
    assert event.details == {
        "file": ImportedFile.objects.get().pk,
        "run": run.pk,
        "rankings": 2,
        "entries": 3,
    }


def test_what_is_recorded_with_a_run(bring, evalset, questions):
    bring(RUN, version="1.2", date="2026-05-01", config={"index": "i7"}, system="BM25", run="spring")
    run = Run.objects.get()
    assert (run.version, run.date, run.config) == ("1.2", datetime.date(2026, 5, 1), {"index": "i7"})
    assert (run.system.name, run.name) == ("BM25", "spring")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stage": "final"}, "stage"),
        ({"k": 0}, "k is 0"),
        ({"date": "1.5.2026"}, "YYYY-MM-DD"),
        ({"config": ["a"]}, "configuration"),
    ],
)
def test_options_that_make_no_sense(bring, questions, options, message):
    with pytest.raises(BadInput, match=message):
        bring(RUN, **options)


def test_chunks_without_text_are_kept_by_their_id_and_counted(bring, evalset, questions):
    make_chunks(evalset, "c1")
    report = bring(RUN)
    assert report.details["chunks"] == 2
    assert report.details["chunks_without_text"] == 1
    (example,) = report.findings.warnings.examples("chunks-without-text")
    assert example.value == "c2"
    assert "1 of 2 chunks have a text" in example.expected
    assert not Chunk.objects.get(external_id="c2").has_text
    assert stored(Run.objects.get()) == {"q1": ["c1", "c2"], "q2": ["c2"]}


def test_the_same_file_twice_is_one_run(bring, questions):
    bring(RUN)
    again = bring(gzip.compress(RUN.encode()), file="again.gz")
    assert (again.new, again.unchanged, again.written) == (0, 2, False)
    assert again.details["run"] == "bm25"
    assert again.details["imported_before"]["file"] == "run.txt"
    assert (Run.objects.count(), Event.objects.count(), ImportedFile.objects.count()) == (1, 1, 1)


def test_an_export_with_other_scores_and_the_same_order_is_the_same_run(bring, questions):
    bring(RUN)
    again = bring("q2 Q0 c2 1 1 bm25\nq1 Q0 c1 1 2 bm25\nq1 Q0 c2 2 1 bm25\n", file="export.txt")
    assert (again.new, again.unchanged, again.written) == (0, 2, False)


def test_a_second_run_of_a_system_gets_a_number(bring, questions):
    bring(RUN)
    report = bring("q1 Q0 c2 1 2 bm25\nq2 Q0 c2 1 2 bm25\n", file="other.txt")
    assert report.details["run"] == "bm25-2"
    assert report.findings.warnings.examples("tag-shared")[0].value == "bm25"
    bring("q1 Q0 c3 1 2 bm25\nq2 Q0 c2 1 2 bm25\n", file="third.txt")
    assert sorted(Run.objects.values_list("name", "system__name")) == [
        ("bm25", "bm25"),
        ("bm25-2", "bm25"),
        ("bm25-3", "bm25"),
    ]


def test_one_tag_for_all_runs_and_systems_that_are_named(bring, questions):
    bring("q1 Q0 c1 1 9 rank\n", system="bm25", file="bm25.txt")
    report = bring("q1 Q0 c2 1 0.9 rank\n", system="dense", file="dense.txt")
    assert "tag-shared" not in report.findings.warnings.kinds()
    assert sorted(System.objects.values_list("name", flat=True)) == ["bm25", "dense"]


def test_a_run_that_is_named_is_another_run_even_with_the_same_rankings(bring, questions):
    bring(RUN)
    assert bring(RUN, run="bm25 again").written
    assert not bring(RUN, run="bm25 again").written
    assert sorted(Run.objects.values_list("name", flat=True)) == ["bm25", "bm25 again"]


def test_a_name_that_is_taken_is_a_fault(bring, questions):
    bring(RUN, run="monday")
    with pytest.raises(BadInput) as caught:
        bring("q1 Q0 c9 1 1 bm25\n", run="monday")
    assert faults(caught) == {"run-name": 1}


def test_two_systems_with_the_same_rankings_are_told(bring, questions):
    bring(RUN, system="A")
    report = bring(RUN, system="B")
    assert report.written
    assert report.findings.warnings.examples("identical-run")[0].value == "A"


def test_another_stage_is_another_run(bring, questions):
    bring(RUN, stage="candidates")
    assert bring(RUN, stage="reranked").written


def test_a_file_without_a_tag_names_its_system_by_the_file(bring, questions):
    report = bring('{"q1": {"c1": 1}}', file="dense.v2.json")
    assert (report.details["system"], report.details["run"]) == ("dense", "dense")


def test_unknown_questions_are_a_fault_or_skipped(bring, questions, evalset):
    text = RUN + "q3 Q0 c1 1 1 bm25\n10 Q0 c1 1 1 bm25\n"
    with pytest.raises(BadInput) as caught:
        bring(text)
    assert faults(caught) == {"unknown-question": 2}
    example = caught.value.report["faults"][0]["examples"][0]
    assert (example["line"], example["value"]) == (4, "q3")
    assert not Run.objects.exists()
    assert not Chunk.objects.exists()
    report = bring(text, unknown_questions="skip")
    assert report.findings.warnings.count("questions-skipped") == 2
    assert set(stored(Run.objects.get())) == {"q1", "q2"}
    assert Run.objects.get().provenance["questions_skipped"] == 2


def test_no_question_in_common_shows_both_sides(bring, evalset):
    make_questions(evalset, "001", "002", "003", "004")
    with pytest.raises(BadInput) as caught:
        bring("1 Q0 c1 1 1 s\n2 Q0 c1 1 1 s\n7 Q0 c1 1 1 s\n8 Q0 c1 1 1 s\n")
    assert faults(caught) == {"no-question-overlap": 4}
    example = caught.value.report["faults"][0]["examples"][0]
    assert example["value"] == "1, 2, 7"
    assert "001, 002, 003" in example["expected"]
    assert "2 of 4 unknown IDs differ from known ones only in leading zeros" in example["expected"]


def test_skipping_unknown_questions_does_not_hide_that_none_is_known(bring, questions):
    with pytest.raises(BadInput) as caught:
        bring("q9 Q0 c1 1 1 s\n", unknown_questions="skip")
    assert faults(caught) == {"no-question-overlap": 1}


def test_an_eval_set_without_questions(bring):
    with pytest.raises(BadInput) as caught:
        bring(RUN)
    assert faults(caught) == {"no-questions": 1}


def test_cut_off_chunk_ids_are_found_out(bring, evalset, questions):
    make_chunks(evalset, "ff0947ec-2019-04-18T12:23:12Z-00001-000")
    with pytest.raises(BadInput) as caught:
        bring("q1 Q0 ff0947ec-2019-04-18T 1 72.9 s\nq1 Q0 51530f3f-2019-04-18T 2 70.1 s\n")
    assert faults(caught) == {"no-chunk-overlap": 2}
    expected = caught.value.report["faults"][0]["examples"][0]["expected"]
    assert "1 of 2 unknown IDs differ from known ones only in the end: it is cut off" in expected


def test_chunks_that_another_run_named_are_in_common(bring, evalset, questions):
    make_chunks(evalset, "with a text")
    bring('{"qid": "q1", "results": ["with a text", "c\u00e9-1"]}', system="first")
    report = bring('{"qid": "q1", "results": ["c\u00e9-1", "ce\u0301-1"]}', system="second")
    assert report.details["chunks_without_text"] == 2
    (hint,) = report.findings.warnings.examples("chunk-known-otherwise")
    assert (hint.value, hint.expected) == ("ce\u0301-1", "c\u00e9-1 differs only in normalisation")


def test_chunk_ids_written_otherwise_are_told_and_kept_apart(bring, evalset, questions):
    make_chunks(evalset, "Café_Zürich", "São_Paulo", "AT&amp;T", "plain")
    report = bring(
        "q1 Q0 Cafe\u0301_Zu\u0308rich 1 4 s\nq1 Q0 S%C3%A3o_Paulo 2 3 s\nq1 Q0 AT&T 3 2 s\nq1 Q0 plain 4 1 s\n"
    )
    assert report.details["chunks_without_text"] == 3
    assert report.findings.warnings.count("chunk-known-otherwise") == 3
    hints = {
        example.value: example.expected
        for example in report.findings.warnings.examples("chunk-known-otherwise")
    }
    assert hints["AT&T"] == "AT&amp;T differs only in escaping"
    assert hints["Cafe\u0301_Zu\u0308rich"] == "Café_Zürich differs only in normalisation"
    assert Chunk.objects.filter(evalset=evalset).count() == 7


def test_spreadsheet_ids_are_told_with_their_likely_originals(bring, evalset, questions):
    make_chunks(evalset, "73928e03", "1-2", "04567", "plain")
    report = bring("q1 Q0 7.39E+07 1 4 s\nq1 Q0 01-Feb 2 3 s\nq1 Q0 4567 3 2 s\nq1 Q0 plain 4 1 s\n")
    hints = {
        example.value: example.expected
        for example in report.findings.warnings.examples("chunk-known-otherwise")
    }
    assert {name: hint.split()[0] for name, hint in hints.items()} == {
        "7.39E+07": "73928e03",
        "01-Feb": "1-2",
        "4567": "04567",
    }


def test_no_text_anywhere_is_no_fault(bring, evalset, questions):
    make_run(evalset, "other", {"q1": ["x"]})
    assert bring(RUN).written


def test_missing_is_not_empty(bring, evalset):
    make_questions(evalset, "q1", "q2", "q3")
    report = bring('{"qid": "q1", "results": ["c1"]}\n{"qid": "q2", "results": []}\n')
    assert report.details["missing"] == ["q3"]
    assert [e.value for e in report.findings.warnings.examples("questions-missing")] == ["q3"]
    assert [e.value for e in report.findings.warnings.examples("questions-empty")] == ["q2"]
    assert stored(Run.objects.get()) == {"q1": ["c1"], "q2": []}
    assert Ranking.objects.get(question__external_id="q1").scores is None


def test_missing_can_be_declared_empty(bring, evalset):
    make_questions(evalset, "q1", "q2", "q3")
    report = bring(RUN, missing="empty")
    assert report.new == 3
    run = Run.objects.get()
    assert stored(run) == {"q1": ["c1", "c2"], "q2": ["c2"], "q3": []}
    assert (run.provenance["missing"], run.provenance["questions_declared_empty"]) == ("empty", 1)


def test_abstention_and_passages_are_kept(bring, questions):
    lines = [
        {"qid": "q1", "results": [], "abstained": True},
        {
            "qid": "q2",
            "results": [
                {"id": "a", "score": 1, "text": "Ä \u0001"},
                {"id": "b", "score": 2},
                {"id": "c", "score": 0, "text": "", "truncated": True},
            ],
        },
    ]
    bring("\n".join(map(json.dumps, lines)), stage="context")
    first, second = Ranking.objects.order_by("question__external_id")
    assert (first.abstained, first.chunk_ids, first.passages) == (True, [], None)
    assert second.abstained is False
    assert second.passages == [
        None,
        {"text": "Ä \u0001", "truncated": False},
        {"text": "", "truncated": True},
    ]
    assert second.scores == [2.0, 1.0, 0.0]


def test_a_run_that_reports_no_abstention_says_nothing_of_it(bring, questions):
    bring(RUN, system="A")
    assert set(Ranking.objects.values_list("abstained", flat=True)) == {None}


def test_a_run_may_report_that_it_never_abstained(bring, questions):
    bring('{"qid": "q1", "results": ["c1"], "abstained": false}\n{"qid": "q2", "results": ["c2"]}')
    assert set(Ranking.objects.values_list("abstained", flat=True)) == {False}


def test_duplicates_that_are_dropped_are_recorded(bring, questions):
    text = "q1 Q0 c1 1 3 s\nq1 Q0 c1 2 2 s\nq1 Q0 c2 3 1 s\n"
    with pytest.raises(BadInput) as caught:
        bring(text)
    assert faults(caught) == {"duplicate-chunk": 1}
    bring(text, duplicates="keep-first")
    run = Run.objects.get()
    assert stored(run)["q1"] == ["c1", "c2"]
    assert (run.provenance["duplicates"], run.provenance["duplicates_dropped"]) == ("keep-first", 1)


def test_order_by_rank_is_recorded(bring, questions):
    bring("q1 Q0 a 2 9 s\nq1 Q0 b 1 1 s\n", order="rank")
    run = Run.objects.get()
    assert (stored(run)["q1"], run.provenance["order"]) == (["b", "a"], "rank")


def test_several_tags_need_a_named_system(bring, questions):
    text = "q1 Q0 a 1 2 A\nq1 Q0 b 2 1 B\n"
    with pytest.raises(BadInput) as caught:
        bring(text)
    assert faults(caught) == {"several-tags": 1}
    assert bring(text, system="mine").findings.warnings.kinds() == [
        "several-tags",
        "questions-missing",
        "chunks-without-text",
    ]


def test_rankings_longer_than_k_are_told(bring, questions):
    report = bring(RUN, k=1)
    assert report.findings.warnings.count("more-than-k") == 1


def test_check_writes_nothing_and_counts_the_same(bring, questions):
    report = bring(RUN, check=True)
    assert (report.new, report.written, report.details["run"]) == (2, False, "bm25")
    assert report.sample[0] == {"question": "q1", "length": 2, "first": ["c1", "c2"]}
    assert not Run.objects.exists()
    assert not System.objects.exists()
    assert not Chunk.objects.exists()


def test_a_failure_in_the_middle_leaves_nothing(bring, questions, monkeypatch):
    def fail(*_arguments):
        raise RuntimeError("gone")

    monkeypatch.setattr("pooling.services.importing.runs.write_rankings", fail)
    with pytest.raises(RuntimeError):
        bring(RUN)
    assert not Run.objects.exists()
    assert not Chunk.objects.exists()
    assert not System.objects.exists()


def test_the_content_hash_depends_on_rankings_alone(bring, evalset, other_evalset, questions, tmp_path):
    make_questions(other_evalset, "q1", "q2")
    make_chunks(other_evalset, "z", "c2", "c1")
    bring(RUN)
    path = tmp_path / "elsewhere"
    path.write_text("q2 Q0 c2 1 0.7 x\nq1 Q0 c1 1 0.9 x\nq1 Q0 c2 2 0.1 x\n")
    import_run(evalset=other_evalset, source=path, by=None)
    assert len(set(Run.objects.values_list("content_hash", flat=True))) == 1


@pytest.mark.parametrize(
    "other",
    [
        "q1 Q0 c2 1 3 s\nq1 Q0 c1 2 2 s\nq2 Q0 c2 1 7 s\n",  # another order
        "q1 Q0 c1 1 3 s\nq2 Q0 c2 1 7 s\nq2 Q0 c3 2 6 s\n",  # cut elsewhere
        "q1 Q0 c 1 3 s\nq1 Q0 1c2 2 2 s\nq2 Q0 c2 1 7 s\n",  # the same letters in other IDs
        '{"qid": "q1", "results": ["c1", "c2"], "abstained": true}\n{"qid": "q2", "results": ["c2"]}',
    ],
)
def test_the_content_hash_tells_runs_apart(bring, questions, other):
    bring(RUN, system="A")
    report = bring(other, system="A")
    assert report.written
    assert Run.objects.values("content_hash").distinct().count() == 2


def test_ids_with_backslashes_and_formulas(bring, evalset, questions):
    bring("q1 Q0 a\\b 1 3 s\nq1 Q0 \\N 2 2 s\nq1 Q0 =1+1 3 1 s\nq1 Q0 \\. 4 0 s\n")
    assert stored(Run.objects.get())["q1"] == ["a\\b", "\\N", "=1+1", "\\."]


def test_other_eval_sets_chunks_are_not_taken(bring, evalset, other_evalset, questions):
    make_chunks(other_evalset, "c1", "c2")
    bring(RUN)
    assert set(Chunk.objects.filter(evalset=evalset).values_list("external_id", flat=True)) == {"c1", "c2"}
    ours = set(Chunk.objects.filter(evalset=evalset).values_list("pk", flat=True))
    assert all(set(ranking.chunk_ids) <= ours for ranking in Ranking.objects.all())

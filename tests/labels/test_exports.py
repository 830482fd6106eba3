"""The files of a release: exact text, round trips through readers like those of other tools, the same bytes twice."""

from __future__ import annotations

import csv
import io
import json
import zipfile

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from evalsets.errors import BadInput
from evalsets.models import EvalSet
from labels.exports.formats import FORMATS, export_format
from labels.exports.trec import run_lines
from labels.services.publishing import publish_release
from pooling.formats import as_it_was, defused
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.labels.builders import judge, make_class


def text_of(release, name: str) -> str:
    return b"".join(FORMATS[name].stream(release)).decode()


def csv_of(release, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(release, name))))


@pytest.fixture
def released(evalset, alice, bob):
    """q1 and q10 with labels, a contested and a skipped pair, IDs that sort otherwise as numbers or by alphabet."""
    q1, q10, q2 = make_questions(evalset, "q1", "q10", "q2")
    c10, c2, big, tilde, c3, c4 = make_chunks(evalset, "c10", "c2", "B#1:x/y", "ä", "c3", "c4")
    judge(q1, c2, 3, by=alice)
    judge(q1, c10, 0, by=alice)
    judge(q1, big, 1, by=bob)
    judge(q10, tilde, 0, by=bob)
    judge(q10, c2, 2, by=alice)
    judge(q2, c3, 1, by=alice, note="=SUM(A1)")
    judge(q2, c3, 2, by=bob)
    judge(q2, c4, None, by=bob, note="Which plan?", reason="unclear-question")
    make_class(c2, c4)
    return publish_release(evalset=evalset, by=None).release


def test_qrels_to_the_byte(released):
    assert text_of(released, "qrels") == ("q1 0 B#1:x/y 1\nq1 0 c10 0\nq1 0 c2 3\nq10 0 c2 2\nq10 0 ä 0\n")


def test_propagated_qrels_give_each_member_the_grade_of_its_class(released):
    assert text_of(released, "qrels-propagated") == (
        "q1 0 B#1:x/y 1\nq1 0 c10 0\nq1 0 c2 3\nq1 0 c4 3\nq10 0 c2 2\nq10 0 c4 2\nq10 0 ä 0\n"
    )


def test_propagation_takes_the_highest_grade_of_a_class(evalset):
    [question] = make_questions(evalset, "q1")
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    judge(question, c1, 0)
    judge(question, c2, 2)
    make_class(c1, c2, c3)
    release = publish_release(evalset=evalset, by=None).release
    assert text_of(release, "qrels-propagated") == "q1 0 c1 2\nq1 0 c2 2\nq1 0 c3 2\n"


@pytest.mark.parametrize("name", ["qrels", "qrels-propagated"])
def test_ids_with_white_space_are_refused_before_the_first_byte_and_named(evalset, name):
    [question] = make_questions(evalset, "q1")
    for cid in ("User Guide", "no\N{NO-BREAK SPACE}break", "fine"):
        judge(question, make_chunks(evalset, cid)[0], 1)
    release = publish_release(evalset=evalset, by=None).release

    with pytest.raises(BadInput, match=r"2 of the IDs have white space.*'User Guide', 'no") as refused:
        FORMATS[name].stream(release)

    assert refused.value.report == {"ids_with_white_space": ["User Guide", "no\N{NO-BREAK SPACE}break"]}
    assert json.loads(text_of(release, "label-jsonl"))["grades"]["User Guide"] == 1


@pytest.mark.parametrize("name", ["qrels", "qrels-propagated"])
def test_a_question_without_labels_keeps_no_file_back_by_its_id(evalset, name):
    [question, *_] = make_questions(evalset, "q1", "two words", "#3")
    judge(question, make_chunks(evalset, "c1")[0], 1)
    release = publish_release(evalset=evalset, by=None).release
    assert text_of(release, name) == "q1 0 c1 1\n"


def test_label_json_has_exactly_these_keys(evalset):
    [question] = make_questions(
        evalset, "q1", slices=["refunds"], answerable=False, facts=[{"id": "f1", "text": "14 days"}]
    )
    c1, c2, c3, c4 = make_chunks(evalset, "c1", "c2", "c3", "c4")
    for chunk, grade in ((c1, 3), (c2, 1), (c3, 0), (c4, 2)):
        judge(question, chunk, grade)
    make_class(c1, c3, c4)
    EvalSet.objects.filter(pk=evalset.pk).update(threshold=2)
    evalset.refresh_from_db()
    release = publish_release(evalset=evalset, by=None).release

    [record] = json.loads(text_of(release, "label-json"))

    assert record == {
        "id": "q1",
        "question": "What is q1?",
        "relevant_doc_ids": ["c1", "c4"],
        "judged_ids": ["c1", "c2", "c3", "c4"],
        "grades": {"c1": 3, "c2": 1, "c3": 0, "c4": 2},
        "relevant_classes": [["c1", "c4"]],
        "pool": [],
        "threshold": 2,
        "scale": evalset.scale,
        "release": 1,
        "answerable": False,
        "slices": ["refunds"],
        "facts": [{"id": "f1", "text": "14 days"}],
    }


def test_json_and_jsonl_hold_the_same_records(released):
    records = json.loads(text_of(released, "label-json"))
    lines = [json.loads(line) for line in text_of(released, "label-jsonl").splitlines()]
    assert records == lines
    assert [record["id"] for record in records] == ["q1", "q10", "q2"]
    assert records[0]["relevant_classes"] == [["B#1:x/y"], ["c2"]]
    assert records[2]["judged_ids"] == []


def test_the_unjudged_rate_follows_from_the_label_file_alone(released):
    run = {"q1": ["c2", "c9"], "q10": ["ä", "c2"]}
    judged = {item["id"]: set(item["judged_ids"]) for item in json.loads(text_of(released, "label-json"))}
    unjudged = sum(chunk not in judged[question] for question, chunks in run.items() for chunk in chunks)
    assert unjudged == 1


def test_labels_of_models_are_marked_in_every_file(evalset):
    [question] = make_questions(evalset, "q1")
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    judge(question, c1, 2, by="model:judge")
    judge(question, c2, 1)
    judge(question, c2, 3, by="model:judge", details={"repetition": 2})
    judge(question, c2, 3, by="model:another")
    make_class(c1, c3)
    release = publish_release(evalset=evalset, by=None, judges=["judge"]).release

    [record] = json.loads(text_of(release, "label-json"))
    assert (record["judged_ids"], record["model_ids"], record["judges"]) == (["c2"], ["c1"], ["judge"])
    assert record["grades"] == {"c1": 2, "c2": 1}
    assert json.loads(text_of(release, "label-jsonl")) == record
    assert text_of(release, "qrels") == "q1 model c1 2\nq1 0 c2 1\n"
    assert text_of(release, "qrels-propagated") == "q1 model c1 2\nq1 0 c2 1\nq1 model c3 2\n"
    rows = csv_of(release, "csv")
    assert [(row["from_model"], row["settled_by"], row["judgments"]) for row in rows] == [
        ("yes", "model", "0"),
        ("no", "unanimous", "1"),
    ]
    table = pq.read_table(io.BytesIO(b"".join(FORMATS["parquet"].stream(release))))
    assert table["from_model"].to_pylist() == [True, False]
    assert table.schema.metadata[b"fairpool.judges"] == b'["judge"]'
    beir = zipfile.ZipFile(io.BytesIO(b"".join(FORMATS["beir"].stream(release))))
    assert beir.read("handbook-r1/from-models.tsv") == b"query-id\tcorpus-id\tscore\nq1\tc1\t2\n"
    judged = [(row["chunk"], row["assessor_kind"], row["repetition"]) for row in csv_of(release, "judgments")]
    assert judged == [("c1", "model", ""), ("c2", "file", ""), ("c2", "model", "2")]
    assert all("-with-models-" in item.file_name(release) for item in FORMATS.values())


def test_a_release_without_models_has_no_trace_of_them(evalset):
    [question] = make_questions(evalset, "q1")
    c1, c2 = make_chunks(evalset, "c1", "c2")
    judge(question, c1, 1)
    publish_release(evalset=evalset, by=None)
    before = evalset.releases.get()
    files = {name: b"".join(item.stream(before)) for name, item in FORMATS.items()}
    judge(question, c1, 3, by="model:judge")
    judge(question, c2, 3, by="model:judge")

    after, created = publish_release(evalset=evalset, by=None)

    assert (after, created) == (before, False)
    assert {name: b"".join(item.stream(after)) for name, item in FORMATS.items()} == files
    assert not any(b"model" in file.replace(b"from_model", b"") for file in files.values())


def test_label_csv(released):
    assert text_of(released, "csv").splitlines()[:4] == [
        "question,chunk,grade,relevant,settled_by,judgments,revision,class,from_model",
        "q1,B#1:x/y,1,yes,unanimous,1,1,,no",
        "q1,c10,0,no,unanimous,1,1,,no",
        "q1,c2,3,yes,unanimous,1,1,c2,no",
    ]


def test_raw_judgments_and_final_labels_are_two_files(evalset, alice, bob):
    [question] = make_questions(evalset, "q1")
    c1, c2 = make_chunks(evalset, "c1", "c2")
    judge(question, c1, 2, by=alice)
    judge(question, c1, 1, by=bob)
    judge(question, c2, 0, by=alice)
    evalset.settle_policy = "median"
    release = publish_release(evalset=evalset, by=None).release

    assert [(row["chunk"], row["assessor"], row["grade"]) for row in csv_of(release, "judgments")] == [
        ("c1", "alice", "2"),
        ("c1", "bob", "1"),
        ("c2", "alice", "0"),
    ]
    assert [(row["chunk"], row["grade"]) for row in csv_of(release, "csv")] == [("c1", "1"), ("c2", "0")]


def test_judgments_keep_what_was_replaced_and_stay_as_released(evalset, alice):
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    first = judge(question, chunk, 2, by=alice)
    second = judge(question, chunk, 1, by=alice, replaces=first)
    release = publish_release(evalset=evalset, by=None).release
    before = text_of(release, "judgments")
    judge(question, chunk, 0, by=alice, replaces=second)

    assert [(row["grade"], row["replaced"]) for row in csv_of(release, "judgments")] == [
        ("2", "yes"),
        ("1", "no"),
    ]
    assert text_of(release, "judgments") == before


def test_what_was_not_labelled_has_a_file_of_its_own_with_reasons(released):
    assert text_of(released, "cannot-judge").splitlines() == [
        "question,chunk,why,kind,reason,note,assessor,grades",
        "q2,c3,contested,,,,,2 1",
        "q2,c4,skipped-only,skip,unclear-question,Which plan?,bob,",
    ]


def test_formulas_are_defused_in_text_cells_and_numbers_left_alone(evalset, alice):
    [question] = make_questions(evalset, "-1+1")
    for cid in ("=1+1", "+41", "@SUM(A1)", "c'2"):
        judge(question, make_chunks(evalset, cid)[0], 0, by=alice, note="\t=1+1", seconds=-0.0)
    release = publish_release(evalset=evalset, by=None).release

    rows = csv_of(release, "judgments")
    assert {row["question"] for row in rows} == {"'-1+1"}
    assert [row["chunk"] for row in rows] == ["'+41", "'=1+1", "'@SUM(A1)", "c'2"]
    assert {row["note"] for row in rows} == {"'\t=1+1"}
    assert {row["grade"] for row in rows} == {"0"}
    assert text_of(release, "qrels").splitlines()[0] == "-1+1 0 +41 0"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_each_start_of_a_formula_is_defused(start):
    assert defused(f"{start}1") == f"'{start}1"
    assert defused(f"a{start}1") == f"a{start}1"


def test_class_file_has_three_columns_and_the_start_of_the_text(evalset):
    [question] = make_questions(evalset, "q1")
    c1, c2 = make_chunks(evalset, "c1", "c2")
    add_revision(c2, "Refunds\tare paid\nwithin 14 days. " * 5)
    judge(question, c1, 1)
    make_class(c2, c1)
    release = publish_release(evalset=evalset, by=None).release
    add_revision(c2, "Another text.")

    start = "Refunds are paid within 14 days. Refunds are paid within 14 days. "
    assert text_of(release, "classes") == f"c1\tc1\tText of c1.\nc1\tc2\t{start[:60]}\n"


def test_parquet_has_the_rows_of_the_csv(released):
    table = pq.read_table(io.BytesIO(b"".join(FORMATS["parquet"].stream(released))))
    rows = [
        {key: "" if value is None else str(value) for key, value in row.items()}
        for row in table.drop_columns(["relevant", "from_model"]).to_pylist()
    ]
    expected = [
        {key: value for key, value in row.items() if key not in ("relevant", "from_model")}
        for row in csv_of(released, "csv")
    ]
    assert rows == expected
    assert table.column("relevant").to_pylist() == [True, False, True, True, False]
    assert table.schema.metadata[b"fairpool.hash"].decode() == released.content_hash


def test_judgments_in_parquet_are_those_of_the_csv(released):
    table = pq.read_table(io.BytesIO(b"".join(FORMATS["judgments-parquet"].stream(released))))
    words = {None: "", True: "yes", False: "no"}
    rows = [
        {
            key: words[value] if value is None or isinstance(value, bool) else str(value)
            for key, value in row.items()
        }
        for row in table.to_pylist()
    ]
    assert rows == [
        {key: as_it_was(cell) for key, cell in row.items()} for row in csv_of(released, "judgments")
    ]
    assert table.schema.metadata[b"fairpool.release"] == b"1"


def test_beir_zip_as_its_loader_reads_it(evalset):
    dev, hold = make_questions(evalset, "q1", split="dev") + make_questions(evalset, "q2", split="holdout")
    c1, c2 = make_chunks(evalset, "c1", "c2")
    [ghost] = make_chunks(evalset, "ghost", text=False)
    judge(dev, c1, 0)
    judge(hold, c1, 2)
    judge(hold, ghost, 1)
    make_class(c1, c2)
    release = publish_release(evalset=evalset, by=None).release

    with zipfile.ZipFile(io.BytesIO(b"".join(FORMATS["beir"].stream(release)))) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name).decode() for name in archive.namelist()}

    assert sorted(files) == [
        f"handbook-r1/{name}"
        for name in ("corpus.jsonl", "qrels/dev.tsv", "qrels/holdout.tsv", "queries.jsonl")
    ]
    corpus = [json.loads(line) for line in files["handbook-r1/corpus.jsonl"].splitlines()]
    assert [(doc["_id"], doc["text"]) for doc in corpus] == [("c1", "Text of c1."), ("c2", "Text of c2.")]
    queries = {q["_id"]: q["text"] for q in map(json.loads, files["handbook-r1/queries.jsonl"].splitlines())}
    assert queries == {"q1": "What is q1?", "q2": "What is q2?"}
    assert read_beir_qrels(files["handbook-r1/qrels/holdout.tsv"]) == {"q2": {"c1": 2, "ghost": 1}}
    assert read_beir_qrels(files["handbook-r1/qrels/dev.tsv"]) == {"q1": {"c1": 0}}


def read_beir_qrels(text: str) -> dict[str, dict[str, int]]:
    """As BEIR's loader does: skip the header, three tab-separated fields."""
    qrels: dict[str, dict[str, int]] = {}
    reader = csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_MINIMAL)
    next(reader)
    for question, chunk, grade in reader:
        qrels.setdefault(question, {})[chunk] = int(grade)
    return qrels


def read_trec_qrels(text: str) -> dict[str, dict[str, int]]:
    """As ir_datasets and ranx do: four fields, split at white space."""
    qrels: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        question, _, chunk, grade = line.rstrip().split()
        qrels.setdefault(question, {})[chunk] = int(grade)
    return qrels


def test_every_reader_finds_the_same_labels(released):
    from_json = {
        record["id"]: record["grades"]
        for record in json.loads(text_of(released, "label-json"))
        if record["grades"]
    }
    from_csv: dict[str, dict[str, int]] = {}
    for row in csv_of(released, "csv"):
        from_csv.setdefault(row["question"], {})[row["chunk"]] = int(row["grade"])

    assert read_trec_qrels(text_of(released, "qrels")) == from_json == from_csv


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_release_gives_the_same_bytes_whatever_happens_later(released, name, alice):
    before = b"".join(FORMATS[name].stream(released))
    question, chunk = released.evalset.questions.first(), released.evalset.chunks.first()
    judge(question, chunk, 3, by=alice)
    released.evalset.questions.update(text="Changed since.")
    add_revision(chunk, "Changed since.")
    EvalSet.objects.update(threshold=3)

    assert b"".join(FORMATS[name].stream(released)) == before


def test_many_labels_come_in_several_blocks_in_order(evalset):
    questions = make_questions(evalset, *(f"q{n:03}" for n in range(60)))
    chunks = make_chunks(evalset, *(f"{'c' * 300}{n}" for n in range(8)))
    for question in questions:
        for chunk in chunks:
            judge(question, chunk, 1)
    release = publish_release(evalset=evalset, by=None).release

    blocks = list(FORMATS["qrels"].stream(release))

    assert len(blocks) > 1
    lines = b"".join(blocks).splitlines()
    assert len(lines) == 480
    assert lines == sorted(lines)


def test_a_run_is_written_with_strictly_falling_scores(evalset):
    make_questions(evalset, "q1", "q2", "q3")
    run = make_run(evalset, "bm25 (tuned)", {"q1": ["b", "a", "c"], "q2": []})
    run.rankings.update(scores=None)

    assert b"".join(run_lines(run)).decode() == (
        "q1 Q0 b 1 3 bm25_(tuned)\nq1 Q0 a 2 2 bm25_(tuned)\nq1 Q0 c 3 1 bm25_(tuned)\n"
    )


def test_a_run_whose_ids_have_white_space_is_refused(evalset):
    make_questions(evalset, "q1")
    run = make_run(evalset, "run", {"q1": ["User Guide"]})
    with pytest.raises(BadInput, match="User Guide"):
        run_lines(run)


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(BadInput, match="label-json"):
        export_format("xlsx")


def test_the_command_writes_a_file_whole_or_not_at_all(released, tmp_path, capsys):
    target = tmp_path / "labels.qrels"
    call_command(
        "export", "handbook", "--release", "1", "--format", "qrels", "--output", str(target), "--json"
    )

    assert target.read_text() == text_of(released, "qrels")
    document = json.loads(capsys.readouterr().out)
    assert (document["release"], document["hash"], document["bytes"]) == (
        1,
        released.content_hash,
        target.stat().st_size,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["labels.qrels"]


def test_the_command_refuses_before_it_touches_the_file(evalset, tmp_path):
    [question] = make_questions(evalset, "q1")
    judge(question, make_chunks(evalset, "User Guide")[0], 1)
    publish_release(evalset=evalset, by=None)
    target = tmp_path / "labels.qrels"
    target.write_text("what was there")

    with pytest.raises(CommandError, match="User Guide") as refused:
        call_command("export", "handbook", "--output", str(target))

    assert refused.value.returncode == 3
    assert target.read_text() == "what was there"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--release", "7"], "has no release 7. Known: 1."),
        (["--run", "nothing"], "has no run 'nothing'. Known: none yet."),
        (["--output", "/nowhere/at/all"], "Cannot write to /nowhere/at/all: No such file or directory."),
    ],
)
def test_the_command_says_what_is_known(released, tmp_path, arguments, message):
    if "--output" not in arguments:
        arguments = [*arguments, "--output", str(tmp_path / "out")]
    with pytest.raises(CommandError, match=message) as refused:
        call_command("export", "handbook", *arguments)
    assert refused.value.returncode == 3

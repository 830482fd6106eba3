"""The import commands: what they print, what they take, how they end."""

import gzip
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evalsets.models import EvalSet, Question
from judging.models import Judgment
from pooling.models import Run


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def document(*arguments: str) -> dict:
    return json.loads(command(*arguments, "--json"))


def refused(*arguments: str) -> tuple[str, dict]:
    """The message and the document of a command that ends with exit status 3."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(*arguments, "--json", stdout=out, stderr=io.StringIO())
    assert caught.value.returncode == 3
    return str(caught.value), json.loads(out.getvalue())


@pytest.fixture
def handbook(db) -> EvalSet:
    command("create_evalset", "handbook", "--name", "Handbook")
    return EvalSet.objects.get(slug="handbook")


def test_the_whole_way_in(handbook, write, alice_is_assessor):
    questions = document("import_questions", "handbook", write("q.tsv", "q1\tHow long?\nq2\tWho?\n"))
    assert (questions["format"], questions["read"], questions["new"], questions["written"]) == (
        "tsv",
        2,
        2,
        True,
    )
    chunks = document("import_chunks", "handbook", write("c.jsonl", '{"_id": "c1", "text": "14 days"}\n'))
    assert (chunks["format"], chunks["new"], chunks["revised"]) == ("beir", 1, 0)
    run = document(
        *(
            "import_run",
            "handbook",
            write("r.txt", "q1 Q0 c1 1 2 s\nq1 Q0 c2 2 1 s\n"),
            "--system",
            "BM25",
            "--k",
            "2",
        ),
        *("--stage", "candidates", "--date", "2026-02-03", "--missing", "empty", "--system-version", "3"),
        *("--config", write("config.json", '{"index": "i"}')),
    )
    assert (run["format"], run["read"], run["new"], run["system"], run["run"]) == (
        "trec",
        2,
        2,
        "BM25",
        "BM25",
    )
    stored = Run.objects.get()
    assert (stored.stage, stored.k, stored.config, stored.version) == ("candidates", 2, {"index": "i"}, "3")
    labels = document(
        "import_qrels", "handbook", write("l.txt", "q1 0 c1 0\nq1 0 c2 -1\n"), "--negative", "skip"
    )
    assert (labels["new"], labels["negative_skipped"]) == (1, 1)
    answers = '{"question_id": "q1", "chunk_id": "c2", "grade": 3}'
    verdicts = document("import_verdicts", "handbook", write("a.jsonl", answers), "--assessor", "alice")
    assert verdicts["new"] == 1
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [0, 3]
    for again in ("import_questions", "q.tsv"), ("import_chunks", "c.jsonl"):
        repeated = document(
            again[0], "handbook", write(again[1], Path(write_path(write, again[1])).read_text())
        )
        assert (repeated["new"], repeated["written"]) == (0, False)


def write_path(write, name: str) -> str:
    texts = {"q.tsv": "q1\tHow long?\nq2\tWho?\n", "c.jsonl": '{"_id": "c1", "text": "14 days"}\n'}
    return write(name, texts[name])


@pytest.fixture
def alice_is_assessor(handbook):
    command("create_user", "alice", "--assessor-of", "handbook", "--generate-password")


def test_check_writes_nothing(handbook, write):
    report = document("import_questions", "handbook", write("q.tsv", "q1\tHow long?\n"), "--check")
    assert (report["new"], report["written"], report["check"]) == (1, False, True)
    assert not Question.objects.exists()


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_faults_end_with_status_three_and_the_report(handbook, write, check):
    message, report = refused("import_questions", "handbook", write("q.tsv", "q1\ta\nno tab\n"), *check)
    assert report["faults"] == [
        {
            "kind": "columns",
            "meaning": "A line has the wrong number of columns.",
            "count": 1,
            "examples": [
                {
                    "line": 2,
                    "field": "1 column",
                    "value": "no tab",
                    "expected": "id, tab, text; a text with line feeds inside needs JSONL",
                }
            ],
        }
    ]
    assert report["written"] is False
    assert "line 2: 1 column 'no tab'" in message
    assert not Question.objects.exists()


def test_people_get_a_text(handbook, write):
    said = command("import_questions", "handbook", write("q.tsv", "q1\ta\nq1\ta\n"))
    assert "q.tsv was imported. 2 read: 1 new, 0 unchanged, 0 revised." in said
    assert "Taken for questions in format tsv" in said
    assert "Warning: repeated, once." in said


def test_the_format_can_be_named(handbook, write):
    text = "id,text\tx\n"
    assert document("import_questions", "handbook", write("q", text), "--format", "tsv")["format"] == "tsv"
    _message, report = refused("import_questions", "handbook", write("q", text), "--format", "parquet")
    assert report["faults"][0]["kind"] == "unknown-format"


def test_compressed_files_need_nothing_said(handbook, tmp_path):
    path = tmp_path / "questions"
    path.write_bytes(gzip.compress(b"q1\ta\n"))
    assert document("import_questions", "handbook", str(path))["packing"] == "gzip"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import_questions", "nowhere", "x"], "no eval set 'nowhere'. Known: handbook"),
        (["import_questions", "handbook", "x", "--by", "nobody"], "no user 'nobody'"),
        (["import_run", "handbook", "x", "--config", "/nowhere"], "cannot be read"),
        (["import_run", "handbook", "x", "--k", "0"], "k is 0"),
        (["import_verdicts", "handbook", "x", "--assessor", "nobody"], "no user 'nobody'"),
        (["create_evalset", "handbook", "--name", "Again"], "slug: "),
        (["create_evalset", "Hand Book", "--name", "x"], "slug: "),
        (["create_evalset", "new", "--name", "x", "--threshold", "7"], "threshold: "),
        (["create_evalset", "new", "--name", "x", "--scale", "/nowhere"], "cannot be read"),
        (["create_evalset", "new", "--name", "x", "--lead", "nobody"], "no user 'nobody'"),
    ],
)
def test_what_is_said_of_arguments_that_make_no_sense(handbook, arguments, message):
    said, report = refused(*arguments)
    assert message in said
    assert report == {"error": said}
    assert EvalSet.objects.count() == 1


def test_by_is_recorded(handbook, write):
    command("create_user", "carol", "--lead-of", "handbook", "--generate-password")
    command("import_questions", "handbook", write("q.tsv", "q1\ta\n"), "--by", "carol")
    assert handbook.events.get(verb="questions-imported").by.username == "carol"


def test_create_evalset_with_a_scale_of_its_own(db, write):
    scale = [{"grade": n, "name": f"n{n}", "definition": f"d{n}"} for n in range(3)]
    made = document(
        *("create_evalset", "own", "--name", "Own"),
        *("--scale", write("scale.json", json.dumps(scale)), "--threshold", "2"),
    )
    assert (made["scale"], made["threshold"]) == (scale, 2)
    evalset = EvalSet.objects.get(slug="own")
    assert (evalset.scale, evalset.threshold) == (scale, 2)
    assert "  1 n1 (not relevant): d1" in command(
        "create_evalset", "o2", "--name", "O", "--scale", write("s", json.dumps(scale)), "--threshold", "2"
    )


def test_create_evalset_with_a_lead(db):
    command("create_user", "carol", "--generate-password")
    command("create_evalset", "hers", "--name", "Hers", "--lead", "carol")
    assert EvalSet.objects.get().members.get().role == "lead"


@pytest.mark.parametrize(
    "name",
    ["import_questions", "import_chunks", "import_run", "import_qrels", "import_verdicts", "create_evalset"],
)
def test_help_is_whole(name, capsys):
    with pytest.raises(SystemExit):
        call_command(name, "--help")
    said = capsys.readouterr().out
    assert "SLUG" in said
    assert "--json" in said
    if name.startswith("import"):
        assert "--check" in said
        assert "--format" in said
        assert "Formats: " in said

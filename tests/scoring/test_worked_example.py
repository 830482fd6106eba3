"""The worked example from files to numbers: imported, released, scored by command and seen on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.scoring.test_measures import LABELS, RUN_A, RUN_B, WORKED
from tests.scoring.test_scoring_pages import RULES, page, text_of

pytestmark = pytest.mark.django_db
MEASURES = ["Recall@3", "RR@3", "nDCG@3"]


@pytest.fixture
def released(evalset, tmp_path: Path) -> None:
    chunks = sorted({chunk for known in LABELS.values() for chunk in known})
    files = {
        "questions.tsv": "".join(f"{question}\tAbout {question}?\n" for question in LABELS),
        "chunks.tsv": "".join(f"{chunk}\tOf {chunk}.\n" for chunk in chunks),
        "qrels.txt": "".join(
            f"{question} 0 {chunk} {grade}\n"
            for question, known in LABELS.items()
            for chunk, grade in known.items()
        ),
    }
    for name, run in (("A", RUN_A), ("B", RUN_B)):
        files[f"{name}.trec"] = "".join(
            f"{question} Q0 {chunk} {rank} {10 - rank} {name}\n"
            for question, ranking in run.items()
            for rank, chunk in enumerate(ranking, start=1)
        )
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    call_command("import_questions", "handbook", tmp_path / "questions.tsv", "--json")
    call_command("import_chunks", "handbook", tmp_path / "chunks.tsv", "--json")
    for name in ("A", "B"):
        call_command("import_run", "handbook", tmp_path / f"{name}.trec", "--json")
    call_command("import_qrels", "handbook", tmp_path / "qrels.txt", "--json")
    call_command("publish_release", "handbook", "--json")


def test_from_files_to_the_command_and_the_page(released, carol, client_for, capsys) -> None:
    capsys.readouterr()
    runs = ["--run", "A", "--run", "B"]
    asked = [part for measure in MEASURES for part in ("--measure", measure)]
    call_command("score", "handbook", "--release", "1", *runs, *asked, "--per-question", "--json")
    document = json.loads(capsys.readouterr().out)
    seen = text_of(
        client_for(carol).post(page("score-new"), {**RULES, "runs_chosen": ["A", "B"]}, follow=True)
    )

    scored = {run["run"]: run for run in document["runs"]}
    for row in WORKED.strip().splitlines():
        run, question, *expected = row.split()
        by_question = {item["id"]: item["measures"] for item in scored[run]["questions"]}
        numbers = scored[run]["measures"] if question == "mean" else by_question[question]
        assert [f"{numbers[measure]:.4f}" for measure in MEASURES] == expected
        if question == "mean":
            assert " 0.0 % unjudged ".join([*expected, ""]) in f"{seen} "
    assert document["runs"][0]["unjudged"] == {"3": 0.0}

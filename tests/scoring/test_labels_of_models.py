"""Scores on a release that lets an outside judge in: its labels count, the rates do not, and everything says so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse

from labels.services.publishing import publish_release
from scoring.classes import Labels, Rankings, build_truth, groups
from scoring.matching import match
from scoring.policies import apply_policy, count_unjudged, unjudged_by_depth
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge


def test_an_entry_with_a_models_label_is_unjudged_and_graded():
    labels = Labels(np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([1, 3, 0]))
    truth = build_truth(labels, questions=1, by_model=np.array([False, True, False]))
    graded = match(truth, Rankings(np.array([0]), np.array([0, 4]), np.array([2, 1, 9, 3])))
    assert graded.grade.tolist() == [3, 1, -1, 0]
    assert graded.unjudged.tolist() == [True, False, True, False]
    assert count_unjudged(graded, None).rate == 0.5
    assert unjudged_by_depth(graded, 4).tolist() == [1.0, 0.5, pytest.approx(2 / 3), 0.5]
    condensed = apply_policy(graded, "judged-only", None)
    assert condensed.grade.tolist() == [3, 1, 0]
    with pytest.raises(ValueError, match="2 returned chunks"):
        apply_policy(graded, "strict", None)


def test_a_unit_with_a_persons_label_is_judged():
    labels = Labels(np.array([0, 0]), np.array([1, 2]), np.array([1, 3]))
    truth = build_truth(
        labels, questions=1, documents=groups([1, 2], [7, 7]), by_model=np.array([False, True])
    )
    assert (truth.grade.tolist(), truth.by_model.tolist()) == ([3], [False])


@pytest.fixture
def scored(evalset, alice):
    """Two releases: in the second a model labels c2 of q1, which new returns first."""
    [q1] = make_questions(evalset, "q1")
    c1, c2, _ = make_chunks(evalset, "c1", "c2", "c3")
    make_run(evalset, "old", {"q1": ["c1", "c3"]})
    make_run(evalset, "new", {"q1": ["c2", "c1"]})
    judge(q1, c1, 1, by=alice)
    publish_release(evalset=evalset, by=None)
    judge(q1, c2, 3, by="model:gpt")
    publish_release(evalset=evalset, by=None, judges=["gpt"])
    return evalset


def document(capsys, *arguments: str) -> dict:
    call_command(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def score(capsys, release: int) -> dict:
    asked = ("--run", "new", "--measure", "P@1", "--measure", "Judged@2")
    return document(capsys, "score", "handbook", "--release", str(release), *asked)


def test_its_label_counts_and_is_no_judgment(scored, capsys):
    without, with_model = score(capsys, 1), score(capsys, 2)
    assert (without["from_models"], without["judges"]) == (0, [])
    assert (with_model["from_models"], with_model["judges"]) == (1, ["gpt"])
    first, second = without["runs"][0], with_model["runs"][0]
    assert (first["measures"]["P@1"], second["measures"]["P@1"]) == (0.0, 1.0)
    assert first["unjudged"] == second["unjudged"] == {"1": 1.0, "2": 0.5}
    assert first["measures"]["Judged@2"] == second["measures"]["Judged@2"] == 0.5


SAID = "1 of the release's labels came from a model (gpt): no person has judged these pairs."


def test_commands_say_it(scored, capsys):
    call_command("score", "handbook", "--release", "2", "--run", "new", "--measure", "P@1")
    assert SAID in capsys.readouterr().out
    call_command("score", "handbook", "--release", "1", "--run", "new", "--measure", "P@1")
    assert "model" not in capsys.readouterr().out


@pytest.mark.parametrize("release", [1, 2])
def test_a_comparison_is_read_as_if_nobody_had_judged_them(scored, carol, client_for, capsys, release):
    asked = ("old", "new", "--release", str(release), "--measure", "P@1", "--json")
    with pytest.raises(SystemExit):
        call_command("compare", "handbook", *asked)
    told = json.loads(capsys.readouterr().out)
    assert (told["reading"], told["b"]["unjudged"]) == ("uninterpretable", 1.0)
    assert (SAID in told["sentence"]) == (release == 2)
    client = client_for(carol)
    made = scored.comparisons.get()
    for page in (made.get_absolute_url(), made.raw_b.get_absolute_url()):
        html = client.get(page).content.decode()
        assert ("1 of the 2 labels of release 2 came from a model" in html) == (release == 2)
    rows = client.get(reverse("scoring:score-download", args=["handbook", made.raw_b.pk, "csv"]))
    header, row = (line.split(",") for line in rows.content.decode().splitlines())
    assert (header[-1], row[-1]) == ("labels of the release from models", str(release - 1))


def test_lists_and_side_by_side_say_it(scored, carol, client_for, capsys):
    with pytest.raises(SystemExit):
        call_command("compare", "handbook", "old", "new", "--release", "2", "--measure", "P@1")
    assert SAID in capsys.readouterr().out
    client, made = client_for(carol), scored.comparisons.get()
    question = scored.questions.get()
    address = reverse("scoring:comparison-question", args=["handbook", made.pk, question.pk])
    assert "unjudged, the label is a model's" in client.get(address).content.decode()
    for name, said in (
        ("scoring:score-list", "came from a model"),
        ("scoring:unjudged", "came from a model"),
        ("scoring:comparison-list", "with models' labels"),
    ):
        assert said in client.get(reverse(name, args=["handbook"])).content.decode(), name

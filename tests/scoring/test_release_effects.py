"""What a change of labels did to scores: the difference of two releases, on its page and on the command line."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from labels.services.publishing import publish_release
from scoring.effects import effects_on_scores
from scoring.services.scoring import resolve, score_runs
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge


@pytest.fixture
def two_releases(evalset):
    """The new run's own find c2 is unjudged in release 1 and relevant in release 2; the other run is scored once."""
    [question] = make_questions(evalset, "q1")
    c1, c2, _ = make_chunks(evalset, "c1", "c2", "c3")
    judge(question, c1, 2)
    new = make_run(evalset, "new", {"q1": ["c2", "c1"]})
    once = make_run(evalset, "once", {"q1": ["c1"]})
    before = publish_release(evalset=evalset, by=None).release
    score_runs(release=before, runs=[new, once], asked=resolve(before, measures=["RR@2", "P@1"]))
    judge(question, c2, 1)
    after = publish_release(evalset=evalset, by=None).release
    score_runs(release=after, runs=[new], asked=resolve(after, measures=["RR@2"]))
    return before, after


def test_scores_on_both_releases_stand_side_by_side(two_releases):
    effects = effects_on_scores(*two_releases)
    [effect] = effects.scored
    [change] = effect.measures
    assert (effect.run.name, change.measure, change.before, change.after) == ("new", "RR@2", 0.5, 1.0)
    assert (change.unjudged_before, change.unjudged_after, change.change) == (0.5, 0.0, 0.5)
    assert [run.name for run in effects.not_scored] == ["once"]


def test_the_page_and_the_difference_that_takes_from_it(two_releases, victor, client_for):
    client = client_for(victor)
    page = client.get("/e/handbook/scores/effects/1/2/").content.decode()
    assert 'id="effects"' in page
    assert "+0.5000" in page
    assert "50.0 %" in page
    assert "Scored on release 1 alone" in page
    difference = client.get("/e/handbook/releases/difference/", {"from": "1", "to": "2"}).content.decode()
    assert 'hx-get="/e/handbook/scores/effects/1/2/"' in difference
    assert client.get("/e/handbook/scores/effects/1/7/").status_code == 404


def test_the_command_tells_the_effect(two_releases, capsys):
    call_command("diff_releases", "handbook", "1", "2", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["scores"] == [
        {
            "run": "new",
            "policy": "raw",
            "unit": "chunk",
            "split": None,
            "measures": {"RR@2": {"from": 0.5, "to": 1.0, "unjudged": {"from": 0.5, "to": 0.0}}},
        }
    ]
    assert document["not_scored_on_both"] == ["once"]
    call_command("diff_releases", "handbook", "1", "2")
    assert "new (raw): RR@2 0.5000 to 1.0000, unjudged 50.0% to 0.0%" in capsys.readouterr().out

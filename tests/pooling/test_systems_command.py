"""The command `systems`: which are related."""

from __future__ import annotations

import pytest

from tests.commands import call, call_json
from tests.conftest import make_questions, make_run

pytestmark = pytest.mark.django_db


def test_systems_are_listed_and_marked_as_related(evalset, carol, capsys):
    make_questions(evalset, "q1")
    make_run(evalset, "dense", {"q1": ["c1"]})
    make_run(evalset, "bm25", {"q1": ["c1"]})
    arguments = ("systems", "handbook", "dense", "--family", "neural", "--by", "carol")
    status, document = call_json(*arguments, capsys=capsys)
    assert status == 0
    assert document["systems"] == [
        {"system": "bm25", "family": "", "runs": 1, "latest_run": "bm25"},
        {"system": "dense", "family": "neural", "runs": 1, "latest_run": "dense"},
    ]
    assert evalset.events.get().by == carol
    _, out = call("systems", "handbook", "dense", "--family", "", capsys=capsys)
    assert out == "bm25: latest run bm25, of 1\ndense: latest run dense, of 1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sparse", "--family", "x"], "has no system 'sparse'. Known: none yet."),
        (["sparse"], "both SYSTEM and --family"),
        (["--family", "x"], "both SYSTEM and --family"),
    ],
)
def test_systems_say_what_is_wrong(evalset, capsys, arguments, message):
    status, document = call_json("systems", "handbook", *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]


def test_a_family_has_a_name_that_fits(evalset, carol, client_for, capsys):
    make_questions(evalset, "q1")
    system = make_run(evalset, "bm25", {"q1": ["c1"]}).system
    status, document = call_json("systems", "handbook", "bm25", "--family", "x" * 201, capsys=capsys)
    assert (status, "at most 200 characters" in document["error"]) == (3, True)
    address = f"/e/handbook/systems/{system.pk}/family/"
    page = client_for(carol).post(address, {"family": "x" * 201}, follow=True)
    assert "at most 200 characters" in page.content.decode()

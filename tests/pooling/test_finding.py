"""Runs by the names that people give them."""

from __future__ import annotations

import datetime

import pytest

from evalsets.errors import BadInput
from pooling.services.finding import find_run, find_runs
from tests.conftest import make_questions, make_run


@pytest.fixture
def runs(evalset):
    """Run "bm25" of system "dense" and runs "bm25-2" and "bm25-3" of system "bm25"; the later date comes first."""
    make_questions(evalset, "q1")
    return [
        make_run(evalset, name, {"q1": cids}, system=system, date=datetime.date(2026, 1, day))
        for name, cids, system, day in (
            ("bm25", ["c1"], "dense", 1),
            ("bm25-3", ["c2"], "bm25", 9),
            ("bm25-2", ["c3"], "bm25", 2),
        )
    ]


def test_a_runs_name_goes_before_a_systems_and_of_a_system_it_is_the_latest(evalset, runs) -> None:
    dense, latest, _ = runs
    assert find_run(evalset, "bm25") == dense
    dense.name = "dense-1"
    dense.save()
    assert find_run(evalset, "bm25") == latest
    assert find_run(evalset, "dense") == dense


def test_many_names_cost_two_statements(evalset, runs, django_assert_num_queries) -> None:
    dense, _, older = runs
    with django_assert_num_queries(2):
        assert find_runs(evalset, ["bm25-2", "dense", "bm25", "bm25-2"]) == [older, dense, dense, older]
    with pytest.raises(BadInput, match=r"handbook has no run 'none'. Known: bm25, bm25-2, bm25-3\."):
        find_runs(evalset, ["bm25", "none"])


def test_another_eval_sets_runs_are_none(other_evalset, runs) -> None:
    with pytest.raises(BadInput, match="has no run 'bm25'"):
        find_run(other_evalset, "bm25")

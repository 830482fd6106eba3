"""The plan by which Alice and Bob judge: whole, near the truth, in working hours, the same each time."""

import datetime
import itertools
import statistics
from dataclasses import replace

import pytest

from demo import story
from demo.assessors import ALICE, BOB, CANNOT_JUDGE, CHANGED_MIND, NOTES, SKIPPED, Act, Pair, judgments
from demo.ground_truth import DEMO, read_jsonl, read_relevance

TRUTH = read_relevance()
TODAY = datetime.date(2026, 3, 2)  # a Monday


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    words = {chunk["id"]: len(chunk["text"].split()) for chunk in read_jsonl(DEMO / "chunks.jsonl")}
    return [
        Pair(question=question, chunk=chunk, words=words[chunk], wanted=_wanted(number, question, chunk))
        for number, (question, chunk) in enumerate(sorted(story.pool_labels()))
    ]


def _wanted(number: int, question: str, chunk: str) -> int:
    return 2 if number % 8 == 0 and (question, chunk) not in SKIPPED else 1


@pytest.fixture(scope="module")
def acts(pairs) -> list[Act]:
    return judgments(pairs, TRUTH, TODAY)


def standing(acts: list[Act]) -> dict[tuple[str, str], dict[str, Act]]:
    """The last act of each assessor on each pair."""
    last: dict[tuple[str, str], dict[str, Act]] = {}
    for act in acts:
        last.setdefault((act.question, act.chunk), {})[act.assessor] = act
    return last


def test_every_pair_gets_as_many_as_it_wants(pairs, acts):
    last = standing(acts)
    for pair in pairs:
        counted = [act for act in last[pair.question, pair.chunk].values() if act.kind != "skip"]
        assert len(counted) == pair.wanted


def test_one_mind_grades_one_question(pairs, acts):
    single = {(pair.question, pair.chunk) for pair in pairs if pair.wanted == 1} - SKIPPED.keys()
    by_question: dict[str, set[str]] = {}
    for act in acts:
        if (act.question, act.chunk) in single:
            by_question.setdefault(act.question, set()).add(act.assessor)
    assert all(len(found) == 1 for found in by_question.values())


def test_most_grades_are_true_and_some_are_not(acts):
    labels = story.pool_labels()
    graded = [act for act in acts if act.kind == "grade" and act.grade is not None]
    slips = [act for act in graded if act.grade != labels[act.question, act.chunk]]
    assert 0.01 < len(slips) / len(graded) < 0.06
    assert all(abs((act.grade or 0) - labels[act.question, act.chunk]) == 1 for act in slips)


def test_they_disagree_a_little(acts):
    both = [found for found in standing(acts).values() if len(found) == 2 and not _skipped(found)]
    disagreements = [found for found in both if found[ALICE].grade != found[BOB].grade]
    assert len(both) > 80
    assert 3 <= len(disagreements) <= 15


def _skipped(found: dict[str, Act]) -> bool:
    return any(act.kind == "skip" for act in found.values())


@pytest.mark.parametrize("written", [NOTES, SKIPPED, CANNOT_JUDGE, CHANGED_MIND])
def test_what_is_written_by_hand_names_pairs_of_the_pool(written):
    assert written.keys() <= story.pool_labels().keys()


def test_a_pair_that_wants_both_is_not_skipped(pairs):
    both = [replace(pair, wanted=2) for pair in pairs]
    counted = [act for act in judgments(both, TRUTH, TODAY) if not act.replaces_earlier]
    assert all(act.kind != "skip" for act in counted)
    assert len(counted) == 2 * len(pairs)


def test_they_note_skip_and_change_their_minds(acts):
    assert {(act.question, act.chunk) for act in acts if act.kind == "skip"} == SKIPPED.keys()
    assert {(act.question, act.chunk) for act in acts if act.kind == "cannot-judge"} == CANNOT_JUDGE.keys()
    assert {(act.question, act.chunk) for act in acts if act.replaces_earlier} == CHANGED_MIND.keys()
    assert {act.note for act in acts} >= set(NOTES.values())


def test_times_are_in_working_hours_of_past_days(acts):
    times = [act.at for act in acts]
    assert times == sorted(times)
    assert times[-1].date() <= datetime.date(2026, 2, 26)
    assert len({time.date() for time in times}) >= 5
    assert all(time.weekday() < 5 and 8 <= time.hour < 19 for time in times)
    for who in (ALICE, BOB):
        own = [act for act in acts if act.assessor == who]
        for earlier, later in itertools.pairwise(own):
            assert (later.at - earlier.at).total_seconds() >= later.seconds


def test_the_pace_is_a_persons(acts):
    seconds = [act.seconds for act in acts]
    assert 8 < statistics.median(seconds) < 20
    assert min(seconds) > 2
    assert max(seconds) <= 240


def test_the_same_each_time(pairs, acts):
    assert judgments(pairs, TRUTH, TODAY) == acts

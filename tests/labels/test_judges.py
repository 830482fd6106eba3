"""Outside judges beside people: figures worked out by hand, the pages and the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from django.core.management import call_command

from labels.judge_grades import graded_pairs
from labels.judge_measures import Flips, bias_of, flips_of, relevance_of
from labels.judge_report import report_on, summarise
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import an_assessor, judge

NAN = math.nan


def test_bias_by_hand():
    people = np.array([0, 1, 2, 3, NAN, 1])
    gpt = np.array([1, 1, 3, 0, 2, NAN])
    bias = bias_of(gpt, people)
    assert (bias.pairs, bias.mean, bias.too_high, bias.too_low, bias.right) == (4, -0.25, 0.5, 0.25, 0.25)
    assert bias_of(gpt, np.full(6, NAN)) == (0, None, None, None)


def test_flips_by_hand():
    grades = np.array([[0, 0, 0], [0, 1, NAN], [3, 1, 2], [2, NAN, NAN], [0, 3, 0], [NAN, NAN, NAN]])
    flips = flips_of(grades, threshold=1)
    assert flips == Flips(pairs=4, flipped=3, across_threshold=2, by_size={1: 1, 2: 1, 3: 1})
    assert (flips.rate, flips.mean_size) == (0.75, 2.0)
    assert flips_of(grades, threshold=2).across_threshold == 2
    once = flips_of(np.array([[1.0], [2.0]]), threshold=1)
    assert (once.pairs, once.rate, once.mean_size) == (0, None, None)


def test_relevance_by_hand():
    found = relevance_of(np.array([1, 2, 0, 0, 3, NAN]), np.array([2, 0, 1, 0, NAN, 3]), threshold=1)
    assert (found.both, found.judge_only, found.people_only) == (1, 1, 1)
    assert (found.precision, found.recall) == (0.5, 0.5)
    nothing = relevance_of(np.array([0.0]), np.array([0.0]), threshold=1)
    assert (nothing.precision, nothing.recall) == (None, None)


@pytest.fixture
def judged(evalset, alice, bob):
    """Five pairs with labels 0 1 2 3 0 and a contested one. gpt in two repetitions, llama in one:

    |        | q1 c1 | q1 c2 | q1 c3 | q2 c1 | q2 c2 | q2 c3 contested | q3 c1 unjudged |
    | people |   0   |   1   |   2   |   3   |   0   |        -        |       -        |
    | gpt 1  |   1   |   1   |   2   |   2   |       |        3        |       2        |
    | gpt 2  |   2   |   1   |   2   |   3   |       |                 |       1        |
    | llama  |   0   |   1   |       |       |       |                 |                |
    """
    q1, q2 = make_questions(evalset, "q1", "q2", slices=["refunds"])
    [q3] = make_questions(evalset, "q3", slices=["other"])
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    for question, chunk, grade in ((q1, c1, 0), (q1, c2, 1), (q1, c3, 2), (q2, c1, 3), (q2, c2, 0)):
        judge(question, chunk, grade, by=alice)
    judge(q2, c3, 0, by=alice)
    judge(q2, c3, 3, by=bob)
    first = {(q1, c1): 1, (q1, c2): 1, (q1, c3): 2, (q2, c1): 2, (q2, c3): 3, (q3, c1): 2}
    second = {(q1, c1): 2, (q1, c2): 1, (q1, c3): 2, (q2, c1): 3, (q3, c1): 1}
    for repetition, grades in ((1, first), (2, second)):
        for (question, chunk), grade in grades.items():
            judge(question, chunk, grade, by="model:gpt", details={"repetition": repetition})
    judge(q1, c1, 0, by="model:llama")
    judge(q1, c2, 1, by="model:llama")
    return evalset


def report(evalset, name: str):
    graded = graded_pairs(evalset)
    said = next(item for item in graded.judges if item.judge.name == name)
    slices = dict(evalset.questions.values_list("pk", "slices"))
    return report_on(graded, said, grades=evalset.grades, threshold=evalset.threshold, slices=slices)


def test_a_judge_by_hand(judged):
    gpt = report(judged, "gpt")
    # The medians, rounded down: 1 1 2 2 against 0 1 2 3, and 3 and 1 beside no label.
    assert (gpt.summary.repetitions, gpt.summary.graded) == ([1, 2], 6)
    assert gpt.summary.bias == (4, 0.0, 0.25, 0.25)
    assert gpt.summary.agreement.raw.value == 0.5
    assert gpt.confusion.tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert gpt.summary.flips == Flips(pairs=5, flipped=3, across_threshold=0, by_size={1: 3})
    assert (gpt.relevance.both, gpt.relevance.judge_only, gpt.relevance.people_only) == (3, 1, 0)
    assert [(row.grade, row.bias.pairs, row.bias.mean) for row in gpt.by_people_grade] == [
        (0, 1, 1.0),
        (1, 1, 0.0),
        (2, 1, 0.0),
        (3, 1, -1.0),
    ]
    assert [(row.grade, row.bias.pairs, row.bias.mean) for row in gpt.by_own_grade] == [
        (0, 0, None),
        (1, 2, 0.5),
        (2, 2, -0.5),
        (3, 0, None),
    ]
    assert [(row.name, row.bias.pairs) for row in gpt.slices] == [("refunds", 4)]
    assert [(row.number, row.graded, row.bias.mean) for row in gpt.repetitions] == [(1, 6, 0.0), (2, 5, 0.5)]
    [llama] = gpt.others
    assert (llama.judge.name, llama.bias) == ("llama", (2, 0.5, 0.5, 0.0))
    assert {(pair.judge, pair.people) for pair in gpt.furthest} == {(1, 0), (2, 3)}


def test_too_few_pairs_give_no_verdict(judged):
    verdict = report(judged, "gpt").summary.verdict
    assert verdict.level == "unknown"
    assert verdict.headline == "Too early to say: 4 pairs that both gpt and people have graded."


@pytest.mark.parametrize(
    ("off_by", "level", "habit"),
    [
        (lambda n: 0, "good", "neither stricter nor milder"),
        (lambda n: n % 7 == 0, "good", "0.10 of a grade above people"),
        (lambda n: int(n % 4 < 2), "tentative", "milder: 0.50 of a grade above people"),
        (lambda n: 3 if n % 3 else -1, "poor", "milder"),
    ],
)
def test_the_verdict_in_words(evalset, off_by, level, habit):
    [question] = make_questions(evalset, "q1")
    for n, chunk in enumerate(make_chunks(evalset, *(f"c{n:02}" for n in range(40)))):
        judge(question, chunk, n % 4)
        judge(question, chunk, max(0, min(3, n % 4 + off_by(n))), by="model:gpt")
    graded = graded_pairs(evalset)
    verdict = summarise(graded, graded.judges[0], grades=evalset.grades, threshold=1).verdict
    assert (verdict.level, habit in verdict.why[0]) == (level, True), verdict


def test_grades_of_older_texts_and_replaced_ones_are_left_out(judged):
    before = report(judged, "gpt").summary.graded
    add_revision(judged.chunks.get(external_id="c1"), "A newer text.")
    assert report(judged, "gpt").summary.graded == before - 3
    q1, c2 = judged.questions.get(external_id="q1"), judged.chunks.get(external_id="c2")
    earlier = q1.judgments.get(chunk=c2, assessor__name="llama")
    judge(q1, c2, 3, by="model:llama", replaces=earlier)
    assert report(judged, "llama").confusion.sum() == 1
    assert report(judged, "llama").confusion[3, 1] == 1


def test_the_list(judged, victor, client_for):
    response = client_for(victor).get("/e/handbook/judges/")
    assert [str(summary.judge) for summary in response.context["page"]] == ["llama", "gpt"]
    assert "Too few pairs in common with people to say" in response.content.decode()


def test_an_empty_list_says_what_to_do(evalset, carol, client_for):
    page = client_for(carol).get("/e/handbook/judges/").content.decode()
    assert "No outside judge's grades were brought in yet" in page
    assert "/e/handbook/import/?kind=judge" in page


def test_the_page(judged, victor, client_for):
    gpt = judged.assessors.get(name="gpt")
    response = client_for(victor).get(f"/e/handbook/judges/{gpt.pk}/")
    page = response.content.decode()
    assert response.context["would_add"] == 1
    assert "3 of the 5 pairs that it graded more than once have differing grades" in page
    assert "3 by 1 grade" in page
    assert "Beside other judges" in page


def test_the_page_of_a_judge_without_a_pair_in_common(evalset, victor, client_for):
    gpt = an_assessor(evalset, "model:gpt")
    page = client_for(victor).get(f"/e/handbook/judges/{gpt.pk}/").content.decode()
    assert "Too early to say: No pair" in page


def test_people_have_no_page_of_a_judge(judged, carol, client_for):
    alice = judged.assessors.get(name="alice")
    assert client_for(carol).get(f"/e/handbook/judges/{alice.pk}/").status_code == 404


def test_the_command(judged, capsys):
    call_command("judges", "handbook", "--json")
    document = json.loads(capsys.readouterr().out)
    gpt, llama = document["judges"]
    assert (gpt["judge"], gpt["graded"], gpt["graded_by_people_too"]) == ("gpt", 6, 4)
    assert gpt["bias"] == {"mean": 0.0, "too_high": 0.25, "too_low": 0.25}
    assert gpt["flips"]["rate"] == 0.6
    assert gpt["slices"][0]["slice"] == "refunds"
    assert (gpt["would_add_labels"], llama["would_add_labels"], document["would_add_together"]) == (1, 0, 1)
    call_command("judges", "handbook")
    printed = capsys.readouterr().out
    assert "Too early to say: 4 pairs" in printed
    assert "6 pairs graded in 2 repetitions, 4 of them by people too" in printed

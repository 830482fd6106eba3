"""The difference of two releases against a slow twin in Python."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.models import ChunkClass
from labels.differences import changed_pairs, difference_of, kept_difference, pairs_of_page
from labels.services.publishing import publish_release
from tests.conftest import make_chunks, make_questions
from tests.labels.builders import judge, make_class

pytestmark = pytest.mark.django_db


@pytest.fixture
def releases(evalset, alice):
    """Two releases: labels of people and of a model come, go and change; questions and classes too."""
    draw = random.Random(3)
    questions = make_questions(evalset, "q2", "q10", "Q1", "é", "z", "same")
    chunks = make_chunks(evalset, *(f"c{number}" for number in range(12)), "É", "zz")
    same = questions.pop()
    judge(same, chunks[0], 1, by=alice)
    said = {}
    for question in questions:
        for number, chunk in enumerate(draw.sample(chunks, 10)):
            by = "model:gpt" if number < 4 else alice
            said[question, chunk] = judge(question, chunk, draw.randrange(4), by=by)
    make_class(*chunks[:3])
    parted = make_class(*chunks[3:6])
    make_class(*chunks[8:10])
    first = publish_release(evalset=evalset, by=None, judges=["gpt"]).release

    for (question, chunk), judgment in said.items():
        if judgment.assessor.kind == "model" and draw.random() < 0.5:
            judge(question, chunk, judgment.grade if draw.random() < 0.5 else 3, by=alice)
        elif judgment.assessor.kind == "person" and draw.random() < 0.5:
            judge(question, chunk, draw.choice([None, 0, 1, 2, 3]), by=alice, replaces=judgment)
    for question in questions:
        for chunk in chunks:
            if (question, chunk) not in said and draw.random() < 0.5:
                judge(question, chunk, 2, by=draw.choice(["model:gpt", alice]))
    questions[0].text = "Another question?"
    questions[0].save()
    [new] = make_questions(evalset, "new")
    judge(new, chunks[0], 3, by=alice)
    ChunkClass.objects.get(pk=parted.pk).delete()
    make_class(*chunks[3:5])
    make_class(*chunks[10:12])
    return first, publish_release(evalset=evalset, by=None, judges=["gpt"]).release


def labels_of(release) -> dict[tuple[bytes, bytes], tuple[int, bool]]:
    return {
        (row.external_id.encode(), chunk.encode()): (grade, why == "model")
        for row in release.release_questions.all()
        for chunk, grade, why in zip(row.external_ids, row.grades, row.why, strict=True)
    }


def changed_slowly(before, after) -> list[tuple]:
    """(question, chunk, label before, label after) of the pairs that differ; a label is (grade, by a model)."""
    old, new = labels_of(before), labels_of(after)
    return [
        (*(part.decode() for part in pair), old.get(pair), new.get(pair))
        for pair in sorted(old.keys() | new.keys())
        if old.get(pair) != new.get(pair)
    ]


def as_told(pair) -> tuple:
    sides = ((pair.before, pair.model_before), (pair.after, pair.model_after))
    return (pair.question, pair.chunk, *(None if side[0] is None else side for side in sides))


@pytest.mark.parametrize("way", [slice(None), slice(None, None, -1)], ids=["forward", "back"])
def test_pairs_and_counts_are_those_of_the_twin(releases, way) -> None:
    before, after = releases[way]
    expected = changed_slowly(before, after)
    pairs = list(changed_pairs(before, after))
    assert [as_told(pair) for pair in pairs] == expected
    assert {pair.kind for pair in pairs} == {"added", "removed", "regraded", "same grade"}
    found = difference_of(before, after)
    both = [(old, new) for _, _, old, new in expected if old and new]
    assert found.counts.added == sum(old is None for *_, old, _ in expected)
    assert found.counts.removed == sum(new is None for *_, new in expected)
    assert found.counts.regraded == Counter((old[0], new[0]) for old, new in both if old[0] != new[0])
    assert found.counts.same_grade == sum(old[0] == new[0] for old, new in both)
    assert found.counts.judged == sum(old[1] and not new[1] for old, new in both)
    assert found.counts.unjudged == sum(new[1] and not old[1] for old, new in both)
    assert found.counts.models_added == sum(new[1] for *_, old, new in expected if old is None)
    assert found.counts.models_removed == sum(old[1] for *_, old, new in expected if new is None)
    assert found.counts.total == len(expected)
    by_question = Counter(pair.question_id for pair in pairs)
    assert list(found.pairs_by_question.items()) == list(by_question.items())


def test_every_page_holds_its_pairs(releases) -> None:
    found, pairs = difference_of(*releases), list(changed_pairs(*releases))
    for limit in (1, 3, 7, 50):
        for offset in range(0, len(pairs) + 1, limit):
            page = pairs_of_page(*releases, found, offset, limit)
            assert page == pairs[offset : offset + limit], (offset, limit)


def test_questions_and_classes(releases) -> None:
    found, back = difference_of(*releases), difference_of(*releases[::-1])
    assert (found.questions_added, found.questions_removed, found.questions_changed) == (["new"], [], ["q2"])
    assert (back.questions_added, back.questions_removed, back.questions_changed) == ([], ["new"], ["q2"])
    # c3 and c4 were together before too: their class is no new one.
    assert (found.joined, found.split) == ([["c10", "c11"]], [["c3", "c4", "c5"]])
    assert (back.joined, back.split) == (found.split, found.joined)
    assert not found.nothing
    assert difference_of(releases[1], releases[1]).nothing


def test_a_difference_is_worked_out_once_for_its_pages(releases, carol, client_for) -> None:
    cache.clear()
    assert kept_difference(*releases) == difference_of(*releases)
    address, client = reverse("labels:release-difference", args=["handbook"]), client_for(carol)
    with CaptureQueriesContext(connection) as captured:
        page = client.get(address, {"from": 1, "to": 2}).context["page"]
    assert [as_told(pair) for pair in page] == changed_slowly(*releases)[: len(page)]
    assert sum("FULL JOIN" in query["sql"] for query in captured) == 1  # the pairs of the page alone
    back = client.get(address, {"from": 2, "to": 1}).context["difference"]
    assert back.questions_removed == ["new"]


def test_pairs_of_some_questions_are_paged_as_those_of_the_twin(releases, evalset) -> None:
    some = evalset.questions.filter(external_id__in=["q2", "Q1", "é"])
    found = difference_of(*releases).of_questions({question.pk for question in some})
    expected = [told for told in changed_slowly(*releases) if told[0] in ("q2", "Q1", "é")]
    assert sum(found.pairs_by_question.values()) == len(expected)
    for offset in range(len(expected)):
        pairs = pairs_of_page(*releases, found, offset, 7)
        assert [as_told(pair) for pair in pairs] == expected[offset : offset + 7]


@pytest.mark.parametrize("asked", ["q1", "z", "no such question"])
def test_the_labels_of_the_page_are_found_by_question(releases, victor, client_for, asked) -> None:
    address = reverse("labels:release-difference", args=["handbook"])
    response = client_for(victor).get(address, {"from": 1, "to": 2, "q": asked})
    expected = [told for told in changed_slowly(*releases) if asked.lower() in told[0].lower()]
    assert [as_told(pair) for pair in response.context["page"]] == expected
    html = response.content.decode()
    assert ("No label changed for a question that matches" in html) == (not expected)
    assert '<input type="hidden" name="from" value="1">' in html
    assert response.context["difference"] == difference_of(*releases)

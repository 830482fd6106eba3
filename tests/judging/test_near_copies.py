"""Near copies at the desk: said before they are graded, against the assessor's own grades alone, one key copies."""

from __future__ import annotations

import re

import pytest

from judging.models import Batch, Judgment, PairVerdict
from judging.near_copies import graded_texts
from judging.services.claims import claim_next
from judging.services.verdicts import give_verdict
from tests.conftest import add_revision, make_chunks
from tests.judging.batches import batch_of, grade, pair_of, skip
from tests.judging.test_desk import address, ask, fields_of, page, press, start

OLD = (
    "Refunds for parcels are paid to the account they came from within 14 days of the claim, without any fee."
)
NEW = OLD.replace("14 days", "30 days")
LOUD = OLD.upper() + " !"
FAR = "Our shops open at nine, and on Sundays they do not open at all, whatever the season."


def texts(evalset, **by_name: str) -> None:
    for name, text in by_name.items():
        add_revision(make_chunks(evalset, name, text=False)[0], text, number=1)


@pytest.fixture
def batch(evalset, alice, bob, carol) -> Batch:
    texts(evalset, old=OLD, far=FAR, new=NEW, loud=LOUD)
    return batch_of(evalset, {"q1": ["old", "far", "new", "loud"]}, by=carol, assessors=[alice, bob])


def hints(html: str) -> list[str]:
    """What is said of near copies that are graded, one sentence each."""
    shown = [aside for aside in re.findall(r"<aside.*?</aside>", html, re.DOTALL) if " hidden>" not in aside]
    return [
        " ".join(re.sub(r"<[^>]+>", " ", re.search(r"<p.*?</p>", aside, re.DOTALL)[0]).split())
        for aside in shown
    ]


def test_a_near_copy_says_the_grade_and_shows_the_difference(batch, alice, client_for):
    client = client_for(alice)
    press(client, batch, "grade:2", html=start(client, batch))
    assert hints(page(client, batch)) == [], "the other text is not like it"
    press(client, batch, "grade:0")
    html = page(client, batch)

    assert hints(html) == [
        "Nearly a text that you graded 2 Substantial for this question. "
        "Struck words are only there, underlined ones only here."
    ]
    assert "<del>14</del><ins>30</ins>" in html


def test_the_same_words_are_said_to_be_the_same(batch, alice, client_for):
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "old"), alice, 3)
    html = page(client_for(alice), batch, f"?pair={pair_of(batch, 'q1', 'loud').pk}")
    assert hints(html) == ["The same words as a text that you graded 3 Direct for this question."]


def test_one_button_copies_the_grade_as_a_judgment_of_its_own(batch, alice, client_for):
    client = client_for(alice)
    press(client, batch, "grade:2", html=start(client, batch))
    press(client, batch, "grade:0")
    old = Judgment.objects.get(chunk__external_id="old")
    html = page(client, batch)
    act = re.search(r'name="act" value="(copy:[^"]*)"', html)[1]
    assert act == f"copy:{old.chunk_id}:2"
    for _ in range(2):
        press(client, batch, act, html=html, seconds="1.5")

    copy = Judgment.objects.get(chunk__external_id="new")
    assert (copy.grade, copy.source, copy.details, copy.seconds) == (2, "copy", {"copied_from": old.pk}, 1.5)
    assert (copy.pair, copy.revision, copy.kind) == (pair_of(batch, "q1", "new"), 1, "grade")
    assert pair_of(batch, "q1", "new").filled_at is not None
    assert "copied" in page(client, batch), "in the list of what was given"


def test_a_copied_grade_can_be_changed_like_any_other(batch, alice, client_for):
    client = client_for(alice)
    press(client, batch, "grade:2", html=start(client, batch))
    press(client, batch, "grade:0")
    html = page(client, batch)
    press(client, batch, re.search(r'value="(copy:[^"]*)"', html)[1], html=html)
    press(client, batch, "grade:1", html=html)

    chain = Judgment.objects.filter(chunk__external_id="new").order_by("pk")
    assert [(j.grade, j.source) for j in chain] == [(2, "copy"), (1, "desk")]


def test_a_grade_that_was_never_given_is_not_copied(batch, alice, bob, client_for):
    client = client_for(alice)
    html = start(client, batch)
    old = batch.evalset.chunks.get(external_id="old")
    press(client, batch, "grade:2", html=html)
    for act in (f"copy:{old.pk}:3", "copy:999999999:2"):
        response = press(client, batch, act, as_json=True)
        assert response.status_code == 409
        assert "You have not graded that other text so" in response.json()["error"]
    assert Judgment.objects.count() == 1


def test_a_copy_that_waited_keeps_the_grade_that_was_on_screen(batch, alice, client_for):
    client = client_for(alice)
    first = start(client, batch)
    press(client, batch, "grade:2", html=first)
    press(client, batch, "grade:0")
    html = page(client, batch)
    press(client, batch, "grade:3", html=first)  # regraded in another window
    press(client, batch, re.search(r'value="(copy:[^"]*)"', html)[1], html=html)
    copy = Judgment.objects.get(chunk__external_id="new")
    assert copy.grade == 2
    assert copy.details["copied_from"] == Judgment.objects.filter(grade=2).earliest("pk").pk


def test_the_browser_gets_likeness_to_what_is_not_graded_yet(batch, alice, client_for):
    """Pairs are fetched ahead: by the time this one is on screen, the one it resembles may have its grade."""
    client = client_for(alice)
    items = ask(client, batch)["next"]
    by_pair = {item["pair"]: item["html"] for item in items}
    old, new = pair_of(batch, "q1", "old"), pair_of(batch, "q1", "new")
    assert "<aside" not in by_pair[old.pk]
    assert hints(by_pair[new.pk]) == [], "there is no grade to tell yet"
    assert f'data-near="{old.chunk_id}" data-of-pair="{old.pk}"' in by_pair[new.pk]


def test_a_new_pair_is_compared_with_those_the_browser_has(evalset, alice, carol, client_for):
    filler = {f"f{n}": f"{FAR} {n} " * n for n in range(3)}
    texts(evalset, f=FAR, old=OLD, **filler, new=NEW)
    batch = batch_of(evalset, {"q1": ["f", "old", "f0", "f1", "new"]}, by=carol, assessors=[alice])
    client = client_for(alice)
    have = [item["pair"] for item in ask(client, batch)["next"]]
    answer = press(client, batch, "grade:0", as_json=True, have=",".join(map(str, have))).json()
    [item] = answer["next"]
    assert item["pair"] == pair_of(batch, "q1", "new").pk
    assert f'data-of-pair="{pair_of(batch, "q1", "old").pk}"' in item["html"]


def test_nothing_of_others_grades_nor_of_other_questions(evalset, batch, alice, bob, carol, client_for):
    claim_next(batch=batch, by=bob)
    grade(pair_of(batch, "q1", "old"), bob, 3)
    other = batch_of(evalset, {"q2": ["old"]}, by=carol, assessors=[alice], name="Other")
    claim_next(batch=other, by=alice)
    grade(pair_of(other, "q2", "old"), alice, 1)
    mine = batch_of(evalset, {"q1": ["new"]}, by=carol, assessors=[alice], name="Mine")
    html = start(client_for(alice), mine)
    assert "30 days" in html
    assert "<aside" not in html


def test_another_batch_counts_and_a_skip_does_not(evalset, batch, alice, carol, client_for):
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "old"), alice, 1)
    skip(pair_of(batch, "q1", "loud"), alice)
    texts(evalset, third=OLD + " And so on.")
    mine = batch_of(evalset, {"q1": ["third"]}, by=carol, assessors=[alice], name="Mine")
    html = start(client_for(alice), mine)
    assert hints(html)[0].startswith("Nearly a text that you graded 1 Background")
    assert html.count("<aside") == 1


def test_what_was_said_to_be_different_is_not_asked_again(batch, alice, carol, client_for):
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "old"), alice, 2)
    old, new = (batch.evalset.chunks.get(external_id=name) for name in ("old", "new"))
    query = f"?pair={pair_of(batch, 'q1', 'new').pk}"
    give_verdict(first=old, second=new, verdict=PairVerdict.Verdict.SECOND_NEWER, by=carol)
    html = page(client_for(alice), batch, query)
    assert re.findall(r'value="([a-z-]+):\d+"[^>]*aria-pressed="true"', html) == ["first-newer"]
    give_verdict(first=old, second=new, verdict=PairVerdict.Verdict.DIFFERENT, by=carol)
    assert "<aside" not in page(client_for(alice), batch, query)


def test_the_buttons_without_javascript_say_what_two_are(batch, alice, client_for):
    client = client_for(alice)
    press(client, batch, "grade:2", html=start(client, batch))
    press(client, batch, "grade:0")
    html = page(client, batch)
    button = re.search(r'name="verdict" value="(first-newer:\d+)" formaction="([^"]*)"', html)
    response = client.post(button[2], {**fields_of(html), "verdict": button[1]})
    assert response["Location"] == address(batch) + f"?pair={fields_of(html)['pair']}"
    given = PairVerdict.objects.get()
    assert (given.first.external_id, given.verdict) == ("old", "second-newer")


def test_the_last_grade_of_a_chunk_stands(batch, alice):
    claim_next(batch=batch, by=alice)
    for number in (1, 3):
        grade(pair_of(batch, "q1", "old"), alice, number)
    question = pair_of(batch, "q1", "old").question
    [text] = graded_texts([question.pk], assessor=batch.assessors.get(user=alice))
    assert text.grade == 3


def test_texts_without_words_are_like_nothing(evalset, alice, carol, client_for):
    texts(evalset, one="— … —", two="*")
    batch = batch_of(evalset, {"q1": ["one", "two"]}, by=carol, assessors=[alice])
    client = client_for(alice)
    press(client, batch, "grade:0", html=start(client, batch))
    assert "<aside" not in page(client, batch)

"""At the desk a gold pair is a pair like any other: nothing that reaches the assessor tells it apart."""

from __future__ import annotations

import re

from tests.judging.batches import batch_of, pair_of
from tests.judging.test_desk import ask, page, press, start


def plain(html: str, name: str) -> str:
    """Without what differs between any two pairs: numbers, keys, and the text itself."""
    html = html.replace(f"Text of {name}.", "TEXT")
    html = re.sub(r'(name="(key|csrfmiddlewaretoken)" value=)"[^"]*"', r"\1", html)
    return re.sub(r"\d+", "N", html)


def test_a_gold_pair_looks_counts_and_answers_like_any_other(evalset, carol, alice, bob, client_for):
    batch = batch_of(evalset, {"q1": ["c1", "c2", "c3", "c4"]}, by=carol, assessors=[alice, bob])
    ordinary, gold = pair_of(batch, "q1", "c1"), pair_of(batch, "q1", "c2")
    batch.pairs.filter(pk=gold.pk).update(gold_grade=3, wanted=2)
    client = client_for(alice)

    shown = {item["pair"]: item for item in ask(client, batch)["next"]}
    assert plain(shown[gold.pk]["html"], "c2") == plain(shown[ordinary.pk]["html"], "c1")

    start(client, batch)
    before = ask(client, batch, counts="1")["batch"]
    answers = []
    for name in ("c1", "c2"):
        html = page(client, batch)
        assert f"Text of {name}." in html
        answers.append(press(client, batch, "grade:1", html=html, as_json=True, counts="1").json())
    first, second = answers
    assert [answer["batch"]["done"] - before["done"] for answer in answers] == [1, 2]
    assert [place["done"] for answer in answers for place in answer["questions"].values()] == [1, 2]
    assert first.keys() == second.keys()
    assert {**first["saved"], "pair": 0, "line": ""} == {**second["saved"], "pair": 0, "line": ""}
    looked_back = [page(client, batch, f"?pair={pair.pk}") for pair in (ordinary, gold)]
    assert "gold" not in "".join(looked_back).lower()

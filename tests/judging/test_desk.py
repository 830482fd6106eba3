"""The desk's addresses, as forms without JavaScript and as JSON."""

from __future__ import annotations

import datetime
import json
import re
import uuid

import pytest
from django.urls import reverse

from evalsets.models import Question
from judging.models import Batch, Judgment, Task
from judging.services.batches import cancel_batch, pause_batch
from judging.services.claims import claim_next
from pooling.models import PoolRun
from tests.conftest import add_revision, make_chunks, make_run
from tests.judging.batches import batch_of, grade, let_leases_end, make_pool, pair_of, skip


@pytest.fixture
def batch(evalset, carol, alice, bob) -> Batch:
    return batch_of(evalset, {"q1": ["c1", "c2"], "q2": ["c1", "c3"]}, by=carol, assessors=[alice, bob])


def address(batch: Batch, name: str = "desk") -> str:
    return reverse(f"judging:{name}", args=[batch.evalset.slug, batch.pk])


def page(client, batch: Batch, query: str = "") -> str:
    response = client.get(address(batch) + query)
    assert response.status_code == 200
    return response.content.decode()


def fields_of(html: str) -> dict[str, str]:
    """The hidden fields of the desk's form, as a browser would send them."""
    form = html[html.index('class="desk-pair"') :]
    names = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    return {name: names[name] for name in ("pair", "key", "revision", "as_user", "spans")}


def press(client, batch: Batch, act: str, *, html: str | None = None, as_json: bool = False, **more):
    """Open the desk and press one of its buttons."""
    fields = fields_of(html or page(client, batch))
    headers = {"Accept": "application/json"} if as_json else {}
    return client.post(address(batch, "desk-save"), {**fields, "act": act, **more}, headers=headers)


def start(client, batch: Batch) -> str:
    response = client.post(address(batch, "desk-next"), follow=True)
    return response.content.decode()


def test_without_javascript_the_desk_starts_grades_and_goes_on(batch, alice, client_for):
    client = client_for(alice)
    assert "Start judging" in page(client, batch)
    assert not Task.objects.exists(), "looking takes nothing"

    html = start(client, batch)
    assert "What is q1?" in html
    assert "Text of c1." in html
    response = client.post(address(batch, "desk-save"), {**fields_of(html), "act": "grade:0"}, follow=True)

    html = response.content.decode()
    assert "Saved: 0 Irrelevant." in html
    assert "Text of c2." in html
    assert Judgment.objects.get().grade == 0


def test_new_instructions_come_before_the_first_pair(evalset, carol, alice, client_for):
    batches = [
        batch_of(
            evalset,
            {"q1": ["c1", "c2"]},
            by=carol,
            assessors=[alice],
            name=name,
            instructions="Judge *this*.",
        )
        for name in ("Week 1", "Week 2")
    ]
    client = client_for(alice)
    html = start(client, batches[0])
    assert "Judge <em>this</em>." in html
    assert "Start judging" in html
    assert not Task.objects.exists()
    client.post(address(batches[0], "desk-next"), {"begin": "1"})
    press(client, batches[0], "grade:1")
    client.post(address(batches[0], "desk-stop"))
    # Known now, in this batch and in the next one with the same rubric.
    for batch in batches:
        assert 'class="desk-pair"' in start(client, batch)


def test_a_double_click_of_a_form_is_one_judgment(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    for _ in range(2):
        assert press(client, batch, "grade:2", html=html).status_code == 302

    assert Judgment.objects.get().grade == 2


def test_gone_back_to_a_page_another_grade_replaces(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    press(client, batch, "grade:2", html=html)
    press(client, batch, "grade:3", html=html)

    assert list(Judgment.objects.order_by("pk").values_list("grade", flat=True)) == [2, 3]


def test_looking_back_shows_the_saved_grade(batch, alice, client_for):
    client = client_for(alice)
    start(client, batch)
    press(client, batch, "grade:2", note="Only half of it")
    pair = pair_of(batch, "q1", "c1")

    html = page(client, batch, f"?pair={pair.pk}")

    assert re.search(r'value="grade:2"[^>]*aria-pressed="true"', html)
    assert re.search(r'value="grade:3"[^>]*aria-pressed="false"', html)
    assert "Only half of it" in html


def test_back_never_comes_from_a_cache(batch, alice, client_for):
    response = client_for(alice).get(address(batch))
    assert "no-store" in response["Cache-Control"]


def test_the_list_of_given_grades_is_mine_alone(batch, alice, bob, client_for):
    claim_next(batch=batch, by=alice)
    grade(pair_of(batch, "q1", "c1"), alice, 3)
    let_leases_end(batch)
    client = client_for(bob)
    for _ in range(5):  # Bob's own question first, then what Alice left
        html = start(client, batch)
        if "What is q1?" in html:
            break
        press(client, batch, "grade:1", html=html)

    assert "What is q1?" in html
    assert "Text of c2." in html
    assert "Text of c1." not in html, "Alice's pair and grade stay hers"


@pytest.mark.parametrize(
    ("act", "kind", "reason"),
    [
        ("skip:unclear-question", "skip", "unclear-question"),
        ("cannot-judge:broken-text", "cannot-judge", "broken-text"),
    ],
)
def test_skip_and_cannot_judge_take_a_reason(batch, alice, client_for, act, kind, reason):
    client = client_for(alice)
    html = start(client, batch)
    press(client, batch, act, html=html)

    judgment = Judgment.objects.get()
    assert (judgment.kind, judgment.reason, judgment.grade) == (kind, reason, None)


def test_later_says_nothing_of_the_pair(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    press(client, batch, "later", html=html)

    assert not Judgment.objects.exists()
    assert "Text of c2." in page(client, batch)


def test_evidence_facts_and_seconds_are_kept(batch, alice, client_for):
    Question.objects.filter(external_id="q1").update(
        facts=[{"id": "f1", "text": "It is c1"}, {"id": "f2", "text": "x"}]
    )
    client = client_for(alice)
    html = start(client, batch)
    assert "It is c1" in html
    spans = json.dumps([{"start": 8, "end": 10, "text": "c1"}])
    press(client, batch, "grade:3", html=html, facts=["f1"], seconds="4.5", spans=spans)

    judgment = Judgment.objects.get()
    assert judgment.facts == ["f1"]
    assert judgment.seconds == 4.5
    assert judgment.spans == [{"start": 8, "end": 10, "text": "c1"}]


def test_evidence_that_is_not_in_the_text_is_refused_and_said(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    spans = json.dumps([{"start": 0, "end": 4, "text": "nowhere"}])
    response = press(client, batch, "grade:3", html=html, spans=spans, as_json=True)

    assert response.status_code == 400
    assert "nowhere" in response.json()["error"]


@pytest.mark.parametrize(
    "bad",
    [
        {"act": "grade:9"},
        {"act": "grade:"},
        {"act": "praise"},
        {"key": "x"},
        {"spans": "["},
        {"spans": '{"a":1}'},
        {"spans": "[" * 100_000},
        {"facts": "f\0"},
        {"evidence": "Text\n" * 201},
        {"act": "grade:1 or so"},
        {"act": "copy:1"},
    ],
)
def test_bad_input_gets_a_reason_and_saves_nothing(batch, alice, client_for, bad):
    client = client_for(alice)
    html = start(client, batch)
    fields = {**fields_of(html), "act": "grade:1", **bad}
    response = client.post(address(batch, "desk-save"), fields, headers={"Accept": "application/json"})

    assert response.status_code == 400
    assert response.json()["error"]
    assert not Judgment.objects.exists()


def test_a_page_that_lay_open_judges_the_text_that_it_shows(batch, evalset, alice, client_for):
    """Case 101: the chunk is revised, and handed out anew, while its earlier text is on screen."""
    client = client_for(alice)
    html = start(client, batch)
    add_revision(evalset.chunks.get(external_id="c1"), "The answer moved.")
    let_leases_end(batch)
    assert "The answer moved." in start(client, batch)

    press(client, batch, "grade:3", html=html)
    assert Judgment.objects.get().revision == 1


def test_a_revision_that_is_not_there_is_bad_input(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    response = press(client, batch, "grade:3", html=html, revision=7, as_json=True)
    assert response.status_code == 400
    assert "no revision 7" in response.json()["error"]


def test_a_page_of_somebody_else_does_not_judge_in_my_name(batch, alice, bob, client_for):
    """Alice's tab is open while Bob signs in in another: her next key press must not become his judgment."""
    html = start(client_for(alice), batch)
    response = press(client_for(bob), batch, "grade:1", html=html, as_json=True)

    assert response.status_code == 409
    assert "signed in as Bob" in response.json()["error"]
    assert not Judgment.objects.exists()


def test_a_pair_of_another_batch_is_not_found(batch, evalset, carol, alice, client_for):
    other = batch_of(evalset, {"q3": ["c9"]}, by=carol, assessors=[alice], name="Other")
    html = start(client_for(alice), other)
    assert press(client_for(alice), batch, "grade:1", html=html).status_code == 404


def test_a_lead_who_is_not_named_has_no_desk(batch, carol, client_for):
    assert client_for(carol).get(address(batch)).status_code == 403


def test_an_expired_session_sends_to_sign_in_and_back(batch, client_for):
    response = client_for(None).get(address(batch))
    assert response.status_code == 302
    assert response["Location"].endswith(f"?next={address(batch)}")


# JSON: the same acts, with what comes next.


def ask(client, batch: Batch, **fields):
    response = client.post(address(batch, "desk-next"), fields, headers={"Accept": "application/json"})
    assert response.status_code == 200
    return response.json()


def test_pairs_are_fetched_ahead_and_not_sent_twice(batch, alice, client_for):
    client = client_for(alice)
    first = ask(client, batch)
    assert [item["pair"] for item in first["next"]] == list(
        batch.pairs.order_by("batch_question", "position").values_list("pk", flat=True)
    )
    assert first["questions"] == {
        str(pk): {"done": 0, "total": 2} for pk in batch.batch_questions.values_list("question", flat=True)
    }

    have = [item["pair"] for item in first["next"]][:3]
    again = ask(client, batch, have=",".join(map(str, have)))
    assert [item["pair"] for item in again["next"]] == [first["next"][3]["pair"]]


def test_a_save_answers_with_its_line_the_counts_and_the_next(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    answer = press(client, batch, "grade:2", html=html, as_json=True, counts="1").json()

    assert answer["saved"]["said"] == "Saved: 2 Substantial."
    assert answer["saved"]["notice"] is False
    assert f"?pair={answer['saved']['pair']}" in answer["saved"]["line"]
    assert answer["questions"][str(answer["saved"]["question"])] == {"done": 1, "total": 2}
    assert (answer["batch"]["done"], answer["batch"]["wanted"]) == (1, 4)
    assert "Text of c2." in answer["next"][0]["html"]


def test_the_last_save_says_why_nothing_comes(evalset, carol, alice, client_for):
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    client = client_for(alice)
    html = start(client, batch)
    answer = press(client, batch, "grade:2", html=html, as_json=True).json()

    assert answer["next"] == []
    assert "This batch is done" in answer["end"]


def test_a_late_save_says_that_it_is_extra(batch, alice, bob, client_for):
    client = client_for(alice)
    html = start(client, batch)
    let_leases_end(batch)
    while claim_next(batch=batch, by=bob):
        for task in claim_next(batch=batch, by=bob, count=10):
            grade(task.pair, bob)
    answer = press(client, batch, "grade:2", html=html, as_json=True).json()

    assert answer["saved"]["notice"] is True
    assert "kept as an extra judgment" in answer["saved"]["said"]


# What is left for me.


def test_done_for_me_but_not_for_others(batch, alice, bob, client_for):
    claim_next(batch=batch, by=bob, count=10)
    html = page(client_for(alice), batch)
    assert "Nothing is left for you here now" in html
    assert "4 pairs are left to other assessors" in html


def test_a_late_batch_is_told_on_my_work_and_at_home(batch, alice, carol, client_for):
    Batch.objects.update(due_on=datetime.date(2020, 1, 1))
    for user, address in ((alice, "/"), (carol, f"/e/{batch.evalset.slug}/")):
        assert "<strong>overdue</strong> since 1 Jan 2020" in client_for(user).get(address).content.decode()


def test_what_i_skipped_is_offered_at_the_end(batch, alice, bob, client_for):
    claim_next(batch=batch, by=alice, count=10)
    pair = pair_of(batch, "q1", "c1")
    skip(pair, alice)
    for other in batch.pairs.exclude(pk=pair.pk):
        grade(other, alice)
    client = client_for(alice)
    html = page(client, batch)

    assert "You skipped these" in html
    assert f"?pair={pair.pk}" in html
    assert "left to other assessors" not in html
    press(client, batch, "grade:1", html=page(client, batch, f"?pair={pair.pk}"))
    assert "This batch is done" in page(client, batch)


@pytest.mark.parametrize(
    ("act", "heading"),
    [(pause_batch, "This batch is paused"), (cancel_batch, "This batch was ended by its lead")],
)
def test_a_batch_that_hands_out_nothing_says_why(batch, alice, carol, client_for, act, heading):
    claim_next(batch=batch, by=alice)
    act(batch=batch, by=carol)

    html = page(client_for(alice), batch)
    assert heading in html


def test_stopping_gives_the_rest_back(batch, alice, bob, client_for):
    start(client_for(alice), batch)
    client_for(alice).post(address(batch, "desk-stop"))

    assert len(claim_next(batch=batch, by=bob, count=10)) == 4


# Blinding, and text that is only text.


def test_nothing_that_reaches_an_assessor_names_systems_runs_ranks_scores_or_the_pool(
    evalset, carol, alice, bob, client_for
):
    make_chunks(evalset, "c1", "c2", "c3", "c4", "c5")
    from tests.conftest import make_questions

    make_questions(evalset, "q1", "q2")
    run = make_run(
        evalset,
        "zebrafinch-run-0815",
        {"q1": ["c1", "c2", "c3"], "q2": ["c4", "c5"]},
        system="zebrafinch",
        config={"model": "quaggamodel"},
        version="okapiversion",
    )
    pool = make_pool(evalset, "ocelotpool")
    pool.parameters = {"fusion": "lynxfusion"}
    pool.save()
    PoolRun.objects.create(pool=pool, run=run, position=0, k=20)
    batch = batch_of(
        evalset,
        {"q1": ["c3", "c1", "c2"], "q2": ["c4", "c5"]},
        by=carol,
        assessors=[alice, bob],
        pool=pool,
        overlap=2,
        overlap_share=1,
    )
    claim_next(batch=batch, by=bob, count=5)
    grade(pair_of(batch, "q1", "c3"), bob, 3, note="bobs secret note")
    client = client_for(alice)
    seen = [
        client.get(reverse("my-work")),
        client.get(address(batch)),
        client.post(address(batch, "desk-next")),
    ]
    seen.append(client.get(address(batch)))
    json_headers = {"Accept": "application/json"}
    seen.append(client.post(address(batch, "desk-next"), headers=json_headers))
    for _ in range(5):
        html = page(client, batch)
        seen.append(press(client, batch, "grade:1", html=html, as_json=True))
        seen.append(client.get(address(batch)))
        seen.append(client.get(address(batch) + "?pair=" + fields_of(html)["pair"]))
    assert "This batch is" in seen[-2].content.decode() or "Nothing is left" in seen[-2].content.decode()

    for response in seen:
        told = response.content.decode() + json.dumps(dict(response.headers)) + str(response.cookies)
        if response["Content-Type"] == "application/json":
            told += " ".join(_strings(response.json()))
            assert not {"rank", "score", "run", "system", "pool", "strategy", "position"} & set(
                _keys(response.json())
            )
        for secret in ("zebrafinch", "quagga", "okapi", "ocelot", "lynx", "depth", "budget", "bobs secret"):
            assert secret not in told.lower()
        assert not re.search(
            r"\b(rank|score|retriever|strategy|system|systems|run|runs|pool)\b", _visible(told)
        )


def _strings(data) -> list[str]:
    if isinstance(data, dict):
        return [text for value in data.values() for text in _strings(value)]
    if isinstance(data, list):
        return [text for value in data for text in _strings(value)]
    return [str(data)]


def _keys(data) -> list[str]:
    if isinstance(data, dict):
        return [*data, *(key for value in data.values() for key in _keys(value))]
    if isinstance(data, list):
        return [key for value in data for key in _keys(value)]
    return []


def _visible(html: str) -> str:
    """Without tags, and without the name of the theme choice "System"."""
    return re.sub(r"<[^>]*>", " ", html.replace(">System</button>", ">"))


def test_text_is_text(evalset, carol, alice, client_for):
    chunk = make_chunks(evalset, "c1", text=False)[0]
    add_revision(
        chunk, "<script>alert(1)</script>\n\n# Head\n\n<img src=x onerror=alert(2)> **bold**", number=1
    )
    batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice])
    html = start(client_for(alice), batch)

    assert "<script>alert(1)" not in html
    assert "<img src=x" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<strong>bold</strong>" in html, "the second view is Markdown"


def test_the_question_words_are_shown_when_asked(batch, alice, client_for):
    client = client_for(alice)
    html = start(client, batch)
    assert 'class="desk"' in html
    client.post(address(batch, "desk-highlight"), {"pair": fields_of(html)["pair"]})

    assert 'class="desk highlight"' in page(client, batch)


def test_the_key_of_each_page_is_new(batch, alice, client_for):
    client = client_for(alice)
    start(client, batch)
    keys = {fields_of(page(client, batch))["key"] for _ in range(3)}
    assert len(keys) == 3
    assert all(uuid.UUID(key) for key in keys)

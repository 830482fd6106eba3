"""Adjudication: which pairs wait, blind until decided, the decision overrides, the originals stay, undo."""

import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from evalsets.errors import BadInput
from judging.models import Assessor, Judgment
from judging.services.adjudication import adjudicate, standing_decisions, take_decision_back
from labels.blind_reading import blind_pair
from labels.exports.tables import cannot_judge_csv
from labels.services.publishing import publish_release
from labels.settling import contested_pairs, labels_of_question, settled_counts, settled_pairs
from labels.waiting import read_queue, waiting_pairs, why_it_waits
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import judge


@pytest.fixture
def contested(evalset, alice, bob):
    [question] = make_questions(evalset, "q1")
    [chunk] = make_chunks(evalset, "c1")
    for user, grade, note in ((alice, 0, "not about it"), (bob, 3, "the rule itself")):
        assessor = Assessor.objects.create(evalset=evalset, kind="person", user=user, name=user.username)
        Judgment.objects.create(
            evalset=evalset,
            question=question,
            chunk=chunk,
            revision=1,
            assessor=assessor,
            grade=grade,
            note=note,
        )
    assert len(contested_pairs(evalset)) == 1
    return question, chunk


def page_of(question, chunk) -> str:
    return f"/e/handbook/contested/{question.pk}/{chunk.pk}/"


@pytest.mark.parametrize(("decision", "label"), [("0", 0), ("2", 2), ("cannot-judge", None)])
def test_a_decision_settles_the_pair_and_keeps_the_originals(
    decision, label, contested, evalset, carol, client_for
) -> None:
    question, chunk = contested
    client = client_for(carol)
    response = client.post(
        page_of(*contested), {"decision": decision, "note": "Why.", "key": str(uuid.uuid4())}
    )
    assert response["Location"] == f"/e/handbook/contested/next/?after={question.pk}-{chunk.pk}"
    assert labels_of_question(question)[chunk.pk].label == label
    assert contested_pairs(evalset) == []
    assert Judgment.objects.filter(source="desk").count() == 2
    assert client.get("/e/handbook/contested/next/")["Location"] == "/e/handbook/contested/"


def test_who_said_what_is_shown_only_after_the_decision(contested, carol, client_for) -> None:
    client = client_for(carol)
    before = client.get(page_of(*contested)).content.decode()
    assert "not about it" in before
    assert "alice" not in before.lower()
    client.post(page_of(*contested), {"decision": "1", "key": str(uuid.uuid4())})
    assert "by Alice" in client.get(page_of(*contested)).content.decode()


def test_one_act_is_one_decision_and_a_later_one_replaces_it(contested, evalset, carol) -> None:
    question, chunk = contested
    key = uuid.uuid4()
    for _ in range(2):
        adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=key)
    assert Judgment.objects.filter(source="adjudication").count() == 1
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=3, by=carol, key=uuid.uuid4())
    assert labels_of_question(question)[chunk.pk].label == 3


def test_a_grade_off_the_scale_is_refused(contested, evalset, carol, client_for) -> None:
    question, chunk = contested
    with pytest.raises(BadInput, match="0 to 3"):
        adjudicate(evalset=evalset, question=question, chunk=chunk, grade=9, by=carol, key=uuid.uuid4())
    client_for(carol).post(page_of(*contested), {"decision": "9", "key": str(uuid.uuid4())})
    assert not Judgment.objects.filter(source="adjudication").exists()


def test_a_decision_belongs_to_the_text_that_was_read(contested, evalset, carol) -> None:
    question, chunk = contested
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=uuid.uuid4())
    add_revision(chunk, "Another text.")
    assert labels_of_question(question) == {}


# Which pairs wait.


@pytest.mark.parametrize(
    ("policy", "tolerance", "grades", "because"),
    [
        ("majority", 0, [1], ""),
        ("majority", 0, [2, 2], ""),
        ("majority", 9, [1, 2], "no label (no grade has a majority); grades differ by 1"),
        ("majority", 0, [0, 0, 1], "grades differ by 1, though they settle to 0 (majority)"),
        ("majority", 1, [0, 0, 1], ""),
        ("majority", 1, [0, 0, 2], "grades differ by 2, though they settle to 0 (majority)"),
        ("median", 1, [1, 2], ""),
        ("median", 1, [0, 3], "grades differ by 3, though they settle to 1 (median)"),
        ("latest", 2, [0, 3], "grades differ by 3, though they settle to 3 (latest)"),
        ("latest", 3, [0, 3], ""),
        ("none", 3, [0, 1], "no label (differing grades settle to none); grades differ by 1"),
        ("none", 0, [None, 2], ""),
        ("none", 0, [None, None], ""),
    ],
)
def test_a_pair_waits_for_want_of_a_label_or_beyond_the_tolerance(
    evalset, policy, tolerance, grades, because
) -> None:
    evalset.settle_policy, evalset.adjudication_tolerance = policy, tolerance
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    for minute, grade in enumerate(grades):
        judge(question, chunk, grade, by=f"file:{minute}", at=minute)
    [pair] = settled_pairs(evalset)
    assert why_it_waits(pair, evalset) == because
    assert bool(waiting_pairs(evalset)) == bool(because)
    assert read_queue(evalset).counts == (int(bool(because)), int(set(grades) == {None}))


def test_a_decided_pair_waits_no_more_however_far_apart(evalset, carol) -> None:
    evalset.settle_policy = "median"
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 0, by="file:a")
    judge(question, chunk, 3, by="file:b")
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=1, by=carol, key=uuid.uuid4())
    assert waiting_pairs(evalset) == []


def test_the_queue_goes_on_after_a_pair_and_from_the_front_at_its_end(evalset, carol, client_for) -> None:
    questions, chunks = make_questions(evalset, "q1", "q2"), make_chunks(evalset, "a", "b")
    for question in questions:
        for chunk in chunks:
            judge(question, chunk, 0, by="file:a")
            judge(question, chunk, 3, by="file:b")
    order = [(pair.question_id, pair.chunk_id) for pair in waiting_pairs(evalset)]
    client, seen, address = client_for(carol), [], "/e/handbook/contested/next/"
    for _ in range(5):
        page = client.get(address, follow=True)
        seen.append((page.context["question"].pk, page.context["chunk"].pk))
        address = page.context["next_address"]
    assert seen == [*order, order[0]]
    assert client.get("/e/handbook/contested/next/?after=x-y", follow=True).context["chunk"] == chunks[0]
    assert [row[3] for row in client.get("/e/handbook/contested/").context["rows"]] == [
        "no label (no grade has a majority); grades differ by 3"
    ] * 4


# Blind.


def test_what_was_said_stands_by_grade_and_its_order_does_not_follow_who_came_first(
    evalset, alice, bob
) -> None:
    [question] = make_questions(
        evalset, "q1", facts=[{"id": "f1", "text": "30 days"}, {"id": 2, "text": "Free"}]
    )
    orders = set()
    for number in range(12):
        [chunk] = make_chunks(evalset, f"c{number}")
        judge(question, chunk, 2, by=bob, at=1, facts=["f1"])
        judge(question, chunk, 2, by=alice, at=2)
        judge(question, chunk, None, by="file:old", kind="cannot-judge", reason="broken-text")
        judge(question, chunk, 0, by="file:new", at=3, facts=["f1", "2"])
        judge(question, chunk, 1, by="model:judge")
        pair = blind_pair(question, chunk, chunk.revisions.get())
        assert [(one.letter, one.judgment.grade) for one in pair.said] == [
            ("A", 0),
            ("B", 2),
            ("C", 2),
            ("D", None),
        ]
        orders.add(tuple(one.judgment.assessor.name for one in pair.said[1:3]))
        ticked = dict(pair.facts)
        assert ticked["Free"] == "A"
        assert ticked["30 days"] in ("AB", "AC")
    assert orders == {("alice", "bob"), ("bob", "alice")}


def test_marked_evidence_stands_in_the_text_with_letters(evalset, alice, bob) -> None:
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1", text=False)
    text = "Refunds <b>within</b> 30 days."
    add_revision(chunk, text, number=1)
    judge(question, chunk, 1, by=alice, spans=[{"start": 0, "end": 16, "text": text[0:16]}])
    judge(question, chunk, 3, by=bob, spans=[{"start": 8, "end": 29, "text": text[8:29]}])
    pair = blind_pair(question, chunk, chunk.revisions.get())
    [passage] = pair.passages
    assert passage.pieces == [
        ("Refunds ", "A"),
        ("<b>withi", "AB"),
        ("n</b> 30 days", "B"),
        (".", ""),
    ]


def test_a_long_text_opens_where_something_is_marked(evalset, alice) -> None:
    [question], [chunk] = (
        make_questions(evalset, "q1", text="Refunds?"),
        make_chunks(evalset, "c1", text=False),
    )
    text = "Refunds. " + "x" * 50_000 + " Here it is." + "y" * 50_000
    add_revision(chunk, text, number=1)
    assert [passage.folded for passage in blind_pair(question, chunk, chunk.revisions.get()).passages] == [
        False,
        True,
    ]
    start = text.index("Here")
    judge(question, chunk, 3, by=alice, spans=[{"start": start, "end": start + 11, "text": "Here it is."}])
    passages = blind_pair(question, chunk, chunk.revisions.get()).passages
    assert [passage.folded for passage in passages] == [False, False]
    assert "".join(piece.text for passage in passages for piece in passage.pieces) == text


def test_the_page_tells_nobody_before_the_decision(contested, evalset, carol, client_for) -> None:
    page = client_for(carol).get(page_of(*contested)).content.decode()
    assert not re.search("alice|bob", page, re.IGNORECASE)
    assert "<mark>" not in page
    assert "no label (no grade has a majority); grades differ by 3" in page


# Undo.


def test_a_decision_is_taken_back_and_the_pair_waits_again(contested, evalset, carol, client_for) -> None:
    client, before = client_for(carol), settled_counts(evalset)
    client.post(page_of(*contested), {"decision": "2", "key": str(uuid.uuid4())})
    assert "Take it back" in client.get(page_of(*contested)).content.decode()
    key = str(uuid.uuid4())
    for _ in range(2):  # a double click is one act
        response = client.post(f"{page_of(*contested)}take-back/", {"key": key})
        assert response["Location"] == page_of(*contested)
    assert settled_counts(evalset) == before
    [pair] = waiting_pairs(evalset)
    assert (pair.grades, pair.skips) == ([3, 0], 0)
    assert "alice" not in client.get(page_of(*contested)).content.decode().lower()
    assert [event.verb for event in evalset.events.order_by("pk")] == [
        "pair-adjudicated",
        "decision-taken-back",
    ]
    assert [(row.kind, row.grade) for row in Judgment.objects.filter(source="adjudication")] == [
        ("grade", 2),
        ("skip", None),
    ]


def test_what_was_taken_back_is_no_word_on_the_pair_anywhere(contested, evalset, carol, client_for) -> None:
    question, chunk = contested
    for act in (lambda **pair: adjudicate(grade=None, **pair), take_decision_back):
        act(evalset=evalset, question=question, chunk=chunk, by=carol, key=uuid.uuid4())
    judge(question, make_chunks(evalset, "c2")[0], 1)
    release = publish_release(evalset=evalset, by=None).release
    lines = b"".join(cannot_judge_csv(release)).decode().splitlines()[1:]
    assert lines == ["q1,c1,contested,,,,,3 0"]
    page = client_for(carol).get(question.get_absolute_url())
    [judged] = [item for item in page.context["page"] if item.chunk == chunk]
    assert {judgment.source for judgment in judged.judgments} == {"desk"}


def test_what_was_never_decided_cannot_be_taken_back(contested, evalset, carol, client_for) -> None:
    question, chunk = contested
    with pytest.raises(BadInput, match="Nothing is decided for question q1, chunk c1"):
        take_decision_back(evalset=evalset, question=question, chunk=chunk, by=carol, key=uuid.uuid4())
    response = client_for(carol).post(
        f"{page_of(*contested)}take-back/", {"key": str(uuid.uuid4())}, follow=True
    )
    assert "Nothing is decided" in response.content.decode()
    assert not Judgment.objects.filter(source="adjudication").exists()


def test_a_changed_decision_replaces_the_first_and_both_are_shown(
    contested, evalset, carol, client_for
) -> None:
    question, chunk = contested
    for grade, note in ((1, "first thought"), (3, "second thought")):
        adjudicate(
            evalset=evalset,
            question=question,
            chunk=chunk,
            grade=grade,
            by=carol,
            key=uuid.uuid4(),
            note=note,
        )
    assert [decision.grade for decision in standing_decisions(question, chunk)] == [3]
    pair = blind_pair(question, chunk, chunk.revisions.get())
    assert [decision.note for decision in pair.decisions] == ["second thought", "first thought"]
    take_decision_back(evalset=evalset, question=question, chunk=chunk, by=carol, key=uuid.uuid4())
    assert not blind_pair(question, chunk, chunk.revisions.get()).decided
    adjudicate(evalset=evalset, question=question, chunk=chunk, grade=0, by=carol, key=uuid.uuid4())
    assert labels_of_question(question)[chunk.pk].label == 0
    assert [d.grade for d in blind_pair(question, chunk, chunk.revisions.get()).decisions] == [0]


def test_decided_pairs_are_listed_with_who_and_why(contested, carol, victor, client_for) -> None:
    client = client_for(carol)
    assert "Nothing was decided yet" in client.get("/e/handbook/contested/?why=decided").content.decode()
    client.post(page_of(*contested), {"decision": "2", "note": "The rule holds.", "key": str(uuid.uuid4())})
    page = client_for(victor).get("/e/handbook/contested/?why=decided").content.decode()
    assert "The rule holds." in page
    assert ">Change</a>" not in page
    client.post(f"{page_of(*contested)}take-back/", {"key": str(uuid.uuid4())})
    assert "Nothing was decided yet" in client.get("/e/handbook/contested/?why=decided").content.decode()


def test_one_goes_back_to_the_last_decision(contested, evalset, carol, client_for) -> None:
    question, chunk = contested
    [other] = make_chunks(evalset, "c2")
    judge(question, other, 0, by="file:a")
    judge(question, other, 3, by="file:b")
    client = client_for(carol)
    assert client.get(page_of(*contested)).context["last"] is None
    client.post(page_of(*contested), {"decision": "2", "key": str(uuid.uuid4())})
    page = client.get(page_of(question, other))
    assert page.context["last"].chunk == chunk
    assert f'href="{page_of(*contested)}" data-key="u"' in page.content.decode()


# The command.


def run(capsys, *arguments: str) -> dict:
    call_command("adjudicate", "handbook", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_the_command_lists_what_waits_decides_and_takes_back(contested, carol, capsys) -> None:
    pair = ("--question", "q1", "--chunk", "c1", "--by", "carol")
    assert run(capsys)["waiting"] == [
        {
            "question": "q1",
            "chunk": "c1",
            "grades": [0, 3],
            "label": None,
            "why": "no label (no grade has a majority); grades differ by 3",
        }
    ]
    assert run(capsys, *pair, "--grade", "0", "--note", "Why.") == {
        "question": "q1",
        "chunk": "c1",
        "label": 0,
        "settled_by": "adjudicated",
    }
    assert run(capsys)["waiting"] == []
    assert run(capsys, *pair, "--cannot-judge")["label"] is None
    assert run(capsys, *pair, "--take-back")["settled_by"] == "contested"
    call_command("adjudicate", "handbook")
    assert "1 pairs wait for a decision." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grade", "1"], "A decision needs --by"),
        (["--by", "carol", "--question", "q1", "--chunk", "c1"], "one of --grade"),
        (
            ["--by", "alice", "--question", "q1", "--chunk", "c1", "--grade", "1"],
            "alice does not lead handbook",
        ),
        (["--by", "carol", "--question", "q9", "--chunk", "c1", "--grade", "1"], "no question 'q9'"),
        (["--by", "carol", "--question", "q1", "--chunk", "c9", "--grade", "1"], "no chunk 'c9'"),
        (["--by", "carol", "--question", "q1", "--chunk", "c1", "--grade", "9"], "9 is not on the scale"),
        (["--by", "carol", "--question", "q1", "--chunk", "c1", "--take-back"], "Nothing is decided"),
    ],
)
def test_the_command_says_what_is_wrong(contested, carol, arguments, message) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        call_command("adjudicate", "handbook", *arguments)
    assert refused.value.returncode == 3
    assert not Judgment.objects.filter(source="adjudication").exists()


@pytest.mark.django_db(transaction=True)
def test_two_leads_at_once_make_one_chain(evalset, carol) -> None:
    [question], [chunk] = make_questions(evalset, "q1"), make_chunks(evalset, "c1")
    judge(question, chunk, 0, by="file:a")
    judge(question, chunk, 3, by="file:b")

    def decide(grade: int) -> None:
        try:
            adjudicate(
                evalset=evalset, question=question, chunk=chunk, grade=grade, by=carol, key=uuid.uuid4()
            )
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(decide, [0, 1, 2, 3] * 3))
    assert Judgment.objects.filter(source="adjudication").count() == 12
    assert standing_decisions(question, chunk).count() == 1
    assert len(blind_pair(question, chunk, chunk.revisions.get()).decisions) == 12


def test_pairs_to_decide_are_searched_and_sorted(evalset, victor, client_for) -> None:
    questions, chunks = make_questions(evalset, "q1", "q2"), make_chunks(evalset, "a", "b")
    for question, chunk in zip(questions, chunks[::-1], strict=True):
        judge(question, chunk, 0, by="file:a")
        judge(question, chunk, 3, by="file:b")
    client = client_for(victor)

    def listed(**address) -> list[str]:
        rows = client.get("/e/handbook/contested/", address).context["rows"]
        return [f"{question} {chunk}" for _, question, chunk, _ in rows]

    assert listed() == listed(sort="question") == ["q1 b", "q2 a"]
    assert listed(sort="chunk") == listed(sort="-question") == ["q2 a", "q1 b"]
    assert listed(q="Q1") == listed(q="b") == ["q1 b"]
    page = client.get("/e/handbook/contested/", {"q": "q9"}).content.decode()
    assert 'No pair here is of such a question or chunk. <a href="?why=waiting">Show all</a>' in page
    assert 'href="?q=q9&amp;why=decided"' in page


def test_decisions_are_searched_and_sorted(evalset, carol, client_for) -> None:
    chunks = make_chunks(evalset, "a", "b")
    for question, chunk, note in zip(
        make_questions(evalset, "q1", "q2"), chunks, ("The rule.", "Too old."), strict=True
    ):
        adjudicate(
            evalset=evalset, question=question, chunk=chunk, grade=1, note=note, key=uuid.uuid4(), by=carol
        )
    client = client_for(carol)

    def listed(**address) -> list[str]:
        page = client.get("/e/handbook/contested/", {"why": "decided", **address}).context["page"]
        return [decision.question.external_id for decision in page]

    assert listed() == listed(q="carol") == ["q2", "q1"]
    assert listed(sort="when") == ["q1", "q2"]
    assert listed(q="Q1") == listed(q="rule") == ["q1"]
    page = client.get("/e/handbook/contested/", {"why": "decided", "q": "zzz"}).content.decode()
    assert 'No decision is like that. <a href="?why=decided">Show all</a>' in page

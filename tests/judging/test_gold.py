"""Gold pairs: known answers mixed into a batch. They check assessors, and change neither labels nor counts."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from io import StringIO

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from evalsets.errors import BadInput
from evalsets.models import Event
from judging import batch_counts, batch_reads
from judging.models import Batch, Judgment
from judging.pair_states import read_pair_states
from judging.services.adjudication import adjudicate, take_decision_back
from judging.services.batches import cancel_batch, extend_batch, make_batch, remove_assessor
from judging.services.claims import claim_next
from judging.services.gold import Gold, decided_answers, gold_count
from pooling.rankings import RunToDepth
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run, make_user
from tests.judging.batches import batch_of, cannot_judge, grade, pair_of

Q1 = [f"c{n}" for n in range(8)]


@pytest.fixture
def known(tmp_path, evalset):
    """Writes a file of known answers."""

    def write(text: str):
        path = tmp_path / "answers.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def decided(evalset, carol):
    """Carol decided three pairs: q1/g1 is 2, q1/g2 is 0, q2/g1 is 3."""
    batch_of(evalset, {"q1": ["g1", "g2"], "q2": ["g1"]}, by=carol, assessors=[carol], name="Before")
    decide(evalset, carol, {("q1", "g1"): 2, ("q1", "g2"): 0, ("q2", "g1"): 3})
    cancel_batch(batch=Batch.objects.get(), by=carol)


def decide(evalset, by, grades):
    for (qid, cid), value in grades.items():
        question, chunk = evalset.questions.get(external_id=qid), evalset.chunks.get(external_id=cid)
        adjudicate(evalset=evalset, question=question, chunk=chunk, grade=value, by=by, key=uuid.uuid4())


def gold_of(batch) -> dict[str, int]:
    return {
        f"{pair.question.external_id}/{pair.chunk.external_id}": pair.gold_grade
        for pair in batch.pairs.gold()
    }


@pytest.mark.parametrize(
    ("share", "judgments", "people", "count"),
    [(0.1, 90, 1, 10), (0.5, 10, 1, 10), (0.05, 190, 2, 5), (0.05, 10_000, 50, 11), (0.01, 3, 4, 1)],
)
def test_gold_is_that_share_of_what_each_one_judges(share, judgments, people, count):
    assert gold_count(share, judgments, people) == count
    each = judgments / people
    if count > 1:
        assert count / (each + count) == pytest.approx(share, abs=0.01)


def test_decided_pairs_are_mixed_in_by_the_seed(evalset, decided, carol, alice, bob):
    def made(name, seed):
        pairs = {"q1": Q1, "q2": Q1}
        settings = {"assessors": [alice, bob], "name": name, "seed": seed, "gold": Gold(share=0.2)}
        return batch_of(evalset, pairs, by=carol, **settings)

    first = made("A", 3)
    assert gold_of(first).items() <= {"q1/g1": 2, "q1/g2": 0, "q2/g1": 3}.items()
    assert first.pairs.gold().count() == gold_count(0.2, 16, 2) == 2
    assert {pair.question.external_id for pair in first.pairs.gold()} == {"q1", "q2"}, "spread over questions"
    assert {pair.wanted for pair in first.pairs.gold()} == {2}
    places = [pair.gold_grade is not None for pair in first.pairs.order_by("batch_question", "position")]
    by_id = [pair.gold_grade is not None for pair in first.pairs.order_by("pk")]
    assert places == by_id, "the IDs follow the reading order and tell nothing"
    with pytest.raises(BadInput, match="lie in an open batch"):
        batch_of(evalset, {"q2": ["c9"]}, by=carol, assessors=[alice], name="X", gold=Gold(share=0.2))
    cancel_batch(batch=first, by=carol)
    assert gold_of(made("B", 3)) == gold_of(first)
    assert Event.objects.filter(verb="batch-made").first().details["gold_share"] == 0.2


def test_an_undecided_pair_and_cannot_judge_are_no_gold(evalset, decided, carol):
    decide(evalset, carol, {("q1", "g1"): None, ("q2", "g1"): 1})
    questions = evalset.questions.values_list("pk", flat=True)
    assert sorted(answer.grade for answer in decided_answers(evalset=evalset, questions=questions)) == [0, 1]


def test_what_everybody_has_read_before_is_no_check(evalset, decided, carol, alice, bob):
    early = batch_of(evalset, {"q1": ["g1", "g2"]}, by=carol, assessors=[alice, bob], name="Early")
    for cid in ("g1", "g2"):
        claim_next(batch=early, by=alice, count=9)
        grade(pair_of(early, "q1", cid), alice, 1)
    batch = batch_of(
        evalset, {"q1": Q1}, by=carol, assessors=[alice, bob], name="Later", gold=Gold(share=0.5)
    )
    assert {pair.wanted for pair in batch.pairs.gold()} == {1}, "only Bob can meet them"
    while tasks := claim_next(batch=batch, by=alice, count=1):
        assert tasks[0].pair.gold_grade is None
        grade(tasks[0].pair, alice, 1)
    with pytest.raises(BadInput, match="judged by each of these assessors"):
        batch_of(evalset, {"q1": ["new"]}, by=carol, assessors=[alice], name="Last", gold=Gold(share=0.5))


def test_without_a_decision_there_is_no_gold(evalset, carol, alice):
    with pytest.raises(BadInput, match="No pair of these questions was decided"):
        batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice], gold=Gold(share=0.1))
    assert not Batch.objects.exists()


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_a_share_outside_is_refused(evalset, decided, carol, alice, share):
    with pytest.raises(BadInput, match="above 0 and below 1"):
        batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice], gold=Gold(share=share))


@pytest.mark.parametrize(
    "text", ["# known\nq1 g1 2\nq1 c0 0\nq2 g2 1\nq1 bare 1\n", "q1 0 g1 2\nq1 0 c0 0\nq2 0 g2 1\n"]
)
def test_a_file_of_known_answers_becomes_decisions(evalset, decided, carol, alice, bob, known, text):
    make_chunks(evalset, "bare", text=False)  # and q2 is no question of this batch
    gold = Gold(share=0.9, file=known(text), file_name="answers.txt")
    batch = batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice, bob], gold=gold)

    assert gold_of(batch) == {"q1/g1": 2, "q1/c0": 0}
    assert batch.pairs.ordinary().count() == 7, "an answer of a pair of the remainder takes its place"
    written = Judgment.objects.filter(source="adjudication", assessor__kind="file")
    assert [(j.chunk.external_id, j.grade) for j in written] == [("c0", 0)], "g1 was decided so before"
    assert written[0].assessor.name == "known answers answers.txt"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("q1 g1 3\n", "answer for q1, g1 is 3, but 2 was decided"),
        ("q1 g1 7\n", "0, 1, 2, 3"),
        ("q1 g1\n", "columns"),
        ("q1 g1 2\nq1 g 1 2\n", "three columns"),
        ("q1 g\u00a01 2\n", "U\\+00A0"),
        ("q1 g1 2\nq1 g1 1\n", "line"),
        ("q2 g2 1\n", "no answer for a question of this batch"),
        ("q1 g1 2\nq9 g1 1\n", "line 2: question 'q9'"),
        ("q1 g1 2\nq1 nowhere 1\n", "line 2: chunk 'nowhere'"),
        ("", "at least one"),
    ],
)
def test_a_file_that_is_wrong_is_refused_whole(evalset, decided, carol, alice, known, text, reason):
    decisions = Judgment.objects.count()
    gold = Gold(share=0.5, file=known(text))
    with pytest.raises(BadInput, match=reason):
        batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice], gold=gold)
    assert Judgment.objects.count() == decisions
    assert not Batch.objects.exclude(name="Before").exists()


def test_what_was_decided_to_be_impossible_is_no_gold_and_what_was_taken_back_may_be(
    evalset, decided, carol, alice, known
):
    decide(evalset, carol, {("q1", "g1"): None})
    gold = Gold(share=0.5, file=known("q1 g1 1\n"))
    with pytest.raises(BadInput, match="that it cannot be judged was decided"):
        batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice], gold=gold)
    question, chunk = evalset.questions.get(external_id="q1"), evalset.chunks.get(external_id="g1")
    take_decision_back(evalset=evalset, question=question, chunk=chunk, by=carol, key=uuid.uuid4())
    batch = batch_of(evalset, {"q1": Q1}, by=carol, assessors=[alice], name="Then", gold=gold)
    assert gold_of(batch) == {"q1/g1": 1}


@pytest.mark.parametrize("sharing", Batch.Sharing)
def test_each_assessor_meets_each_gold_pair_once(evalset, decided, carol, alice, bob, sharing):
    batch = batch_of(
        evalset, {"q1": Q1, "q2": Q1}, by=carol, assessors=[alice, bob], sharing=sharing, gold=Gold(share=0.2)
    )
    met = Counter()
    working = {alice, bob}
    while working:
        for user in sorted(working, key=str):
            tasks = claim_next(batch=batch, by=user)
            if not tasks:
                working.discard(user)
                continue
            grade(tasks[0].pair, user, 1)
            met[user.username, tasks[0].pair.gold_grade is not None] += 1
    assert met["alice", True] == met["bob", True] == 2
    assert met["alice", False] + met["bob", False] == 16
    assert not batch.pairs.filter(filled_at__isnull=True).exists()


@pytest.fixture
def checked(evalset, decided, carol, alice, bob):
    """q1 has c0 and c1 and two gold pairs; Alice graded all four."""
    gold = Gold(share=0.5)
    batch = batch_of(evalset, {"q1": ["c0", "c1"]}, by=carol, assessors=[alice, bob], gold=gold, seed=1)
    extend_batch(batch=batch, by=carol)
    claim_next(batch=batch, by=alice, count=9)
    for pair in batch.pairs.all():
        grade(pair, alice, 3)
    return batch


def test_gold_keeps_no_batch_open_and_fills_no_count(checked, bob):
    assert checked.pairs.gold().count() == 1
    assert Batch.objects.in_state("done").filter(pk=checked.pk).exists()
    assert not Batch.objects.open().filter(pk=checked.pk).exists()
    figures = batch_reads.batch_figures(checked)
    assert (figures.pairs, figures.filled, figures.wanted, figures.done, figures.left) == (2, 2, 2, 2, 0)
    assert (figures.gold_pairs, batch_counts.batch_totals(checked).gold_judged) == (1, 1)
    row = Batch.objects.with_progress().get(pk=checked.pk)
    assert (row.pair_count, row.filled_count, row.wanted_count) == (2, 2, 2)
    assert [row.count for row in batch_counts.grade_counts(checked)] == [0, 0, 0, 2]
    assert [(q.pair_count, q.filled_count) for q in batch_reads.question_rows(checked)] == [(2, 2)]


def test_gold_accuracy_is_exact_and_near_with_its_misses(evalset, decided, carol, alice, bob):
    batch = batch_of(
        evalset, {"q1": Q1, "q2": Q1}, by=carol, assessors=[alice, bob], gold=Gold(share=0.3), seed=1
    )
    assert gold_of(batch) == {"q1/g1": 2, "q1/g2": 0, "q2/g1": 3}
    for user, said in ((alice, (2, 1, 3)), (bob, (0, 0, None))):
        for (qid, cid), value in zip((("q1", "g1"), ("q1", "g2"), ("q2", "g1")), said, strict=True):
            pair = pair_of(batch, qid, cid)
            pair.tasks.create(assessor=batch.assessors.get(user=user), leased_until="2099-01-01T00:00Z")
            cannot_judge(pair, user) if value is None else grade(pair, user, value)

    counts = batch_counts.assessor_counts(batch)
    rows = {user: counts[batch.assessors.get(user=user).pk] for user in (alice, bob)}
    assert (rows[alice].gold, rows[alice].gold_exact, rows[alice].gold_near) == (3, 2, 3)
    assert (rows[bob].gold, rows[bob].gold_exact, rows[bob].gold_near) == (2, 1, 1)
    assert rows[alice].judged == 0, "gold is not among what the batch asks for"
    misses = batch_reads.gold_misses(batch)
    assert {(m.assessor.user, m.chunk.external_id, m.grade, m.pair.gold_grade) for m in misses} == {
        (alice, "g2", 1, 0),
        (bob, "g1", 0, 2),
    }
    decide(evalset, carol, {("q1", "g2"): 1})
    assert batch_reads.gold_misses(batch).count() == 2, (
        "Bob's 0 misses the known answer that was decided anew"
    )
    assert {m.assessor.user for m in batch_reads.gold_misses(batch)} == {bob}


def test_adding_and_removing_assessors_changes_who_meets_gold(checked, evalset, carol, alice, bob):
    gold = checked.pairs.gold().get()
    assert gold.wanted == 2
    dora = make_user("dora")
    evalset.members.create(user=dora, role="assessor")
    extend_batch(batch=checked, by=carol, assessors=[dora])
    gold.refresh_from_db()
    assert (gold.wanted, gold.filled_at) == (3, None)
    remove_assessor(batch=checked, by=carol, assessor=checked.assessors.get(user=dora))
    remove_assessor(batch=checked, by=carol, assessor=checked.assessors.get(user=bob))
    gold.refresh_from_db()
    assert gold.wanted == 1
    assert gold.filled_at


def test_gold_stays_with_the_text_whose_answer_is_known(evalset, decided, carol, alice):
    batch = batch_of(evalset, {"q1": ["c0"]}, by=carol, assessors=[alice], gold=Gold(share=0.5))
    chunk = batch.pairs.gold().get().chunk
    chunk.revisions.create(number=2, text="another text", text_hash="x")
    evalset.chunks.filter(pk=chunk.pk).update(revision=2)
    claim_next(batch=batch, by=alice, count=9)
    assert batch.pairs.gold().get().revision == 1


def test_gold_is_neither_queued_nor_taken_from_the_remainder(evalset, decided, carol, alice):
    batch = batch_of(evalset, {"q1": ["c0"]}, by=carol, assessors=[alice], gold=Gold(share=0.5))
    states = read_pair_states(evalset, np.sort(np.array(evalset.questions.values_list("pk", flat=True))))
    assert len(states.queued) == 1
    assert len(states.judged) == 3
    assert batch.pairs.count() == 2


# Pages and the command.


@pytest.fixture
def pool(evalset, carol):
    """q1 with c0 to c7, of one run; c0 is decided as 1 and c1 as 0."""
    make_questions(evalset, "q1")
    make_chunks(evalset, *Q1, "g1")
    run = make_run(evalset, "bm25", {"q1": Q1})
    pool = build_pool(evalset=evalset, name="first", runs=[RunToDepth(run, 10)], by=carol, seed=5)[0]
    decide(evalset, carol, {("q1", "c0"): 1, ("q1", "c1"): 0})
    return pool


def form(pool, people, **more):
    return {
        "pool": pool.pk,
        "name": "Week 1",
        "assessors": [user.pk for user in people],
        "sharing": "by-question",
        "overlap": 2,
        "overlap_percent": 0,
        "lease_minutes": 20,
        "gold_percent": 25,
        **more,
    }


def test_a_batch_with_decided_gold_from_the_page(pool, evalset, carol, alice, client_for):
    client, url = client_for(carol), reverse("judging:batch-new", args=[evalset.slug])
    fields = form(pool, [alice], gold="decided")
    cost = client.get(url, fields, headers={"HX-Request": "true"}).content.decode()
    assert "2 pairs of these questions are decided and can be drawn as gold" in cost
    assert ">6<small>with overlap, gold aside" in cost
    assert client.post(url, fields).status_code == 302
    assert gold_of(Batch.objects.get()) == {"q1/c0": 1, "q1/c1": 0}


def test_a_batch_with_a_file_of_gold_from_the_page(pool, evalset, carol, alice, client_for):
    client, url = client_for(carol), reverse("judging:batch-new", args=[evalset.slug])
    upload = SimpleUploadedFile("known.tsv", b"q1\tg1\t3\n")
    assert client.post(url, form(pool, [alice], gold="file", gold_file=upload)).status_code == 302
    batch = Batch.objects.get()
    assert gold_of(batch) == {"q1/g1": 3}
    html = client.get(batch.get_absolute_url()).content.decode()
    assert "1 gold pair, for each assessor, is mixed in" in html


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"gold": "file"}, "Choose the file"),
        ({"gold": "decided", "gold_percent": "0"}, "above 0 and at most 50"),
        ({"gold": "decided", "gold_percent": ""}, "above 0 and at most 50"),
        ({"gold": "file", "gold_file": SimpleUploadedFile("x.txt", b"q1 g1 9\n")}, "one of 0, 1, 2, 3"),
    ],
)
def test_gold_that_cannot_be_is_said_at_the_form(pool, evalset, carol, alice, client_for, more, said):
    url = reverse("judging:batch-new", args=[evalset.slug])
    response = client_for(carol).post(url, form(pool, [alice], **more))
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Batch.objects.exists()


def test_the_page_lists_the_misses_to_the_lead(pool, evalset, carol, alice, client_for):
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice], gold=Gold(share=0.25))
    for task in claim_next(batch=batch, by=alice, count=9):
        if task.pair.gold_grade is not None:
            grade(task.pair, alice, 3)
    html = client_for(carol).get(batch.get_absolute_url()).content.decode()
    assert "Gold pairs missed" in html
    assert "0 % <span" in html
    assert html.count("Decide anew") == 1 + 2, "the column's heading and a link for each miss"


def test_nothing_at_the_desk_tells_a_gold_pair(pool, evalset, carol, alice, client_for):
    batch = make_batch(pool=pool, name="Week 1", by=carol, assessors=[alice], gold=Gold(share=0.25))
    gold = set(batch.pairs.gold().values_list("pk", flat=True))
    client, place = client_for(alice), [evalset.slug, batch.pk]
    fields, pages = {True: set(), False: set()}, []
    payload = client.post(reverse("judging:desk-next", args=place), headers={"Accept": "application/json"})
    while shown := payload.json()["next"]:
        pages += [payload.content.decode(), client.get(reverse("judging:desk", args=place)).content.decode()]
        for item in shown:
            html = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9]{64}|\d", "", item["html"])
            shape = (tuple(sorted(item.keys() - {"given"})), html.replace("Text of g", "Text of c"))
            fields[item["pair"] in gold].add(shape)
        act = {"pair": shown[0]["pair"], "key": uuid.uuid4(), "as_user": alice.pk, "act": "grade:1"}
        payload = client.post(
            reverse("judging:desk-save", args=place), act, headers={"Accept": "application/json"}
        )
    assert fields[True] == fields[False], "the pages of gold pairs have no sign of their own"
    assert not any(re.search("gold|known answer|decided|adjudic", page, re.IGNORECASE) for page in pages)


def command(*arguments: str) -> dict:
    out = StringIO()
    call_command("make_batch", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_the_command_mixes_gold_in(pool, evalset, alice, known):
    arguments = [evalset.slug, "first", "--assessor", "alice", "--gold-share", "0.25"]
    said = command(*arguments, "--name", "A", "--gold", "decided")
    assert (said["pairs"], said["judgments"], said["gold_pairs"]) == (6, 6, 2)
    cancel_batch(batch=Batch.objects.get(), by=None)
    said = command(*arguments, "--name", "B", "--gold", str(known("q1 g1 2\n")))
    assert said["gold_pairs"] == 1
    cancel_batch(batch=Batch.objects.get(name="B"), by=None)
    with pytest.raises(CommandError, match="line 1: question 'q7'") as error:
        command(*arguments, "--name", "C", "--gold", str(known("q7 g1 2\n")))
    assert error.value.returncode == 3

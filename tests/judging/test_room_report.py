"""The room of a large batch: what a job worked out beside what is of this moment, both as a small batch shows them."""

from __future__ import annotations

import datetime
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsets.models import ChunkRevision
from judging import reckoning
from judging.batch_reads import said_lately
from judging.models import Batch, Judgment
from judging.room_report import room_report
from judging.services.claims import claim_next
from judging.services.gold import Gold
from labels.services.reckoning import reckon
from tests.judging.batches import batch_of, cannot_judge, grade, let_leases_end, pair_of, places_by_pair, skip
from tests.labels.test_reckoning import main_part


@pytest.fixture
def batch(evalset, carol, alice, bob, tmp_path, monkeypatch) -> Batch:
    """As if it were a large one. Alice grades fast, misses a known answer and is late once; all skip one pair."""
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 1)
    answers = tmp_path / "known.txt"
    answers.write_text("q1 known 3\n")
    batch_of(evalset, {"q0": ["known"]}, by=carol, assessors=[carol], name="Before")
    names = [f"c{n}" for n in range(24)]
    batch = batch_of(
        evalset,
        {"q1": names, "q2": names, "q3": ["c1", "c2"]},
        by=carol,
        assessors=[alice, bob],
        overlap=2,
        overlap_share=0.3,
        gold=Gold(share=0.01, file=answers),
        seed=1,
    )
    ChunkRevision.objects.filter(chunk__evalset=evalset).update(text="A sentence of some length. " * 20)
    for number, task in enumerate(claim_next(batch=batch, by=alice, count=25)):
        grade(task.pair, alice, number % 3, seconds=0.5)
    held = [task.pair for task in claim_next(batch=batch, by=alice, count=24)]
    let_leases_end(batch)
    for number, task in enumerate(claim_next(batch=batch, by=bob, count=24)):
        grade(task.pair, bob, number % 4, seconds=20)
    late = next(p for p in held if p.wanted == 1 and p.judgments.filter(assessor__user=bob).exists())
    assert grade(late, alice).extra
    grade(pair_of(batch, "q1", "c2"), alice, 1)
    for user, cid, say in ((alice, "c1", skip), (bob, "c1", skip), (bob, "c2", cannot_judge)):
        pair, assessor = pair_of(batch, "q3", cid), batch.assessors.get(user=user)
        pair.tasks.create(assessor=assessor, leased_until="2099-01-01T00:00Z")
        say(pair, user)
    return batch


def worked_out(batch: Batch) -> None:
    reckon(evalset=batch.evalset, reports=[f"room:{batch.pk}"])


def what_is_shown(html: str) -> str:
    return main_part(re.sub(r'<p class="[^"]*">Progress, pace, .*?</p>', "", html))


def test_a_large_batch_shows_what_a_small_one_shows(batch, carol, client_for, monkeypatch) -> None:
    worked_out(batch)
    client, address = client_for(carol), batch.get_absolute_url()
    kept = client.get(address)
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 1000)
    live = client.get(address)
    assert (kept.context["as_of"] is None, live.context["as_of"] is None) == (False, True)
    assert what_is_shown(kept.content.decode()) == what_is_shown(live.content.decode())
    assert kept.context["room"] == live.context["room"]

    room, figures = live.context["room"], live.context["figures"]
    assert figures.done == sum(places_by_pair(batch)[pair.pk] for pair in batch.pairs.ordinary())
    assert (room.totals.extra, room.stuck, figures.skipped, figures.cannot_judge) == (1, 1, 2, 1)
    shown = (room.timeline.steps, live.context["hints"], live.context["misses"], room.totals.gold_judged)
    assert all(shown), "what is compared is there"


def test_before_they_are_worked_out_the_page_shows_what_is_of_this_moment(
    batch, carol, victor, client_for
) -> None:
    for user in (carol, victor):
        page = client_for(user).get(batch.get_absolute_url())
        html = page.content.decode()
        assert page.context["figures"].done > 0
        assert {row.lately.judged > 0 for row in page.context["assessors"]} == {True}
        assert "are worked out when a lead asks for it" in html
        assert ("Work them out</button>" in html) == (user == carol)
        assert not [
            word
            for word in ("Median time</dt>", "Grades given", "Extra</th>", "has not begun")
            if word in html
        ]
        assert "Skipped, and found impossible to judge" in html


def test_progress_and_skips_go_on_while_what_was_worked_out_stays(batch, carol, bob, client_for) -> None:
    worked_out(batch)
    client, address = client_for(carol), batch.get_absolute_url()
    before = client.get(address).context
    [first, second] = claim_next(batch=batch, by=bob, count=2)
    grade(first.pair, bob, 2)
    skip(second.pair, bob, "other")
    after = client.get(address)
    assert after.context["figures"].done == before["figures"].done + 1
    assert after.context["figures"].skipped == before["figures"].skipped + 1
    assert after.context["skips"][0].pair == second.pair
    lately = {row.assessor.user: row.lately for row in after.context["assessors"]}
    assert lately[bob].last_at == Judgment.objects.latest("pk").judged_at
    assert after.context["room"] == before["room"]
    assert "something has changed since" in after.content.decode()


def test_a_large_batch_is_not_read_whole(batch, carol, client_for, monkeypatch) -> None:
    client, address = client_for(carol), batch.get_absolute_url()

    def statements() -> set[str]:
        with CaptureQueriesContext(connection) as captured:
            client.get(address, headers={"HX-Request": "true"})
        return {query["sql"] for query in captured}

    with CaptureQueriesContext(connection) as captured:
        room_report(batch.evalset, batch.pk)
    whole = {query["sql"] for query in captured[1:]}
    assert not statements() & whole
    worked_out(batch)
    assert not statements() & whole
    monkeypatch.setattr(reckoning, "JUDGMENTS_AT_ONCE", 1000)
    assert statements() >= whole, "all of it in a small batch"


def test_what_was_said_more_than_an_hour_ago_is_not_of_late(batch, alice, bob) -> None:
    assessor = batch.assessors.get(user=alice)
    pair = batch.pairs.filter(filled_at__isnull=True).exclude(judgments__assessor=assessor).first()
    before = said_lately(batch.evalset_id, [batch])[assessor.pk]
    Judgment.objects.create(
        evalset_id=batch.evalset_id, question_id=pair.question_id, chunk_id=pair.chunk_id, revision=pair.revision,
        pair=pair, assessor=assessor, grade=1, judged_at=timezone.now() - datetime.timedelta(minutes=61),
    )  # fmt: skip
    assert said_lately(batch.evalset_id, [batch])[assessor.pk] == before

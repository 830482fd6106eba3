"""Verdicts on two chunks and the classes that follow: joined, refused with the chain, split again, safe at once."""

from __future__ import annotations

import random
import threading
import uuid
from datetime import date

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from evalsets.errors import BadInput, Refused
from evalsets.models import Chunk, Event
from judging.class_graph import Link, classes
from judging.models import ChunkClass, ClassMember, PairVerdict
from judging.services.verdicts import give_verdict, standing_verdict
from tests.conftest import add_revision, make_chunks

SAME, DIFFERENT, NONE = PairVerdict.Verdict.SAME, PairVerdict.Verdict.DIFFERENT, PairVerdict.Verdict.NONE
FIRST_NEWER, SECOND_NEWER = PairVerdict.Verdict.FIRST_NEWER, PairVerdict.Verdict.SECOND_NEWER


def classes_now() -> list[set[str]]:
    return sorted(
        ({member.chunk.external_id for member in found.members.all()} for found in ChunkClass.objects.all()),
        key=sorted,
    )


@pytest.fixture
def chunks(evalset) -> list[Chunk]:
    return make_chunks(evalset, "a", "b", "c", "d", "e")


def test_same_joins_and_joins_on(chunks, alice, carol):
    a, b, c, d, _ = chunks
    assert give_verdict(first=a, second=b, verdict=SAME, by=alice).after == [["a", "b"]]
    give_verdict(first=d, second=c, verdict=SAME, by=carol)
    given = give_verdict(first=b, second=c, verdict=SAME, by=carol)

    assert (given.before, given.after) == ([["a", "b"], ["c", "d"]], [["a", "b", "c", "d"]])
    assert classes_now() == [{"a", "b", "c", "d"}]
    assert Event.objects.filter(verb="classes-changed").count() == 3
    assert given.sentence == "Classes before: a, b; c, d. Classes now: a, b, c, d."


def test_taking_a_verdict_back_splits_the_class(chunks, alice):
    a, b, c, d, _ = chunks
    for first, second in ((a, b), (b, c), (c, d)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)

    given = give_verdict(first=c, second=b, verdict=NONE, by=alice)

    assert given.after == [["a", "b"], ["c", "d"]]
    assert give_verdict(first=a, second=b, verdict=NONE, by=alice).after == []
    assert classes_now() == [{"c", "d"}]
    assert PairVerdict.objects.count() == 5


def test_a_class_held_together_by_another_verdict_stays(chunks, alice):
    a, b, c, *_ = chunks
    for first, second in ((a, b), (b, c), (a, c)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)
    assert give_verdict(first=a, second=b, verdict=NONE, by=alice).after == [["a", "b", "c"]]


def test_an_earlier_and_a_later_policy_stay_apart_and_the_chain_is_named(chunks, alice):
    a, b, c, d, _ = chunks
    give_verdict(first=a, second=b, verdict=FIRST_NEWER, by=alice)
    give_verdict(first=c, second=a, verdict=SAME, by=alice)
    give_verdict(first=b, second=d, verdict=SAME, by=alice)

    with pytest.raises(Refused) as refused:
        give_verdict(first=d, second=c, verdict=SAME, by=alice)

    assert str(refused.value) == (
        "c and d cannot be one class: c has the content of a; a replaces b; b has the content of d. "
        "Take one of these back first, if it is wrong."
    )
    assert classes_now() == [{"a", "c"}, {"b", "d"}]


def test_a_newer_verdict_is_refused_within_a_class_and_against_the_order(chunks, alice):
    a, b, c, d, _ = chunks
    for first, second, verdict in ((a, b, SAME), (b, d, SAME), (b, c, FIRST_NEWER)):
        give_verdict(first=first, second=second, verdict=verdict, by=alice)
    with pytest.raises(Refused, match="d cannot replace a: d has the content of b; b has the content of a"):
        give_verdict(first=d, second=a, verdict=FIRST_NEWER, by=alice)
    with pytest.raises(Refused, match="c cannot replace a: a has the content of b; b replaces c"):
        give_verdict(first=a, second=c, verdict=SECOND_NEWER, by=alice)
    with pytest.raises(Refused, match="a and d cannot be different: a has the content of b; b has"):
        give_verdict(first=d, second=a, verdict=DIFFERENT, by=alice)


def test_which_one_is_newer_does_not_depend_on_the_order_of_the_keys(chunks, alice):
    a, b, *_ = chunks
    given = give_verdict(first=b, second=a, verdict=FIRST_NEWER, by=alice)
    assert (given.verdict.first, given.verdict.verdict) == (a, SECOND_NEWER)
    assert give_verdict(first=a, second=b, verdict=SECOND_NEWER, by=alice).created is False


def test_a_later_verdict_on_the_same_pair_takes_the_place_of_the_earlier(chunks, alice):
    a, b, *_ = chunks
    give_verdict(first=a, second=b, verdict=SAME, by=alice)
    given = give_verdict(first=a, second=b, verdict=FIRST_NEWER, by=alice)
    assert (given.before, given.after) == ([["a", "b"]], [])
    assert standing_verdict(b, a).verdict == FIRST_NEWER


def test_different_keeps_apart_through_a_third(chunks, alice):
    a, b, c, *_ = chunks
    give_verdict(first=a, second=b, verdict=DIFFERENT, by=alice)
    give_verdict(first=b, second=c, verdict=SAME, by=alice)
    with pytest.raises(
        Refused, match="a and c cannot be one class: a differs from b; b has the content of c"
    ):
        give_verdict(first=a, second=c, verdict=SAME, by=alice)


def test_differing_periods_keep_apart(evalset, chunks, alice):
    a, b, c, *_ = chunks
    add_revision(a, "Refunds.", effective_from=date(2019, 1, 1), effective_to=date(2020, 12, 31))
    add_revision(b, "Refunds.", effective_from=date(2021, 1, 1))
    give_verdict(first=a, second=c, verdict=SAME, by=alice)
    with pytest.raises(Refused, match="b is valid in another period than a; a has the content of c"):
        give_verdict(first=c, second=b, verdict=SAME, by=alice)


def test_a_new_text_leaves_its_class_and_what_hung_on_it_comes_apart(chunks, alice):
    a, b, c, d, _ = chunks
    for first, second in ((a, b), (b, c), (c, d)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)

    add_revision(b, "Another text.")

    assert classes_now() == [{"c", "d"}]
    assert standing_verdict(a, b) is None
    give_verdict(first=a, second=Chunk.objects.get(pk=b.pk), verdict=SAME, by=alice)
    assert classes_now() == [{"a", "b"}, {"c", "d"}]


def test_supersession_outlives_a_new_text(chunks, alice):
    a, b, *_ = chunks
    give_verdict(first=a, second=b, verdict=FIRST_NEWER, by=alice)
    add_revision(b, "Another text.")
    b.refresh_from_db()
    assert standing_verdict(a, b).verdict == FIRST_NEWER


def test_one_act_is_one_verdict_however_often_it_is_sent(chunks, alice, bob):
    a, b, *_ = chunks
    key = uuid.uuid4()
    assert give_verdict(first=a, second=b, verdict=SAME, by=alice, key=key).created
    assert not give_verdict(first=a, second=b, verdict=SAME, by=alice, key=key).created
    assert not give_verdict(first=a, second=b, verdict=SAME, by=bob).created
    assert PairVerdict.objects.count() == 1


def test_bad_pairs(evalset, other_evalset, chunks, alice):
    a = chunks[0]
    [ghost] = make_chunks(evalset, "ghost", text=False)
    [stranger] = make_chunks(other_evalset, "a")
    for second, message in ((a, "with itself"), (ghost, "has no text"), (stranger, "two eval sets")):
        with pytest.raises(BadInput, match=message):
            give_verdict(first=a, second=second, verdict=SAME, by=alice)


def test_the_database_holds_a_chunk_to_one_class(evalset, chunks, alice):
    give_verdict(first=chunks[0], second=chunks[1], verdict=SAME, by=alice)
    other = ChunkClass.objects.create(evalset=evalset)
    with pytest.raises(IntegrityError, match="chunk_id"), transaction.atomic():
        ClassMember.objects.create(chunk_class=other, chunk=chunks[0])


def test_verdicts_are_append_only(chunks, alice):
    give_verdict(first=chunks[0], second=chunks[1], verdict=SAME, by=alice)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        PairVerdict.objects.update(verdict="none")


def set_period(chunk: Chunk, first: date | None) -> None:
    chunk.revisions.current().update(effective_from=first)


def test_periods_that_come_to_differ_part_a_class(chunks, alice):
    a, b, c, *_ = chunks
    for first, second in ((a, b), (b, c)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)
    set_period(a, date(2023, 1, 1))
    assert classes_now() == [{"a", "b", "c"}]
    set_period(b, date(2024, 1, 1))
    assert classes_now() == [{"b", "c"}]
    set_period(a, date(2024, 1, 1))
    assert classes_now() == [{"a", "b", "c"}]


def test_what_has_no_dates_joins_no_two_periods(chunks, alice):
    a, b, c, d, _ = chunks
    for first, second in ((a, b), (b, c), (c, d)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)
    set_period(a, date(2023, 1, 1))
    set_period(d, date(2024, 1, 1))
    assert classes_now() == []


def test_a_text_that_comes_back_brings_its_class_back(chunks, alice):
    a, b, c, *_ = chunks
    for first, second in ((a, b), (b, c)):
        give_verdict(first=first, second=second, verdict=SAME, by=alice)
    add_revision(b, "another text")
    assert classes_now() == []
    give_verdict(first=a, second=c, verdict=SAME, by=alice)
    b.revision = 1
    b.save()
    assert classes_now() == [{"a", "b", "c"}]


def test_classes_follow_the_verdicts_whatever_is_said(evalset, alice):
    """The upkeep in the database, against components computed anew after each of many random verdicts."""
    draw = random.Random(7)
    chunks = make_chunks(evalset, *(f"c{n}" for n in range(9)))
    standing: dict[tuple[int, int], str] = {}
    refusals = 0
    for _ in range(120):
        first, second = sorted(draw.sample(chunks, 2), key=lambda chunk: chunk.pk)
        verdict = draw.choice([SAME, SAME, SAME, NONE, DIFFERENT, FIRST_NEWER])
        try:
            give_verdict(first=first, second=second, verdict=verdict, by=alice)
            standing[first.pk, second.pk] = verdict
        except Refused:
            refusals += 1
        links = [Link(a, b, "same") for (a, b), said in standing.items() if said == SAME]
        expected = [members for members in classes(links, [chunk.pk for chunk in chunks]) if len(members) > 1]
        found = [
            {member.chunk_id for member in made.members.all()}
            for made in ChunkClass.objects.prefetch_related("members")
        ]
        assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    assert refusals > 10


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_cannot_close_a_forbidden_chain(chunks, alice, bob):
    """a replaces b; one says b = c while the other says c = a. Only one of them may have it."""
    a, b, c, *_ = chunks
    give_verdict(first=a, second=b, verdict=FIRST_NEWER, by=alice)
    barrier, refused = threading.Barrier(2), []

    def say(first: Chunk, second: Chunk, by) -> None:
        barrier.wait()
        try:
            give_verdict(first=first, second=second, verdict=SAME, by=by)
        except Refused as refusal:
            refused.append(str(refusal))
        finally:
            connection.close()

    threads = [threading.Thread(target=say, args=args) for args in ((b, c, alice), (c, a, bob))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(refused) == 1
    assert "a replaces b" in refused[0]
    assert len(classes_now()) == 1

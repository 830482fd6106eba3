"""Copies: which texts are proposed, what a lead decides page by page, and labels that disagree within a class."""

from __future__ import annotations

import json
import uuid
from datetime import date
from itertools import combinations
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from evalsets.models import Job
from judging.models import ChunkClass, PairVerdict
from judging.services.verdicts import give_verdict
from labels.conflicts import label_conflicts
from labels.duplicates import equal_pairs, jaccard, near_pairs, shingles_of
from labels.models import DuplicateCandidate
from labels.services.duplicates import chunks_in_play, find_duplicates, find_equal, join_equal
from labels.tasks import find_duplicates_job
from pooling.models import Pool, PoolQuestion
from tests.conftest import add_revision, make_chunks, make_questions
from tests.labels.builders import judge, make_class

SAME = PairVerdict.Verdict.SAME

REFUNDS = {
    "a1": "Refunds are paid within 14 days.",
    "b7": "Refunds are paid within 14 days.",
    "c3": "REFUNDS are  paid, within 14 days",
    "d4": "Refunds are paid within 30 days.",
    "e5": "Our offices are closed on Sundays and public holidays.",
}


def test_equal_but_for_case_space_and_punctuation():
    assert list(equal_pairs(enumerate(REFUNDS.values()))) == [(0, 1), (0, 2)]


@pytest.mark.parametrize("texts", [["", ""], ["...", "!?"], [" \n", "–"]])
def test_texts_without_a_word_are_equal_to_nothing(texts):
    assert list(equal_pairs(enumerate(texts))) == []


def test_other_alphabets_are_words_too():
    assert list(equal_pairs(enumerate(["退款在14天内", "退款在30天内", "退款在14天内!"]))) == [(0, 2)]


def test_near_pairs_are_measured_exactly():
    long = (
        "When you return a device we check it within five working days and pay the money back to your account"
    )
    changed = long.replace("five", "seven")
    [pair] = near_pairs([(7, long), (3, REFUNDS["e5"]), (5, changed)])
    assert (pair.first, pair.second) == (7, 5)
    # Of the 18 runs of three words in each, three hold the changed word: 15 shared, 21 in all.
    assert pair.similarity == pytest.approx(15 / 21)


@given(st.lists(st.text(), max_size=8))
def test_near_pairs_never_come_below_the_bound_nor_twice(texts):
    pairs = list(near_pairs(enumerate(texts), near=0.5))
    assert len({(pair.first, pair.second) for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.first < pair.second
        assert (
            pair.similarity == jaccard(shingles_of(texts[pair.first]), shingles_of(texts[pair.second])) >= 0.5
        )


REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "policy-versions"


@pytest.mark.skipif(
    not REAL.exists(), reason="the collection lies beside the checkout only where it was put there"
)
def test_near_copies_of_real_policies_are_found():
    texts = [json.loads(line)["text"] for line in (REAL / "corpus_2026.jsonl").read_bytes().splitlines()]
    found = {(pair.first, pair.second) for pair in near_pairs(enumerate(texts))}
    shingled = enumerate(shingles_of(text) for text in texts)
    exact = {(a, b) for (a, one), (b, other) in combinations(shingled, 2) if jaccard(one, other) >= 0.8}
    assert exact
    assert len(found & exact) / len(exact) > 0.95


@pytest.fixture
def texts(evalset):
    """The five refund texts, all judged for q1, so all of them in play."""
    [question] = make_questions(evalset, "q1")
    chunks = make_chunks(evalset, *REFUNDS, text=False)
    for chunk, text in zip(chunks, REFUNDS.values(), strict=True):
        add_revision(chunk, text, number=1)
        judge(question, chunk, 1)
    return {chunk.external_id: chunk for chunk in chunks}


def open_pairs(evalset) -> list[tuple[str, str]]:
    pairs = DuplicateCandidate.objects.filter(evalset=evalset).open().select_related("first", "second")
    return [(pair.first.external_id, pair.second.external_id) for pair in pairs]


def test_candidates_are_looked_for_among_what_was_pooled_or_judged(evalset):
    q1, _ = make_questions(evalset, "q1", "q2")
    judged, pooled, _, ghost = (
        *make_chunks(evalset, "judged", "pooled", "other"),
        *make_chunks(evalset, "ghost", text=False),
    )
    judge(q1, judged, 0)
    judge(q1, ghost, 0)
    pool = Pool.objects.create(
        evalset=evalset, name="p", strategy="depth", seed=1, specification_hash="0" * 64
    )
    PoolQuestion.objects.create(
        pool=pool, question=q1, chunk_ids=[pooled.pk], return_counts=[1], returned_by=[0], returned_rank=[1]
    )
    assert chunks_in_play(evalset) == [judged.pk, pooled.pk]


def test_equal_pairs_come_at_once_and_near_ones_with_the_search(evalset, texts, carol):
    assert find_equal(evalset=evalset) == 2
    assert open_pairs(evalset) == [("a1", "b7"), ("a1", "c3")]

    found = find_duplicates(evalset=evalset, by=carol)

    assert (found.chunks, found.equal) == (5, 2)
    again = find_duplicates(evalset=evalset, by=carol)
    assert again == found


def test_chunks_may_have_come_in_any_order(evalset, texts, carol):
    """The first of two is the one with the lower ID in the database, whatever the files call them."""
    [earlier] = make_chunks(evalset, "z9", text=False)
    [later] = make_chunks(evalset, "a0", text=False)
    [question] = make_questions(evalset, "q2")
    for chunk in (earlier, later):
        add_revision(chunk, "Parcels are sent on Mondays only.", number=1)
        judge(question, chunk, 1)
    assert find_equal(evalset=evalset) == 3
    assert ("z9", "a0") in open_pairs(evalset)
    assert find_duplicates(evalset=evalset, by=carol).equal == 3


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        ((None, None), (date(2026, 1, 1), None), True),
        ((date(2026, 1, 1), None), (date(2026, 1, 1), None), True),
        ((date(2025, 1, 1), date(2025, 12, 31)), (date(2026, 1, 1), None), False),
        ((date(2026, 1, 1), date(2026, 12, 31)), (date(2026, 1, 1), None), False),
        ((None, date(2026, 1, 1)), (date(2026, 1, 1), None), False),
    ],
)
def test_texts_of_two_periods_need_nobodys_word(evalset, texts, first, second, asked):
    find_equal(evalset=evalset)
    for name, (since, until) in {"a1": first, "b7": second}.items():
        add_revision(texts[name], REFUNDS[name], effective_from=since, effective_to=until)
    find_equal(evalset=evalset)
    assert (("a1", "b7") in open_pairs(evalset)) == asked
    assert evalset.duplicate_candidates.apart_by_period().count() == (0 if asked else 1)


def test_what_is_decided_is_not_asked_again(evalset, texts, carol):
    find_equal(evalset=evalset)
    give_verdict(first=texts["a1"], second=texts["b7"], verdict=PairVerdict.Verdict.DIFFERENT, by=carol)
    assert open_pairs(evalset) == [("a1", "c3")]
    give_verdict(first=texts["a1"], second=texts["b7"], verdict=PairVerdict.Verdict.NONE, by=carol)
    assert open_pairs(evalset) == [("a1", "b7"), ("a1", "c3")]

    give_verdict(first=texts["b7"], second=texts["c3"], verdict=SAME, by=carol)
    give_verdict(first=texts["c3"], second=texts["a1"], verdict=SAME, by=carol)
    assert open_pairs(evalset) == []

    add_revision(texts["b7"], "Refunds are paid within 14 days")
    find_equal(evalset=evalset)
    assert open_pairs(evalset) == [("a1", "b7")]


def test_all_equal_pairs_at_once_but_those_that_verdicts_keep_apart(evalset, texts, carol):
    find_equal(evalset=evalset)
    give_verdict(first=texts["b7"], second=texts["c3"], verdict=PairVerdict.Verdict.FIRST_NEWER, by=carol)

    joined = join_equal(evalset=evalset, by=carol)

    assert joined.joined == 1
    assert "a1 and c3 cannot be one class" in joined.refused[0]
    assert ChunkClass.objects.get().members.count() == 2


def test_the_command_looks_and_joins_in_a_persons_name(evalset, texts, carol, capsys):
    give_verdict(first=texts["b7"], second=texts["c3"], verdict=PairVerdict.Verdict.FIRST_NEWER, by=carol)
    call_command("find_duplicates", "handbook", "--json")
    assert json.loads(capsys.readouterr().out) == {"chunks": 5, "equal": 2, "near": 0, "to_decide": 2}

    call_command("find_duplicates", "handbook", "--join-equal", "carol")

    said = capsys.readouterr().out
    assert "1 pairs were joined." in said
    assert "left apart: a1 and c3 cannot be one class" in said
    assert PairVerdict.objects.get(verdict=SAME).assessor.user == carol


def test_the_command_knows_its_people(evalset):
    with pytest.raises(CommandError, match="There is no user 'nobody'") as error:
        call_command("find_duplicates", "handbook", "--join-equal", "nobody")
    assert error.value.returncode == 3


def test_conflicts_of_labels_within_a_class(evalset):
    q1, q2 = make_questions(evalset, "q1", "q2")
    c1, c2, c3 = make_chunks(evalset, "c1", "c2", "c3")
    judge(q1, c1, 0)
    judge(q1, c2, 2)
    judge(q1, c3, 3)
    judge(q2, c1, 1)
    judge(q2, c2, 1)
    made = make_class(c2, c1)
    other = make_class(c3, *make_chunks(evalset, "c4"))

    assert label_conflicts(evalset, within=other) == []
    assert label_conflicts(evalset, within=made) == label_conflicts(evalset)
    [conflict] = label_conflicts(evalset)
    assert (conflict.question, conflict.class_id, conflict.chunks, conflict.labels) == (
        "q1",
        made.pk,
        ["c1", "c2"],
        [0, 2],
    )


BROKEN = {
    "candidate_pair_twice": {},
    "candidate_chunks_out_of_order": {"swap": True},
    "candidate_similarity_outside_0_1": {"similarity": 1.5},
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_constraint_of_a_candidate(evalset, texts, name):
    find_equal(evalset=evalset)
    first, second = (
        (texts["d4"], texts["e5"]) if name != "candidate_pair_twice" else (texts["a1"], texts["b7"])
    )
    if BROKEN[name].get("swap"):
        first, second = second, first
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        DuplicateCandidate.objects.create(
            evalset=evalset,
            first=first,
            first_revision=1,
            second=second,
            second_revision=1,
            similarity=BROKEN[name].get("similarity", 0.7),
            equal=False,
        )


# The pages.


@pytest.fixture
def lead(evalset, texts, carol, client_for):
    find_equal(evalset=evalset)
    return client_for(carol)


def text(response) -> str:
    assert response.status_code == 200
    return response.content.decode()


def test_the_list_says_what_is_left(lead):
    page = text(lead.get("/e/handbook/duplicates/"))
    assert "Call all 2 equal pairs the same content" in page
    assert "No class yet" in page


def test_going_through_the_candidates(evalset, lead):
    first, second = DuplicateCandidate.objects.filter(evalset=evalset)
    page = text(lead.get(first.get_absolute_url()))
    assert page.count('data-key="') == 5
    assert "What are these two to each other?" in page

    response = lead.post(f"{first.get_absolute_url()}verdict/", {"verdict": "same", "key": uuid.uuid4()})
    assert response["Location"] == f"{second.get_absolute_url()}?after={first.pk}"
    page = text(lead.get(response["Location"]))
    assert "a1 and b7: the same content." in page
    assert f'href="{first.get_absolute_url()}" data-key="u"' in page

    response = lead.post(
        f"{second.get_absolute_url()}verdict/", {"verdict": "different", "key": uuid.uuid4()}
    )
    assert response["Location"] == "/e/handbook/duplicates/"


def test_a_refused_verdict_names_the_chain_and_stays_on_the_pair(evalset, texts, lead, carol):
    give_verdict(first=texts["b7"], second=texts["c3"], verdict=PairVerdict.Verdict.FIRST_NEWER, by=carol)
    give_verdict(first=texts["a1"], second=texts["b7"], verdict=SAME, by=carol)
    candidate = DuplicateCandidate.objects.get(second=texts["c3"])

    response = lead.post(
        f"{candidate.get_absolute_url()}verdict/", {"verdict": "same", "key": uuid.uuid4()}, follow=True
    )

    assert response.redirect_chain == [(candidate.get_absolute_url(), 302)]
    assert "a1 and c3 cannot be one class: a1 has the content of b7; b7 replaces c3." in text(response)


def test_a_double_click_is_one_verdict(evalset, lead):
    candidate = DuplicateCandidate.objects.filter(evalset=evalset).first()
    form = {"verdict": "same", "key": uuid.uuid4()}
    for _ in range(2):
        assert lead.post(f"{candidate.get_absolute_url()}verdict/", form).status_code == 302
    assert PairVerdict.objects.count() == 1


@pytest.mark.parametrize(
    "form", [{}, {"verdict": "maybe", "key": str(uuid.uuid4())}, {"verdict": "same", "key": "x"}]
)
def test_a_verdict_that_is_none(evalset, lead, form):
    candidate = DuplicateCandidate.objects.filter(evalset=evalset).first()
    page = text(lead.post(f"{candidate.get_absolute_url()}verdict/", form, follow=True))
    assert "That is no verdict" in page
    assert not PairVerdict.objects.exists()


def test_a_class_says_what_taking_a_verdict_back_would_do(evalset, texts, lead, carol):
    give_verdict(first=texts["a1"], second=texts["b7"], verdict=SAME, by=carol)
    given = give_verdict(first=texts["b7"], second=texts["d4"], verdict=SAME, by=carol)
    made = ChunkClass.objects.get()
    page = lead.get(f"/e/handbook/classes/{made.pk}/")
    assert [item.parts for item in page.context["verdicts"]] == [
        [["a1"], ["b7", "d4"]],
        [["a1", "b7"], ["d4"]],
    ]

    page = text(lead.post(f"/e/handbook/verdicts/{given.verdict.pk}/take-back/", follow=True))
    assert "Taken back. Classes before: a1, b7, d4. Classes now: a1, b7." in page


@pytest.mark.django_db(transaction=True)
def test_the_search_is_a_job_and_equal_texts_are_there_at_once(evalset, texts, carol, client_for):
    response = client_for(carol).post("/e/handbook/duplicates/find/")
    job = Job.objects.get()
    assert response["Location"] == job.get_absolute_url()
    assert len(open_pairs(evalset)) == 2

    find_duplicates_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result["equal"]) == (Job.State.DONE, 2)


@pytest.mark.parametrize("who", ["alice", "victor"])
def test_only_a_lead_decides(evalset, lead, who, request, client_for):
    client = client_for(request.getfixturevalue(who))
    candidate = DuplicateCandidate.objects.filter(evalset=evalset).first()
    assert client.get("/e/handbook/duplicates/").status_code == 403
    assert client.get(candidate.get_absolute_url()).status_code == 403
    assert client.post(f"{candidate.get_absolute_url()}verdict/", {"verdict": "same"}).status_code == 403


def test_another_eval_sets_candidates_and_classes_are_not_found(
    evalset, lead, texts, carol, mallory, client_for
):
    candidate = DuplicateCandidate.objects.filter(evalset=evalset).first()
    given = give_verdict(first=texts["a1"], second=texts["b7"], verdict=SAME, by=carol)
    client = client_for(mallory)
    assert client.get(f"/e/elsewhere/duplicates/{candidate.pk}/").status_code == 404
    assert client.get(f"/e/elsewhere/classes/{ChunkClass.objects.get().pk}/").status_code == 404
    assert client.post(f"/e/elsewhere/verdicts/{given.verdict.pk}/take-back/").status_code == 404


def test_a_chunks_page_shows_what_verdicts_say_and_takes_new_ones(texts, lead):
    a1, b7, d4 = texts["a1"], texts["b7"], texts["d4"]
    address = a1.get_absolute_url()
    for verdict, other, words in (("same", "b7", "has the content of"), ("first-newer", "d4", "replaces")):
        form = {"verdict": verdict, "other": other, "key": uuid.uuid4()}
        assert words in text(lead.post(f"{address}verdict/", form, follow=True))
    response = lead.get(address)
    assert [(item.words, item.other) for item in response.context["relations"]] == [
        ("has the content of", b7),
        ("replaces", d4),
    ]
    assert "a class of chunks with the same content" in text(response)
    [seen_from_d4] = lead.get(d4.get_absolute_url()).context["relations"]
    assert (seen_from_d4.words, seen_from_d4.other) == ("is replaced by", a1)

    form = {"verdict": "same", "other": "A1", "key": uuid.uuid4()}
    assert "There is no chunk with the ID" in text(lead.post(f"{address}verdict/", form, follow=True))
    form = {"verdict": "same", "other": "a1", "key": uuid.uuid4()}
    assert "cannot be compared with itself" in text(lead.post(f"{address}verdict/", form, follow=True))

    back = lead.post(f"/e/handbook/verdicts/{seen_from_d4.verdict.pk}/take-back/", {"back": a1.pk})
    assert back["Location"] == address
    assert [item.words for item in lead.get(address).context["relations"]] == ["has the content of"]


def test_classes_are_searched_and_sorted_by_their_size(evalset, lead):
    chunks = make_chunks(evalset, "x1", "x2", "x3", "y1", "y2")
    make_class(*chunks[:3])
    make_class(*chunks[3:])

    def sizes(**address) -> list[int]:
        return [item.size for item in lead.get("/e/handbook/duplicates/", address).context["page"]]

    assert sizes() == [3, 2]
    assert sizes(sort="members") == [2, 3]
    assert sizes(q="X") == [3]
    assert "No class has such a chunk." in text(lead.get("/e/handbook/duplicates/", {"q": "z"}))


def test_the_members_of_a_large_class_are_paged_and_searched(evalset, lead):
    made = make_class(*make_chunks(evalset, *(f"c{number:02}" for number in range(23))))
    address = f"/e/handbook/classes/{made.pk}/"

    def shown(**asked) -> list[str]:
        return [chunk.external_id for chunk, _ in lead.get(address, asked).context["members"]]

    assert shown() == [f"c{number:02}" for number in range(20)]
    assert shown(page=2) == ["c20", "c21", "c22"]
    assert shown(q="C1") == [f"c{number}" for number in range(10, 20)]
    page = text(lead.get(address, {"q": "nowhere"}))
    assert "A class of 23 chunks" in page
    assert "No member matches" in page

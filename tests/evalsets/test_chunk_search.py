"""Searching chunks by a few letters: against a slow twin in Python, and through the indexes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.urls import reverse

from evalsets.models import Chunk, ChunkRevision
from evalsets.models import chunks as chunk_models
from tests.conftest import add_revision, make_chunks

pytestmark = pytest.mark.django_db

TEXTS = {
    "refunds#1": ("Refunds", "A refund is paid within 30 days.", "handbook/refunds"),
    "refunds#2": ("", "Shipping is never REFUNDED; 50% of it may be credited.", "handbook/refunds"),
    "zoll": ("Zölle", "Die Rückerstattung des Zolls dauert.", "zoll"),
    "退款": ("", "客户可以在三十天内申请退款。", ""),
    "überweisung": ("", "How money is sent.", ""),
    "a_b": ("C:\\path", "under_score and back\\slash", ""),
    "axb": ("", "The quick brown fox", "handbook"),
}
ASKED = [
    "refund", "REFUND", "fund", "re", "z", "0%", "_", "a_b", "\\", "zölle", "überweis", "ÜCKERST", "退款", "申请",
    "handbook/refunds", "handbook", "quick brown", "quick  brown", "'", '"', "%%", "refunds#",
]  # fmt: skip


@pytest.fixture
def chunks(evalset, other_evalset):
    for external_id, (title, text, doc_id) in TEXTS.items():
        [chunk] = make_chunks(evalset, external_id, text=False)
        add_revision(chunk, text, number=1, title=title, doc_id=doc_id)
    make_chunks(evalset, "without-text", text=False)
    make_chunks(other_evalset, "refunds#elsewhere")
    revised = Chunk.objects.get(external_id="axb")
    add_revision(revised, "It jumps, and is not what it was.")
    return evalset.chunks.all()


def found_slowly(chunks, asked: str) -> set[str]:
    """What to find, by comparing in capitals one by one."""
    found = set()
    for chunk in chunks:
        now = chunk.revisions.order_by("number").last()
        texts = [chunk.external_id, *((now.title, now.text) if now else ())]
        if any(asked.upper() in text.upper() for text in texts) or (now and now.doc_id == asked):
            found.add(chunk.external_id)
    return found


@pytest.mark.parametrize("asked", ASKED, ids=range(len(ASKED)))
def test_letters_are_found_wherever_they_stand(chunks, asked) -> None:
    assert {chunk.external_id for chunk in chunks.matching(asked)} == found_slowly(chunks, asked)


def test_some_of_the_questions_find_something_and_the_text_before_is_not_searched(chunks) -> None:
    assert {asked for asked in ASKED if found_slowly(chunks, asked)} >= {
        "fund",
        "申请",
        "0%",
        "handbook/refunds",
    }
    assert [chunk.external_id for chunk in chunks.matching("jumps")] == ["axb"]
    assert not chunks.matching("quick brown")


def test_the_page_searches_among_what_it_lists(chunks, victor, client_for) -> None:
    page, client = reverse("labels:chunk-list", args=["handbook"]), client_for(victor)

    def listed(**query: str) -> list[str]:
        return [chunk.external_id for chunk, _ in client.get(page, query).context["rows"]]

    assert listed(q="refund") == ["refunds#1", "refunds#2"]
    assert listed(q="a", only="revised") == ["axb"]
    assert listed(q="out", only="waiting") == ["without-text"]
    assert listed(q="nowhere") == []


def test_revised_chunks_alone_are_sorted_by_revision(chunks, victor, client_for) -> None:
    for text in ("Refunds, again.", "Refunds, a third time."):
        add_revision(Chunk.objects.get(external_id="refunds#2"), text)
    page, client = reverse("labels:chunk-list", args=["handbook"]), client_for(victor)
    for only, sort, first in (
        ("revised", "revision", "axb"),
        ("revised", "-revision", "refunds#2"),
        ("", "-revision", "a_b"),
    ):
        response = client.get(page, {"only": only, "sort": sort})
        assert response.context["rows"][0][0].external_id == first
        assert ("aria-sort" in response.content.decode()) == bool(only)


def test_what_is_filtered_first_is_found_however_much_else_matches(chunks, monkeypatch) -> None:
    monkeypatch.setattr(chunk_models, "COUNTED_UP_TO", 0)
    assert len(chunks.matching("a")) <= 2
    assert [chunk.external_id for chunk in chunks.filter(revision__gt=1).matching("jumps")] == ["axb"]


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (Chunk.objects.filter(external_id__icontains="refund"), "chunk_id_trigrams"),
        (Chunk.objects.filter(external_id__icontains="überweisung"), "chunk_id_trigrams"),
        (ChunkRevision.objects.filter(title__icontains="refund"), "revision_trigrams"),
        (ChunkRevision.objects.filter(text__icontains="refund"), "revision_trigrams"),
    ],
    ids=["id", "id-with-umlaut", "title", "text"],
)
def test_there_is_an_index_for_each_question(rows, index) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert index in rows.order_by().explain()

"""What verdicts say of one chunk and others."""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Q

from evalsets.models import Chunk
from judging.models import ChunkClass, PairVerdict

Verdict = PairVerdict.Verdict

_WORDS = {
    (Verdict.SAME, True): "has the content of",
    (Verdict.SAME, False): "has the content of",
    (Verdict.FIRST_NEWER, True): "replaces",
    (Verdict.FIRST_NEWER, False): "is replaced by",
    (Verdict.SECOND_NEWER, True): "is replaced by",
    (Verdict.SECOND_NEWER, False): "replaces",
    (Verdict.DIFFERENT, True): "differs from",
    (Verdict.DIFFERENT, False): "differs from",
}


class Relation(NamedTuple):
    """A verdict that holds: the chunk of the page `words` the other one, for example "is replaced by"."""

    verdict: PairVerdict
    words: str
    other: Chunk


def relations_of(chunk: Chunk) -> list[Relation]:
    """The verdicts that hold on this chunk and another; those on content only while both texts are what was read."""
    said = PairVerdict.objects.filter(Q(first=chunk) | Q(second=chunk)).order_by("id")
    latest = {
        (verdict.first_id, verdict.second_id): verdict
        for verdict in said.select_related("first__evalset", "second__evalset", "assessor")
    }
    found = []
    for verdict in latest.values():
        of_today = (verdict.first_revision, verdict.second_revision) == (
            verdict.first.revision,
            verdict.second.revision,
        )
        is_order = verdict.verdict in (Verdict.FIRST_NEWER, Verdict.SECOND_NEWER)
        if verdict.verdict != Verdict.NONE and (of_today or is_order):
            is_first = verdict.first_id == chunk.pk
            words = _WORDS[Verdict(verdict.verdict), is_first]
            found.append(Relation(verdict, words, verdict.second if is_first else verdict.first))
    return found


def class_of(chunk: Chunk) -> ChunkClass | None:
    """The class that the chunk is in, if any."""
    return ChunkClass.objects.filter(members__chunk=chunk).first()

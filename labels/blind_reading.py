"""A pair as a lead reads it to decide: what was said of it under letters, that tell neither who nor who came first."""

from __future__ import annotations

import hashlib
import itertools
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalsets.models import Chunk, ChunkRevision, Question
from judging import reading
from judging.models import Assessor, Judgment
from judging.services.adjudication import standing_decisions


class Said(NamedTuple):
    """One judgment under its letter."""

    letter: str
    judgment: Judgment


class Piece(NamedTuple):
    """A stretch of text, and the letters of those who marked it as evidence."""

    text: str
    letters: str


class MarkedPassage(NamedTuple):
    """A passage of the text; `folded` where it is long and nobody marked anything in it."""

    length: int
    pieces: list[Piece]
    folded: bool


class FactTicked(NamedTuple):
    """A required fact of the question, and the letters of those who found it supported here."""

    text: str
    letters: str


@dataclass(frozen=True)
class BlindPair:
    """`decisions` holds the one that stands and those it replaced, the latest first; empty while it is undecided."""

    said: list[Said]
    decisions: list[Judgment]
    passages: list[MarkedPassage]
    facts: list[FactTicked]

    @property
    def decided(self) -> bool:
        return bool(self.decisions)


def blind_pair(question: Question, chunk: Chunk, text: ChunkRevision | None) -> BlindPair:
    """The pair with what people and files said of the chunk's current text, and what was decided on it."""
    current = (
        Judgment.objects.filter(
            question=question, chunk=chunk, revision=chunk.revision, replaced_by__isnull=True
        )
        .exclude(source=Judgment.Source.ADJUDICATION)
        .exclude(assessor__kind=Assessor.Kind.MODEL)
        .select_related("assessor__user")
    )
    # More than there are letters will not be; those would share the last.
    letters = itertools.chain(string.ascii_uppercase, itertools.repeat("Z"))
    said = [
        Said(letter, judgment)
        for letter, judgment in zip(letters, sorted(current, key=_blind_order), strict=False)
    ]
    return BlindPair(
        said=said,
        decisions=_decisions(question, chunk),
        passages=_marked(text.text, question, said) if text else [],
        facts=[
            FactTicked(fact["text"], "".join(s.letter for s in said if str(fact["id"]) in s.judgment.facts))
            for fact in question.facts
        ],
    )


def _blind_order(judgment: Judgment) -> tuple[int, str]:
    """By grade, those without one last; equal ones in an order that has nothing to do with who or when."""
    grade = 99 if judgment.grade is None else judgment.grade
    return grade, hashlib.sha256(f"{judgment.pk} {judgment.note}".encode()).hexdigest()


def _decisions(question: Question, chunk: Chunk) -> list[Judgment]:
    """The decision that stands, then those that it replaced, back to the first or to one that was taken back."""
    chain: list[Judgment] = []
    decision = standing_decisions(question, chunk).select_related("assessor__user").first()
    while decision is not None and decision.kind != Judgment.Kind.SKIP:
        chain.append(decision)
        decision = decision.replaces
    return chain


def _marked(text: str, question: Question, said: Iterable[Said]) -> list[MarkedPassage]:
    """The text in the passages of the desk, cut where marked evidence begins and ends."""
    marks = [
        (max(0, int(span["start"])), min(len(text), int(span["end"])), one.letter)
        for one in said
        for span in one.judgment.spans
    ]
    marked = []
    for passage in reading.passages(text, reading.question_words(question.text)):
        start, end = passage.start, passage.start + passage.length
        pieces = _pieces(text, start, end, marks)
        folded = passage.folded and not any(piece.letters for piece in pieces)
        marked.append(MarkedPassage(passage.length, pieces, folded))
    return marked


def _pieces(text: str, start: int, end: int, marks: Sequence[tuple[int, int, str]]) -> list[Piece]:
    inside = {place for mark in marks for place in mark[:2] if start < place < end}
    cuts = sorted({start, end, *inside})
    pieces = []
    for begins, ends in itertools.pairwise(cuts):
        letters = "".join(sorted({letter for low, high, letter in marks if low <= begins and ends <= high}))
        pieces.append(Piece(text[begins:ends], letters))
    return pieces

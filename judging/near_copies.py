"""Whether a text on the desk is nearly one that the same assessor graded for the same question, and what differs.

Only the assessor's own grades are looked at. The search for near copies among all chunks lies above judging and runs
in the background; this one is small enough to run while pairs are handed out, and finds what it would find.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalsets.differences import Piece, around, difference
from evalsets.likeness import NEAR, Shingles, jaccard, shingles_of, words_of
from evalsets.models import Chunk, ChunkRevision
from evalsets.statements import Statement
from judging.models import Assessor, PairVerdict
from judging.services.verdicts import standing_verdict

Verdict = PairVerdict.Verdict

# A text is compared with so many that were graded for its question, the latest ones, and so many are named.
MOST_COMPARED, MOST_NAMED = 300, 3
# Each process keeps the shingles of the texts that it met last, so many of them: 16 MB.
SHINGLES_KEPT = 4_000_000


class Text(NamedTuple):
    """A text that an assessor reads for a question: on the desk, next to come (no grade), or graded before."""

    question: int
    chunk: int
    revision: int  # ChunkRevision.id
    text_hash: str
    pair: int | None
    grade: int | None = None


@dataclass(frozen=True)
class NearCopy:
    """Another text for the same question that is nearly the one on the desk."""

    chunk: int
    # The pair it was judged as, and the grade given; no grade: it comes before the one on the desk, so the browser
    # will know.
    pair: int | None
    grade: int | None
    # Jaccard of their word shingles, from NEAR to 1.
    similarity: float
    # What differs: `old` is in the other text only, `new` in the one on the desk.
    pieces: list[Piece]
    # What was said of the two already, with the one on the desk as the first; or nothing.
    said: str

    @property
    def has_same_words(self) -> bool:
        return self.similarity == 1


GRADED = Statement(
    """
    SELECT j.question_id, j.chunk_id, t.id, t.text_hash, j.pair_id, j.grade
    FROM judging_judgment j
    JOIN evalsets_chunkrevision t ON t.chunk_id = j.chunk_id AND t.number = j.revision
    WHERE j.evalset_id = %(evalset)s AND j.question_id = ANY(%(questions)s) AND j.assessor_id = %(me)s
      AND j.kind = 'grade'
      AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    ORDER BY j.id DESC
    LIMIT %(most)s
    """
)


def graded_texts(questions: Iterable[int], *, assessor: Assessor) -> list[Text]:
    """What the assessor has graded for these questions, in whichever batch: the latest first, each chunk once."""
    values: dict[str, Any] = {
        "evalset": assessor.evalset_id,
        "questions": list(questions),
        "me": assessor.pk,
        "most": MOST_COMPARED,
    }
    rows = [Text(*row) for row in GRADED.all(values)]
    return list({(text.question, text.chunk): text for text in reversed(rows)}.values())[::-1]


def near_copies(
    texts: Sequence[tuple[Text, str]], *, wanted: Iterable[int], assessor: Assessor
) -> dict[int, list[NearCopy]]:
    """By pair, for those `wanted`, what is nearly the same: graded before, or earlier among `texts`; likest first.

    `texts` are the pairs that lie before the assessor with their words, in the order in which they come. What was said
    to be different content is left out.
    """
    wanted = set(wanted)
    graded = defaultdict(list)
    for text in graded_texts({text.question for text, _ in texts if text.pair in wanted}, assessor=assessor):
        graded[text.question].append(text)
    words = {text.revision: said for text, said in texts}
    # Of those whose shingles this process knows, the text is not needed to tell which are near.
    _load(words, (text.revision for found in graded.values() for text in found if not _shingled.knows(text)))
    near: dict[int, list[NearCopy]] = {}
    for place, (here, _) in enumerate(texts):
        if here.pair is None or here.pair not in wanted:
            continue
        earlier = [text for text, _ in texts[:place] if text.question == here.question]
        others = {text.chunk: text for text in [*graded[here.question], *earlier] if text.chunk != here.chunk}
        likest = _likest(here, others.values(), words)
        near[here.pair] = _described(here, likest[:MOST_NAMED], words) if likest else []
    return near


def said_of(here: Chunk, there: Chunk) -> str:
    """The verdict that holds for the two, with `here` as the first; or nothing."""
    standing = standing_verdict(here, there)
    if standing is None:
        return ""
    if standing.verdict in (Verdict.SAME, Verdict.DIFFERENT):
        return standing.verdict
    newer = standing.first_id if standing.verdict == Verdict.FIRST_NEWER else standing.second_id
    return Verdict.FIRST_NEWER if newer == here.pk else Verdict.SECOND_NEWER


def _likest(here: Text, others: Iterable[Text], words: dict[int, str]) -> list[tuple[float, Text]]:
    mine = _shingled.of(here, words)
    found = []
    for other in others:
        theirs = _shingled.of(other, words)
        # Two texts share no more than the shorter one has.
        if min(len(mine), len(theirs)) < NEAR * max(len(mine), len(theirs), 1):
            continue
        similarity = jaccard(mine, theirs)
        if similarity >= NEAR:
            found.append((similarity, other))
    return sorted(found, key=lambda item: -item[0])


def _described(here: Text, likest: Sequence[tuple[float, Text]], words: dict[int, str]) -> list[NearCopy]:
    """Costs some statements, but only where there is something to say."""
    chunks = Chunk.objects.in_bulk({here.chunk, *(text.chunk for _, text in likest)})
    _load(words, (text.revision for _, text in likest))
    copies = [
        NearCopy(
            chunk=other.chunk,
            pair=other.pair,
            grade=other.grade,
            similarity=similarity,
            pieces=around(difference(words[other.revision], words[here.revision])),
            said=said_of(chunks[here.chunk], chunks[other.chunk]),
        )
        for similarity, other in likest
    ]
    return [copy for copy in copies if copy.said != Verdict.DIFFERENT]


def _load(words: dict[int, str], revisions: Iterable[int]) -> None:
    """Add the words of these texts, as far as they are not there."""
    missing = set(revisions) - words.keys()
    if missing:
        words |= dict(ChunkRevision.objects.filter(pk__in=missing).values_list("pk", "text"))


class _Shingled:
    """Shingles by the hash of the text, so that each process cuts a text once; those used last are kept."""

    def __init__(self, most: int):
        self._most, self._size = most, 0
        self._kept: OrderedDict[str, Shingles] = OrderedDict()
        self._lock = threading.Lock()

    def knows(self, text: Text) -> bool:
        return text.text_hash in self._kept

    def of(self, text: Text, words: dict[int, str]) -> Shingles:
        """Those of the text, from `words` where they are not known yet. A text without words has none."""
        with self._lock:
            known = self._kept.get(text.text_hash)
            if known is not None:
                self._kept.move_to_end(text.text_hash)
                return known
        said = words.get(text.revision)
        if said is None:  # dropped since it was asked for: many texts at once
            said = ChunkRevision.objects.values_list("text", flat=True).get(pk=text.revision)
        cut = shingles_of(said) if words_of(said) else shingles_of("")[:0]
        with self._lock:
            if text.text_hash not in self._kept:
                self._kept[text.text_hash] = cut
                self._size += len(cut)
            while self._size > self._most and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped)
        return cut


_shingled = _Shingled(SHINGLES_KEPT)

"""Which texts look like copies of each other: equal after normalisation, or nearly equal by their word shingles.

Pure text work: no Django, no database. It only proposes; people decide, since one word can make the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evalsets.likeness import NEAR, Shingles, jaccard, shingles_of, words_of

PERMUTATIONS = 64
# A boilerplate text has hundreds of near copies; each chunk is paired with its nearest ones only, which is enough to
# join them all.
MOST_PAIRS = 10
# Buckets of hashes that hold more chunks than this are one text over and over; the nearest of these are looked at.
MOST_LOOKED_AT = 200


class NearPair(NamedTuple):
    """Two texts by their keys, the one given earlier first, and their exact Jaccard similarity from 0 to 1."""

    first: int
    second: int
    similarity: float


def equal_pairs(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    """Pairs of texts that are equal but for case, space and punctuation: each later copy with the first of its kind.

    Texts without a word are equal to nothing.
    """
    first_of: dict[bytes, int] = {}
    for key, text in texts:
        words = words_of(text)
        if not words:
            continue
        normal = " ".join(words).encode()
        first = first_of.setdefault(normal, key)
        if first != key:
            yield first, key


def near_pairs(texts: Iterable[tuple[int, str]], *, near: float = NEAR) -> Iterator[NearPair]:
    """Pairs of texts whose shingles are alike, found by MinHash/LSH (datasketch) and then measured exactly.

    Yields as it reads: a pair when its second text comes. Keys must be distinct. A pair below `near` never comes; one
    above it is missed now and then, the more rarely the more alike the two are (MinHash is a sample).
    """
    # Brings half of scipy along, which only a search for copies should wait for.
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=near, num_perm=PERMUTATIONS)
    model = MinHash(num_perm=PERMUTATIONS, hashfunc=int)
    seen: dict[int, Shingles] = {}
    for key, text in texts:
        shingles = shingles_of(text)
        sketch = model.copy()  # shares the permutations, which are costly to draw
        sketch.update_batch(shingles.tolist())
        candidates = index.query(sketch)
        found = [
            NearPair(other, key, similarity)
            for other in sorted(candidates)[:MOST_LOOKED_AT]
            for similarity in [jaccard(seen[other], shingles)]
            if similarity >= near
        ]
        yield from sorted(found, key=lambda pair: (-pair.similarity, pair.first))[:MOST_PAIRS]
        index.insert(key, sketch)
        seen[key] = shingles

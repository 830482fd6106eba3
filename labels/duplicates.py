"""Which texts look like copies of each other: equal after normalisation, or nearly equal by their word shingles.

Pure text work: no Django, no database. It only proposes; people decide, since one word can make the difference.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from datasketch import MinHash, MinHashLSH
from numpy.typing import NDArray

# Texts are cut into runs of this many words; two texts are near when they share this much of theirs (Jaccard).
SHINGLE_WORDS = 3
NEAR = 0.6
PERMUTATIONS = 64
# A boilerplate text has hundreds of near copies; each chunk is paired with its nearest ones only, which is enough to
# join them all.
MOST_PAIRS = 10
# Buckets of hashes that hold more chunks than this are one text over and over; the nearest of these are looked at.
MOST_LOOKED_AT = 200

_NOT_A_WORD = re.compile(r"[\W_]+")

Shingles = NDArray[np.uint32]


class NearPair(NamedTuple):
    """Two texts by their keys, the one given earlier first, and their exact Jaccard similarity from 0 to 1."""

    first: int
    second: int
    similarity: float


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return _NOT_A_WORD.sub(" ", text.casefold()).split()


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


def shingles_of(text: str) -> Shingles:
    """The distinct word shingles of a text as sorted 32-bit hashes; of a text with fewer words, all of it is one."""
    words = words_of(text)
    runs = {
        zlib.crc32(" ".join(words[start : start + SHINGLE_WORDS]).encode())
        for start in range(max(1, len(words) - SHINGLE_WORDS + 1))
    }
    return np.sort(np.fromiter(runs, np.uint32, len(runs)))


def near_pairs(texts: Iterable[tuple[int, str]], *, near: float = NEAR) -> Iterator[NearPair]:
    """Pairs of texts whose shingles are alike, found by MinHash/LSH (datasketch) and then measured exactly.

    Yields as it reads: a pair when its second text comes. Keys must be distinct. A pair below `near` never comes; one
    above it is missed now and then, the more rarely the more alike the two are (MinHash is a sample).
    """
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


def jaccard(one: Shingles, other: Shingles) -> float:
    """Shared shingles / all shingles of the two, from 0 to 1."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)

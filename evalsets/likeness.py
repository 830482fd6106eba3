"""How alike two texts are by the words in a row that they share. Pure text work; people decide what it means."""

from __future__ import annotations

import re
import zlib

import numpy as np
from numpy.typing import NDArray

# Texts are cut into runs of this many words; two texts are near when they share this much of theirs (Jaccard).
SHINGLE_WORDS = 3
NEAR = 0.6

_NOT_A_WORD = re.compile(r"[\W_]+")

Shingles = NDArray[np.uint32]


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return _NOT_A_WORD.sub(" ", text.casefold()).split()


def shingles_of(text: str) -> Shingles:
    """The distinct word shingles of a text as sorted 32-bit hashes; of a text with fewer words, all of it is one."""
    words = words_of(text)
    runs = {
        zlib.crc32(" ".join(words[start : start + SHINGLE_WORDS]).encode())
        for start in range(max(1, len(words) - SHINGLE_WORDS + 1))
    }
    return np.sort(np.fromiter(runs, np.uint32, len(runs)))


def jaccard(one: Shingles, other: Shingles) -> float:
    """Shared shingles / all shingles of the two, from 0 to 1."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)

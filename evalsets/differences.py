"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

# Words, runs of white space, and single other characters: joined, they give the text back.
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
# Above this many words the quadratic worst case of the comparison is felt; lines are compared instead.
WORDS_AT_MOST = 6_000


class Piece(NamedTuple):
    """A stretch of text that is `same` in both, or only in the `old` or the `new` one."""

    kind: Literal["same", "old", "new"]
    text: str


def difference(old: str, new: str) -> list[Piece]:
    """The pieces of both texts in reading order; the old ones joined give `old`, the new ones `new`."""
    old_words, new_words = TOKEN.findall(old), TOKEN.findall(new)
    if len(old_words) + len(new_words) > WORDS_AT_MOST:
        old_words, new_words = old.splitlines(keepends=True), new.splitlines(keepends=True)
    pieces: list[Piece] = []
    matcher = SequenceMatcher(None, old_words, new_words, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(old_words[a:b])))
            continue
        if b > a:
            pieces.append(Piece("old", "".join(old_words[a:b])))
        if d > c:
            pieces.append(Piece("new", "".join(new_words[c:d])))
    return pieces

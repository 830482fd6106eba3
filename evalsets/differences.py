"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

# A word or another character with the white space after it; at the very beginning, white space alone.
TOKEN = re.compile(r"(\w+|[^\w\s]|\A(?=\s))(\s*)")
# Above this many words the quadratic worst case of the comparison is felt; lines are compared instead.
WORDS_AT_MOST = 6_000

Kind = Literal["same", "old", "new", "gap"]


class Piece(NamedTuple):
    """A stretch of text that is `same` in both, or only in the `old` or the `new` one.

    A `gap`, made by `around` alone, stands for text that is the same in both and left out.
    """

    kind: Kind
    text: str


def difference(old: str, new: str) -> list[Piece]:
    """The pieces of both texts in reading order; the old ones joined give `old`, the new ones `new`."""
    old_words, new_words = TOKEN.findall(old), TOKEN.findall(new)
    if len(old_words) + len(new_words) > WORDS_AT_MOST:
        old_words, new_words = _lines(old), _lines(new)
    pieces: list[Piece] = []
    for tag, a, b, c, d in _opcodes([word for word, _ in old_words], [word for word, _ in new_words]):
        if tag == "replace" and old_words[b - 1][1] == new_words[d - 1][1]:
            space = old_words[b - 1][1]
            _append(pieces, "old", _joined(old_words[a:b]).removesuffix(space))
            _append(pieces, "new", _joined(new_words[c:d]).removesuffix(space))
            _append(pieces, "same", space)
            continue
        if tag != "equal":
            _append(pieces, "old", _joined(old_words[a:b]))
            _append(pieces, "new", _joined(new_words[c:d]))
            continue
        # The same words; the white space after each may differ, as where a text was wrapped anew.
        for (word, space), (_, other) in zip(old_words[a:b], new_words[c:d], strict=True):
            if space == other:
                _append(pieces, "same", word + space)
            else:
                _append(pieces, "same", word)
                _append(pieces, "old", space)
                _append(pieces, "new", other)
    return pieces


def around(pieces: Sequence[Piece], *, characters: int = 60) -> list[Piece]:
    """The changes with some characters of what is the same around each, cut between words; gaps in between."""
    shown: list[Piece] = []
    for index, piece in enumerate(pieces):
        before = characters if index > 0 else 0
        after = characters if index + 1 < len(pieces) else 0
        if piece.kind != "same" or len(piece.text) <= before + after + characters // 2:
            shown.append(piece)
            continue
        head, tail = piece.text[:before], piece.text[len(piece.text) - after :]
        head = head[: head.rfind(" ") + 1] or head
        tail = tail[tail.find(" ") :] if " " in tail else tail
        shown += [Piece("same", head), Piece("gap", " … "), Piece("same", tail)]
    return [piece for piece in shown if piece.text]


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Those of difflib. What both begin and end with is found first, since most of a near copy is that."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    codes = [("equal", 0, head, 0, head)]
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    codes += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in middle.get_opcodes()]
    codes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return codes


def _joined(words: Sequence[tuple[str, str]]) -> str:
    return "".join(word + space for word, space in words)


def _append(pieces: list[Piece], kind: Kind, text: str) -> None:
    if not text:
        return
    if pieces and pieces[-1].kind == kind:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    else:
        pieces.append(Piece(kind, text))


def _lines(text: str) -> list[tuple[str, str]]:
    return [(line, "") for line in text.splitlines(keepends=True)]

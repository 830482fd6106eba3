"""What changed between two texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsets.differences import Piece, around, difference


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ("", "", []),
        ("the same", "the same", [("same", "the same")]),
        ("", "new words", [("new", "new words")]),
        (
            "paid within 14 days.",
            "paid within 30 days.",
            [("same", "paid within "), ("old", "14"), ("new", "30"), ("same", " days.")],
        ),
        ("a b c", "a c", [("same", "a "), ("old", "b "), ("same", "c")]),
        (
            "wrapped here\nand on",
            "wrapped here and on",
            [("same", "wrapped here"), ("old", "\n"), ("new", " ")],
        ),
        ("  led in", "led in", [("old", "  "), ("same", "led in")]),
        ("one, two", "one; two", [("same", "one"), ("old", ","), ("new", ";"), ("same", " two")]),
    ],
)
def test_the_pieces(old, new, pieces):
    assert difference(old, new)[: len(pieces)] == [Piece(*piece) for piece in pieces]


@given(
    st.text(alphabet="ab ,\n\t\u0301\u2028é", max_size=40),
    st.text(alphabet="ab ,\n\t\u0301\u2028é", max_size=40),
)
def test_the_pieces_give_both_texts_back(old, new):
    pieces = difference(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == old
    assert "".join(piece.text for piece in pieces if piece.kind != "old") == new
    assert all(one.kind != other.kind for one, other in itertools.pairwise(pieces))


def test_long_texts_are_compared_by_lines():
    lines = [f"line {number} of many words that say little" for number in range(1000)]
    changed = [*lines[:500], "another line", *lines[501:]]
    pieces = difference("\n".join(lines), "\n".join(changed))
    assert [piece.kind for piece in pieces] == ["same", "old", "new", "same"]
    assert pieces[1].text == lines[500] + "\n"


def test_around_a_change_some_words_are_left():
    pieces = difference("word " * 100 + "14 days" + " word" * 100, "word " * 100 + "30 days" + " word" * 100)
    shown = around(pieces, characters=12)
    assert [(piece.kind, piece.text) for piece in shown] == [
        ("gap", " … "),
        ("same", " word word "),
        ("old", "14"),
        ("new", "30"),
        ("same", " days word "),
        ("gap", " … "),
    ]


def test_a_short_text_stands_whole_around_its_change():
    pieces = difference("Paid within 14 days, always.", "Paid within 30 days, always.")
    assert around(pieces) == pieces

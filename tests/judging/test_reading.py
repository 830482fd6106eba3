"""How texts are shown: whole, escaped, folded around what matters; Markdown without teeth."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.reading import LONG, looks_like_markdown, markdown, passages, question_words


def shown(text: str, question: str = "refund") -> str:
    """What a reader's browser makes of the passages, put together again."""
    return html.unescape(
        re.sub(r"<[^>]*>", "", "".join(part.html for part in passages(text, question_words(question))))
    )


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300))
def test_every_character_is_there_and_none_is_markup(text):
    assert shown(text, "what & the <b> amp") == text


@pytest.mark.parametrize("size", [LONG, LONG + 1, 100_000])
def test_folding_loses_nothing(size):
    text = ("A line of words about nothing.\n" * (size // 30 + 2))[: size - 20] + "the refund is here. "
    parts = passages(text, question_words("What about the refund?"))

    assert shown(text) == text
    assert [part.start for part in parts] == [sum(p.length for p in parts[:i]) for i in range(len(parts))]
    assert sum(part.length for part in parts) == len(text)
    assert "refund" in next(part for part in parts if not part.folded).html
    assert (len(parts) > 1) == (size > LONG)


def test_a_rare_word_weighs_more_than_one_that_is_everywhere():
    text = (
        "device device device. " * 600
        + "\n\nOpened devices: the shipping is paid by us.\n\n"
        + "device. " * 1500
    )
    middle = next(part for part in passages(text, question_words("device shipping paid")) if not part.folded)
    assert "paid" in middle.html


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is the refund period?", {"refund", "period"}),
        ("Error E4 in 30 days", {"error", "e4", "30", "days"}),
        ("ÄRGER mit Geräten", {"ärger", "mit", "geräten"}),
        ("", set()),
    ],
)
def test_words_worth_looking_for(question, words):
    assert question_words(question) == words


def test_question_words_are_marked_whatever_their_case():
    (part,) = passages("Refunds & REFUND", question_words("refund"))
    assert part.html == 'Refunds &amp; <span class="qw">REFUND</span>'


def test_tables_scroll_by_themselves():
    (part,) = passages("before\n| a | b |\n| 1 | 2 |\nafter", frozenset())
    assert 'class="wide"' in part.html
    assert shown("before\n| a | b |\n| 1 | 2 |\nafter") == "before\n| a | b |\n| 1 | 2 |\nafter"


@pytest.mark.parametrize(
    "text",
    [
        "# Head",
        "- item",
        "| a | b |",
        "some **bold** words",
        "[a](https://b)",
        "use `code`",
        "1. one",
        "> quoted",
    ],
)
def test_markdown_is_recognised(text):
    assert looks_like_markdown(text)


@pytest.mark.parametrize("text", ["Plain words.", "5 * 3 * 2", "a_b_c", "#hashtag", "-5 degrees", ""])
def test_plain_text_is_left_alone(text):
    assert not looks_like_markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://elsewhere/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "<style>body{display:none}</style>",
        "<form action=/><button>x</button></form>",
        "<a href='https://x' onclick='alert(1)'>x</a>",
    ],
)
def test_markdown_has_no_teeth(text):
    rendered = markdown(text)
    assert not re.search(r"<(?!/?(?:p|a|em|strong|code)\b)", rendered), rendered
    assert not re.search(r"<[^>]*\b(?:on\w+|style|src)=", rendered), rendered
    assert not re.search(r'href="(?:javascript|data)', rendered), rendered


def test_links_of_markdown_open_no_doors():
    assert 'rel="noopener noreferrer nofollow"' in markdown("[x](https://example.org)")

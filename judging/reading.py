"""How a text is shown to people who read for hours: as the text it is, folded where it is long. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from evalsets.unseen import marked, named

# A text beyond LONG characters opens with about SHOWN of them; the rest is one click away.
LONG = 8_000
SHOWN = 5_000
NEAR = 800
# Beyond this a second rendering of the text is not worth its bytes.
LONGEST_MARKDOWN = 60_000

WORD = re.compile(r"\w+")
# Words that stand in any question, so that they point at nothing in a text.
COMMON = frozenset(
    WORD.findall("""
    about after all also and any are been before between both but can could did does each for from had has have how
    into its may more most much must not off one only onto other our out over per shall she should some such than that
    the that their them then there these they this those through too under until upon very was were what when where
    which while who whom whose why will with within without would you your
    """)
)
TABLE_LINES = re.compile(r"(?:^[ \t]*\|.*(?:\n|\Z)){2,}", re.MULTILINE)
MARKDOWN_SIGN = re.compile(
    r"^(?:#{1,6} |[-*+] |\d+[.)] |> |```|\|.*\|)|\*\*\S|\[[^\]\n]+\]\([^)\n]+\)|`[^`\n]+`", re.MULTILINE
)


class Passage(NamedTuple):
    """A stretch of a text: where it begins (in characters), how long it is, its HTML, whether it opens folded."""

    start: int
    length: int
    html: SafeString
    folded: bool


def question_words(question: str) -> frozenset[str]:
    """The words of a question worth looking for in a text, in lower case."""
    words = {word.casefold() for word in WORD.findall(question)}
    return frozenset(
        word for word in words if word not in COMMON and (len(word) > 2 or any(map(str.isdigit, word)))
    )


def passages(text: str, words: frozenset[str]) -> list[Passage]:
    """The text as one passage or, where it is long, as three at most: what matters, and the folded rest around it.

    What matters is where the question's words stand closest together. The passages together are the whole text,
    character by character, so that a place in them is a place in the text.
    """
    return [
        Passage(start, end - start, _html(text[start:end], words), folded)
        for start, end, folded in _stretches(text, words)
    ]


def _stretches(text: str, words: frozenset[str]) -> Iterator[tuple[int, int, bool]]:
    if len(text) <= LONG:
        yield 0, len(text), False
        return
    start, end = _where_it_matters(text, words)
    if start > 0:
        yield 0, start, True
    yield start, end, False
    if end < len(text):
        yield end, len(text), True


def _where_it_matters(text: str, words: frozenset[str]) -> tuple[int, int]:
    """The stretch of about SHOWN characters around the densest place, cut at line ends where some are near.

    Densest: most question words within NEAR characters, each weighing less the more often the text says it.
    """
    hits = [(match.start(), match.group().casefold()) for match in WORD.finditer(text)]
    hits = [(place, word) for place, word in hits if word in words]
    often = Counter(word for _, word in hits)
    best, most, weight, last = 0, 0.0, 0.0, 0
    for place, word in hits:
        while last < len(hits) and hits[last][0] < place + NEAR:
            weight += 1 / often[hits[last][1]]
            last += 1
        if weight > most + 1e-9:
            best, most = place, weight
        weight -= 1 / often[word]
    start = max(0, min(best - SHOWN // 10, len(text) - SHOWN))
    end = min(len(text), start + SHOWN)
    line = text.rfind("\n", max(0, start - 500), start)
    start = line + 1 if line >= 0 else start
    line = text.find("\n", end, end + 500)
    return (0 if start < 500 else start), (line + 1 if line >= 0 else end)


def _html(text: str, words: frozenset[str]) -> SafeString:
    """The text with every character escaped; question words and unseen characters in spans, wide tables in blocks."""
    parts = []
    end = 0
    for table in TABLE_LINES.finditer(text):
        parts += [_marked(text[end : table.start()], words), '<span class="wide" tabindex="0">']
        parts += [_marked(table.group(), words), "</span>"]
        end = table.end()
    parts.append(_marked(text[end:], words))
    return mark_safe("".join(parts))  # noqa: S308 (all of the text went through escape)


def _marked(text: str, words: frozenset[str]) -> str:
    # Words are looked for before escaping, so that none is found inside an entity.
    pieces, end = [], 0
    for word in re.finditer(r"\w+", text):
        if word.group().casefold() in words:
            pieces += [_escaped(text[end : word.start()]), f'<span class="qw">{word.group()}</span>']
            end = word.end()
    return "".join([*pieces, _escaped(text[end:])])


def _escaped(text: str) -> str:
    # A carriage return goes in as a reference: HTML drops the bare character, and places would shift.
    return marked(escape(text)).replace("\r", "&#13;")


def looks_like_markdown(text: str) -> bool:
    """Whether a second view as Markdown would show something that the plain text does not."""
    return len(text) <= LONGEST_MARKDOWN and MARKDOWN_SIGN.search(text) is not None


_markdown = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code"),
    *("em", "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td"),
}


def markdown(text: str) -> SafeString:
    """The text rendered as Markdown and sanitised: no scripts, styles, images or forms; links open no doors."""
    html = nh3.clean(
        _markdown.render(named(text)),
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 (sanitised just above)

"""Characters that nobody sees, and that turn what stands around them: shown by their names instead. Pure functions.

A right-to-left override makes "gpj.exe" of "exe.jpg" for the eye, and a zero-width space hides that two words differ.
"""

from __future__ import annotations

import re
from typing import Any

from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

# They turn, embed or isolate whatever follows them, over any length. Shown, they lose their effect.
_TURNING = {
    "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF", "\u202d": "LRO", "\u202e": "RLO",
    "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI", "\u2069": "PDI",
}  # fmt: skip
_HIDDEN = {
    "\u00ad": "SHY", "\u061c": "ALM", "\u180e": "MVS", "\u200b": "ZWSP", "\u200e": "LRM", "\u200f": "RLM",
    "\u2028": "LSEP", "\u2029": "PSEP", "\u2060": "WJ", "\ufeff": "BOM",
}  # fmt: skip
# Persian, Hindi and emoji need these two; between Latin letters they only hide.
_JOINERS = {"\u200c": "ZWNJ", "\u200d": "ZWJ"}
_NAMES = {**_TURNING, **_HIDDEN, **_JOINERS}

UNSEEN = re.compile(
    "["
    + "".join(_TURNING | _HIDDEN)
    + "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\U000e0000-\U000e007f]"
    + "|(?<![^\x00-\u024f])[\u200c\u200d]+(?![^\x00-\u024f])"
)


def shown(text: Any) -> SafeString:
    """The text as HTML with every such character in a span that shows its name; nothing of the text is lost."""
    return mark_safe(marked(conditional_escape(text)))  # noqa: S308 (what was not safe is escaped)


def marked(html: str) -> str:
    """Escaped text, without tags, with such characters in their spans."""
    return UNSEEN.sub(lambda found: "".join(map(_span, found[0])), html)


def named(text: str) -> str:
    """The text with the names of such characters in place of them."""
    return UNSEEN.sub(lambda found: "".join(f"⟨{_name(character)}⟩" for character in found[0]), text)


def _span(character: str) -> str:
    turns = " turns" if character in _TURNING else ""
    return f'<span class="unseen{turns}" data-mark="{_name(character)}">{character}</span>'


def _name(character: str) -> str:
    return _NAMES.get(character) or f"U+{ord(character):04X}"

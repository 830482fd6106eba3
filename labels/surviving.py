"""Whether a label may be carried from an old text to a new one without asking anybody. Pure text work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evalsets.likeness import words_of

#: Why a label may be carried: the same words in the same order, or all the evidence is there whole.
SAME_WORDS = "the words are the same"
EVIDENCE = "the marked evidence is there whole"


class Survival(NamedTuple):
    """The evidence with its places in the new text, where it is there; `rule` is None where a person must decide."""

    spans: list[dict[str, Any]]
    rule: str | None


def survival(old_text: str, new_text: str, spans: Sequence[dict[str, Any]]) -> Survival:
    """What of an old text's evidence is whole in the new one, and whether that is enough to carry the label.

    Texts with the same words, whatever their case, space and punctuation, keep every label. Else there must be
    evidence, and all of it must stand in the new text to the letter.
    """
    placed = [found for span in spans if (found := _found(span["text"], new_text)) is not None]
    if words_of(old_text) == words_of(new_text):
        return Survival(placed, SAME_WORDS)
    return Survival(placed, EVIDENCE if spans and len(placed) == len(spans) else None)


def _found(evidence: str, text: str) -> dict[str, Any] | None:
    start = text.find(evidence)
    return None if start < 0 else {"start": start, "end": start + len(evidence), "text": evidence}

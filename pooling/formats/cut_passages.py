"""Passages that were cut short on their way into a context: texts of their own, beside the chunks they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .run_json import Passage

ID_CHARACTERS = 512
DIGEST_CHARACTERS = 12


class CutPassage(NamedTuple):
    """A chunk's text as a run packed it, cut short. `whole` is the chunk's position in the run's vocabulary."""

    id: str
    whole: int
    text: str


def cut_id(chunk: str, text: str) -> str:
    """The ID of a cut passage: the chunk's, a mark, and a digest of both, so that every run names one text alike."""
    mark = "#cut-" + hashlib.sha256(f"{chunk}\n{text}".encode()).hexdigest()[:DIGEST_CHARACTERS]
    return chunk[: ID_CHARACTERS - len(mark)] + mark


@dataclass
class CutPassages:
    """The cut passages of a run, each once, numbered on from the positions of the vocabulary's chunks.

    `textless` are the questions whose rankings cut a passage without giving its text, with how many of them. `twice`
    are questions whose rankings name a cut passage by its ID as well, each with that ID.
    """

    vocabulary: Sequence[str]
    found: list[CutPassage] = field(default_factory=list)
    textless: dict[str, int] = field(default_factory=dict)
    twice: list[tuple[str, str]] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)

    def name(
        self, question: str, chunks: NDArray[np.int32], passages: Sequence[Passage | None]
    ) -> NDArray[np.int32]:
        """The ranking's chunks, with the position of the cut passage where one stands in its chunk's place."""
        named = chunks.copy()
        for place, passage in enumerate(passages):
            if passage is None or not passage.truncated:
                continue
            if passage.text is None or not passage.text.strip():
                self.textless[question] = self.textless.get(question, 0) + 1
            else:
                named[place] = self._position(int(chunks[place]), passage.text)
        if (cut := named[named != chunks]).size:
            given = {self.vocabulary[at] for at in chunks.tolist()}
            names = (self.found[at - len(self.vocabulary)].id for at in cut.tolist())
            self.twice += [(question, name) for name in names if name in given]
        return named

    def _position(self, whole: int, text: str) -> int:
        name = cut_id(self.vocabulary[whole], text)
        if name not in self._positions:
            self._positions[name] = len(self.vocabulary) + len(self.found)
            self.found.append(CutPassage(name, whole, text))
        return self._positions[name]

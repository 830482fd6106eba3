"""What verdicts on chunk pairs allow: which chunks may share a class, and the chain of verdicts that forbids it.

`same` links join chunks into classes. Three things keep two classes apart: a `newer` link, directly or through a chain
(of a replaces b, b has the content of c, c replaces d follows that a and d are not the same); a `different` link
between their members; and members whose periods of validity differ. Pure: no Django, no database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Literal, NamedTuple

Kind = Literal["same", "newer", "different", "period"]
#: First and last day of validity; None where it is open. A chunk that has neither says nothing of its period.
Period = tuple[date | None, date | None]


class Link(NamedTuple):
    """A verdict on two chunks. `newer`: the first replaces the second. `period`: their periods differ (no verdict)."""

    first: int
    second: int
    kind: Kind

    def turned(self) -> Link:
        """A symmetric link read from its other end."""
        return Link(self.second, self.first, self.kind)


Chain = list[Link]


def classes(links: Iterable[Link], chunks: Iterable[int]) -> list[set[int]]:
    """The classes among these chunks, those of one chunk too, in the order in which the chunks come."""
    links = list(links)
    found: list[set[int]] = []
    seen: set[int] = set()
    for chunk in chunks:
        if chunk not in seen:
            found.append(set(_reached(links, chunk, _along_same)))
            seen |= found[-1]
    return found


def forbids_same(links: Iterable[Link], periods: Mapping[int, Period], a: int, b: int) -> Chain | None:
    """The chain from a to b that forbids them one class, or None where nothing does. `links` has none on (a, b)."""
    links = list(links)
    from_a, from_b = _reached(links, a, _along_same), _reached(links, b, _along_same)
    if b in from_a:
        return None
    for chain in (_reached(links, a, _downwards).get(b), _reached(links, b, _downwards).get(a)):
        if chain is not None:
            return chain
    keeps_apart = [link for link in links if link.kind == "different"]
    keeps_apart += [
        Link(x, y, "period") for x in from_a for y in from_b if _differ(periods.get(x), periods.get(y))
    ]
    for link in keeps_apart:
        for apart in (link, link.turned()):
            if apart.first in from_a and apart.second in from_b:
                back = [step.turned() for step in reversed(from_b[apart.second])]
                return [*from_a[apart.first], apart, *back]
    return None


def forbids_newer(links: Iterable[Link], newer: int, older: int) -> Chain | None:
    """The chain that forbids `newer` to replace `older`: they are one class, or it is the other way round already."""
    links = list(links)
    chain = _reached(links, newer, _along_same).get(older)
    return chain if chain is not None else _reached(links, older, _downwards).get(newer)


def forbids_different(links: Iterable[Link], a: int, b: int) -> Chain | None:
    """The chain of `same` links that makes a and b one class, or None."""
    return _reached(list(links), a, _along_same).get(b)


def _differ(one: Period | None, other: Period | None) -> bool:
    if one is None or other is None or one == (None, None) or other == (None, None):
        return False
    return one != other


def _along_same(link: Link, at: int) -> Link | None:
    if link.kind != "same" or at not in (link.first, link.second):
        return None
    return link if link.first == at else link.turned()


def _downwards(link: Link, at: int) -> Link | None:
    """Along `same` links, and from what replaces to what is replaced."""
    if link.kind == "newer":
        return link if link.first == at else None
    return _along_same(link, at)


def _reached(links: list[Link], start: int, step: Callable[[Link, int], Link | None]) -> dict[int, Chain]:
    """Every chunk that can be reached from `start`, with a shortest chain to it."""
    touching: dict[int, list[Link]] = {}
    for link in links:
        touching.setdefault(link.first, []).append(link)
        touching.setdefault(link.second, []).append(link)
    found: dict[int, Chain] = {start: []}
    waiting = deque([start])
    while waiting:
        at = waiting.popleft()
        for link in touching.get(at, []):
            taken = step(link, at)
            if taken is not None and taken.second not in found:
                found[taken.second] = [*found[at], taken]
                waiting.append(taken.second)
    return found

"""Which chunks may share a class: as a table, and against a slow twin that tries all that follows."""

from __future__ import annotations

from datetime import date
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.class_graph import Link, classes, forbids_different, forbids_newer, forbids_same


def links_of(text: str) -> list[Link]:
    """ "1=2 2>3 4/5": the same, replaces, different."""
    kinds = {"=": "same", ">": "newer", "/": "different"}
    return [Link(int(word[0]), int(word[2]), kinds[word[1]]) for word in text.split()]


def written(chain: list[Link] | None) -> str | None:
    signs = {"same": "=", "newer": ">", "different": "/", "period": "~"}
    return None if chain is None else " ".join(f"{a}{signs[kind]}{b}" for a, b, kind in chain)


@pytest.mark.parametrize(
    ("links", "a", "b", "chain"),
    [
        ("", 1, 2, None),
        ("1=3 3=2", 1, 2, None),
        ("1>3 3>2", 1, 2, "1>3 3>2"),
        ("2>3 3=1", 1, 2, "2>3 3=1"),
        ("1=3 3>4 4=5 5>2", 1, 2, "1=3 3>4 4=5 5>2"),
        ("3>1 3>2", 1, 2, None),
        ("1>3 2>3", 1, 2, None),
        ("1/3 3=2", 1, 2, "1/3 3=2"),
        ("1=3 2=4 4/3", 1, 2, "1=3 3/4 4=2"),
        ("1/3 3/2", 1, 2, None),
    ],
)
def test_what_forbids_one_class(links, a, b, chain):
    assert written(forbids_same(links_of(links), {}, a, b)) == chain


OLD = (date(2019, 1, 1), date(2020, 12, 31))
NEW = (date(2021, 1, 1), None)


@pytest.mark.parametrize(
    ("periods", "chain"),
    [
        ({1: OLD, 2: NEW}, "1~2"),
        ({1: OLD, 2: OLD}, None),
        ({1: OLD, 2: (None, None)}, None),
        ({1: OLD}, None),
        ({3: OLD, 4: NEW}, "1=3 3~4 4=2"),
        ({1: NEW, 4: (date(2021, 1, 1), date(2022, 1, 1))}, "1~4 4=2"),
    ],
)
def test_differing_periods_forbid_one_class(periods, chain):
    assert written(forbids_same(links_of("1=3 2=4"), periods, 1, 2)) == chain


@pytest.mark.parametrize(
    ("links", "chain"),
    [
        ("", None),
        ("1=3 3=2", "1=3 3=2"),
        ("2>1", "2>1"),
        ("2>3 3=1", "2>3 3=1"),
        ("1>3 3>2", None),
        ("1/2", None),
    ],
)
def test_what_forbids_the_first_to_replace_the_second(links, chain):
    assert written(forbids_newer(links_of(links), 1, 2)) == chain


def test_what_forbids_to_call_two_chunks_different():
    assert written(forbids_different(links_of("1=3 2=3"), 1, 2)) == "1=3 3=2"
    assert forbids_different(links_of("1>2"), 1, 2) is None


def test_classes_with_those_of_one_chunk():
    assert classes(links_of("1=2 2=3 4>1 5/6"), [4, 3, 1, 5]) == [{4}, {1, 2, 3}, {5}]


CHUNKS = range(5)


def consistent(links: list[Link]) -> bool:
    """The twin: closes the verdicts under what follows from them, and looks for a contradiction."""
    same = {(x, x) for x in CHUNKS}
    above: set[tuple[int, int]] = set()
    for a, b, kind in links:
        if kind == "same":
            same |= {(a, b), (b, a)}
        elif kind == "newer":
            above.add((a, b))
    for _ in range(2 * len(CHUNKS)):
        same |= {(a, c) for a, b in same for b2, c in same if b == b2}
        above |= {(a, d) for a, b in same for b2, c in above for c2, d in same if b == b2 and c == c2}
        above |= {(a, c) for a, b in above for b2, c in above if b == b2}
    apart = above | {(b, a) for a, b in above}
    apart |= {pair for a, b, kind in links if kind == "different" for pair in ((a, b), (b, a))}
    return not (same & apart)


VERDICTS = st.lists(
    st.tuples(
        st.sampled_from([(a, b) for a, b in product(CHUNKS, CHUNKS) if a < b]),
        st.sampled_from(["same", "newer", "older", "different"]),
    ),
    max_size=12,
    unique_by=lambda item: item[0],
)


@given(VERDICTS)
def test_exactly_the_consistent_verdicts_are_allowed(verdicts):
    links: list[Link] = []
    for (a, b), kind in verdicts:
        if kind == "older":
            a, b, kind = b, a, "newer"
        chain = {
            "same": lambda a, b: forbids_same(links, {}, a, b),
            "newer": lambda a, b: forbids_newer(links, a, b),
            "different": lambda a, b: forbids_different(links, a, b),
        }[kind](a, b)
        assert (chain is None) == consistent([*links, Link(a, b, kind)])
        if chain is None:
            links.append(Link(a, b, kind))
        else:
            ends = {chain[0].first, chain[-1].second}
            assert ends == {a, b}
            assert all(one.second == next_.first for one, next_ in pairwise(chain))

"""Characters that nobody sees, and that turn others round, are shown by their names."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsets.unseen import named, shown
from judging.reading import markdown, passages
from tests.conftest import add_revision, make_chunks, make_questions, make_run


def marks(text: str) -> list[str]:
    return re.findall(r'data-mark="([^"]*)"', text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("exe.\u202egpj", ["RLO"]),
        ("a\u2066b\u2069", ["LRI", "PDI"]),
        ("pass\u200bword", ["ZWSP"]),
        ("pass\u200dword\u200c", ["ZWJ", "ZWNJ"]),
        ("\ufeffid-1 \x07", ["BOM", "U+0007"]),
        ("ta\U000e0067g", ["U+E0067"]),
        ("نمی\u200cخواهم", []),  # Persian cannot be written without it
        ("क्\u200dष 👩\u200d💻", []),
        ("line\nline\ttab\r\n שלום", []),
    ],
)
def test_what_is_shown_and_what_a_language_needs(text, names) -> None:
    assert marks(shown(text)) == names
    assert re.findall("⟨(.*?)⟩", named(text)) == names


@given(st.text())
def test_nothing_is_lost_and_nothing_is_markup(text) -> None:
    without_spans = re.sub(
        r'<span class="unseen(?: turns)?" data-mark="[A-Z0-9+]+">|</span>', "", shown(text)
    )
    assert html.unescape(without_spans.replace("\r", "&#13;")) == text
    assert not re.search("[<>]", without_spans)


def test_markdown_names_them_without_opening_a_tag() -> None:
    said = markdown('[x](https://example.org "\u202e onclick=alert(1)") \u202e<b>')
    assert "<span" not in said
    assert said.count("⟨RLO⟩") == 2


def test_the_desk_keeps_places_in_the_text() -> None:
    [passage] = passages("a \u202eb", frozenset())
    assert marks(passage.html) == ["RLO"]
    assert (passage.start, passage.length) == (0, 4)


def test_pages_show_them_in_texts_names_and_notes(evalset, carol, client_for) -> None:
    evil = "\u202egpj.<b>"
    [question] = make_questions(evalset, f"q{evil}", text=f"What? {evil}")
    [chunk] = make_chunks(evalset, f"c{evil}", text=False)
    add_revision(chunk, f"Text {evil}", number=1, title=f"Title {evil}")
    run = make_run(evalset, f"run{evil}", {question.external_id: [chunk.external_id]})
    lead = client_for(carol)
    for address, least in {
        chunk.get_absolute_url(): 3,
        question.get_absolute_url(): 2,
        run.get_absolute_url(): 2,
        f"/e/handbook/runs/{run.pk}/questions/{question.pk}/": 3,
        "/e/handbook/questions/": 1,
        "/e/handbook/chunks/": 2,
        "/e/handbook/systems/": 1,
    }.items():
        page = lead.get(address).content.decode()
        assert marks(page).count("RLO") >= least, address
        assert "gpj.<b>" not in page, address

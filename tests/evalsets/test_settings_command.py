"""The command `settings`: what the page *Settings* changes."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from evalsets.models import EvalSet, default_scale
from tests.commands import call, call_json

pytestmark = pytest.mark.django_db


def test_settings_are_shown_changed_and_written_down(evalset, carol, capsys):
    _, shown = call_json("settings", "handbook", capsys=capsys)
    assert (shown["threshold"], shown["gain"], shown["changed"]) == (1, "exponential", [])
    assert shown["scale"] == default_scale()
    arguments = ("--low-unjudged-rate", 0.05, "--count-inadmissible", "--threshold", 1, "--by", "carol")
    status, changed = call_json("settings", "handbook", *arguments, capsys=capsys)
    assert status == 0
    assert changed["changed"] == ["low_unjudged_rate", "count_inadmissible"]
    event = evalset.events.get()
    assert (event.by, event.details) == (carol, {"low_unjudged_rate": 0.05, "count_inadmissible": True})
    _, out = call("settings", "handbook", "--no-count-inadmissible", capsys=capsys)
    assert "count-inadmissible: False  (changed)" in out
    assert "low-unjudged-rate: 0.05\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", 0], "threshold: Ensure this value is greater than or equal to 1"),
        (["--threshold", 9], "nothing would be relevant"),
        (["--low-unjudged-rate", "10"], "less than or equal to 1"),
        (["--low-unjudged-rate", "nan"], "evalset_low_rate_outside_0_1"),
        (["--adjudication-tolerance", 2**40], "adjudication_tolerance: Ensure this value is less than"),
        (["--scale", "no such file"], "No such file"),
        (["--threshold", 2, "--by", "alice"], "alice does not lead handbook"),
    ],
)
def test_settings_say_what_is_wrong_and_stay(evalset, alice, capsys, arguments, message):
    status, document = call_json("settings", "handbook", *arguments, capsys=capsys)
    assert status == 3
    assert message in document["error"]
    assert call_json("settings", "handbook", capsys=capsys)[1]["threshold"] == 1
    assert not evalset.events.exists()


def test_a_scale_grows_only_after_asking_and_never_shrinks(evalset, tmp_path, capsys):
    file = tmp_path / "scale.json"
    longer = [*default_scale(), {"grade": 4, "name": "Whole", "definition": "The whole answer."}]
    file.write_text(json.dumps(longer))
    status, document = call_json("settings", "handbook", "--scale", file, capsys=capsys)
    assert (status, "with --yes" in document["error"]) == (3, True)
    assert EvalSet.objects.get().scale == default_scale()
    status, _ = call_json("settings", "handbook", "--scale", file, "--yes", capsys=capsys)
    assert (status, EvalSet.objects.get().scale) == (0, longer)
    file.write_text(json.dumps(default_scale()))
    status, document = call_json("settings", "handbook", "--scale", file, "--yes", capsys=capsys)
    assert (status, "not shortened" in document["error"]) == (3, True)


@pytest.mark.parametrize(("typed", "status"), [("yes", 0), ("no", 3)])
def test_on_a_terminal_it_asks(evalset, tmp_path, monkeypatch, capsys, typed, status):
    file = tmp_path / "scale.json"
    file.write_text(json.dumps([*default_scale(), {"grade": 4, "name": "Whole", "definition": "All of it."}]))
    terminal = StringIO(f"{typed}\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert call("settings", "handbook", "--scale", file, capsys=capsys)[0] == status
    assert len(EvalSet.objects.get().scale) == (5 if typed == "yes" else 4)

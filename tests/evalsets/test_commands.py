"""How a command ends: 1 and 2 are answers, so that neither a wrong call nor a fault of ours may end with them."""

from __future__ import annotations

from typing import Any

import pytest

from evalsets.commands import FairpoolCommand
from evalsets.errors import BadInput


class Ending(FairpoolCommand):
    """Ends in the way that it is asked to."""

    uses_tables = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("way", choices=["answer-1", "answer-2", "bad-input", "fault"])

    def perform(self, **options: Any) -> dict[str, Any]:
        way, _, answer = options["way"].partition("-")
        if way == "bad":
            raise BadInput("Line 3 has seven columns.")
        if way == "fault":
            raise ZeroDivisionError
        self.exit_status = int(answer)
        return {}

    def show(self, document: dict[str, Any]) -> None:
        return None


@pytest.mark.parametrize(
    ("way", "status"),
    [("answer-1", 1), ("answer-2", 2), ("bad-input", 3), ("no such way", 3), ("fault", 70)],
)
def test_exit_status(way, status, capsys):
    with pytest.raises(SystemExit) as end:
        Ending().run_from_argv(["manage.py", "ending", way])
    assert end.value.code == status
    assert ("Traceback" in capsys.readouterr().err) == (way == "fault")

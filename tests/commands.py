"""Calling management commands as a shell would."""

from __future__ import annotations

import json
from typing import Any

from django.core.management import CommandError, call_command


def call(*arguments: Any, capsys: Any) -> tuple[int, str]:
    """The exit status and what was printed on standard output."""
    try:
        call_command(*map(str, arguments))
        status = 0
    except SystemExit as exit_:
        status = exit_.code
    except CommandError as error:
        status = error.returncode
    return status, capsys.readouterr().out


def call_json(*arguments: Any, capsys: Any) -> tuple[int, dict[str, Any]]:
    """The exit status and the document of `--json`."""
    status, out = call(*arguments, "--json", capsys=capsys)
    return status, json.loads(out)

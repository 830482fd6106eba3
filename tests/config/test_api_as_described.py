"""The API called as its OpenAPI document says, and otherwise: schemathesis makes up the requests."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import pytest

from config.api import api
from tests.config.api import token_for
from tests.config.test_api_roles import BASE, things  # noqa: F401 (a fixture)

# Half a minute of it; API_TEST_SECONDS=600 runs through all that it makes up.
SECONDS = os.environ.get("API_TEST_SECONDS", "30")
OPTIONS = [
    "--phases=examples,coverage",
    f"--max-time={SECONDS}",
    "--seed=1",
    "--generation-database=none",
    "--continue-on-failure",
    "--workers=1",  # Python 3.11 now and then parses wrongly (a SystemError) in one of two threads
    # A name that fits the pattern and names no run is right by the document, and refused all the same.
    "--exclude-checks=positive_data_acceptance",
]


def narrowed(things: dict[str, str]) -> dict:  # noqa: F811
    """The document for what is there: Carol's eval set, and IDs of things in it beside ones of nothing."""
    document = copy.deepcopy(dict(api.get_openapi_schema()))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            known = things.get(f"{method.upper()} {path.removeprefix(BASE)}", "")
            for parameter in operation["parameters"]:
                if parameter["name"] == "slug":
                    parameter["schema"] = {"const": "handbook"}
                elif parameter["in"] == "path" and parameter["schema"].get("type") == "integer":
                    ids = [int(part) for part in known.split("/") if part.isdecimal()]
                    parameter["schema"] = {"type": "integer", "enum": [*ids, 0, 2**40]}
    return document


@pytest.fixture
def many_wrong_tokens(monkeypatch) -> None:
    """Made-up requests show wrong tokens too, more of them than a server puts up with."""
    monkeypatch.setenv("SIGN_IN_FAILURE_LIMIT", "100000")


def test_every_route_answers_as_described(many_wrong_tokens, web, evalset, carol, things, tmp_path) -> None:  # noqa: F811
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(narrowed(things)))
    line = ["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run", str(document)]
    header = f"--header=Authorization: Bearer {token_for(evalset, carol)}"
    done = subprocess.run(
        [sys.executable, *line, f"--url={web.url}", header, *OPTIONS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120 + int(SECONDS),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert "Traceback" not in web.log.read_text()

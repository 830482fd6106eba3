"""Types of what callers send."""

from __future__ import annotations

from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, StringConstraints

# Postgres keeps no NUL characters, so no name, note or ID has one.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=100_000)]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=512)]


class Input(Schema):
    """A body whose every key is known: a key that is misspelt is an error, not silence."""

    model_config = ConfigDict(extra="forbid")

"""What the tests of the HTTP API share: tokens and a client that shows one."""

from __future__ import annotations

from typing import Any

from django.test import Client

from evalsets.models import EvalSet, Member, User
from evalsets.services.tokens import create_token

API = "/api/v1/evalsets/handbook"


def token_for(evalset: EvalSet, by: User, role: str = "lead", name: str | None = None) -> str:
    """The text of a new token that the lead `by` made."""
    return create_token(evalset=evalset, by=by, name=name or f"a {role}", role=Member.Role(role))[1]


class ApiClient(Client):
    """A client with a token; addresses are told from the eval set on, and bodies are JSON."""

    def __init__(self, token: str | None, base: str = API) -> None:
        super().__init__(headers={"Authorization": f"Bearer {token}"} if token else None)
        self.base = base

    def call(self, method: str, address: str = "", data: Any = None, **options: Any) -> Any:
        if data is not None and "content_type" not in options:
            options["content_type"] = "application/json"
        return getattr(self, method)(self.base + address, data, **options)

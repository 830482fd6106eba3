"""Documents that commands print with --json, as answers: every key of them, the described ones and any other."""

from __future__ import annotations

from typing import Any

from django.http import JsonResponse
from ninja import Schema
from pydantic import ConfigDict


class Document(Schema):
    """The keys of a document that stay; others may stand beside them."""

    model_config = ConfigDict(extra="allow")


def answer(document: dict[str, Any], *, status: int = 200) -> JsonResponse:
    """The whole document. A route's `response` only describes it: ninja would leave out what is not described."""
    return JsonResponse(document, status=status)

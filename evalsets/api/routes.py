"""The eval set, and its jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema

from evalsets.api import auth
from evalsets.api.auth import ApiRequest
from evalsets.models import EvalSet

router = Router(tags=["Eval set"])


class Grade(Schema):
    grade: int
    name: str
    definition: str


class TokenFacts(Schema):
    name: str
    role: str = Field(description="What the token may do just now.", examples=["lead"])
    user: str = Field(description="Who made it, and in whose name it acts.", examples=["carol"])
    expires_at: datetime | None


class EvalSetFacts(Schema):
    slug: str = Field(examples=["handbook"])
    name: str
    description: str
    scale: list[Grade]
    threshold: int = Field(description="Relevant from this grade.", examples=[1])
    gain: str = Field(description="For nDCG.", examples=["exponential"])
    low_unjudged_rate: float = Field(
        description="Up to this unjudged rate a score is read as it stands.", examples=[0.1]
    )
    questions: int = Field(examples=[150])
    chunks: int = Field(examples=[9000])
    token: TokenFacts


@router.get("", auth=auth.member, response=EvalSetFacts, url_name="evalset", summary="The eval set")
def evalset_facts(request: ApiRequest) -> dict[str, Any]:
    """Its scale and settings, how much is in it, and what the token that asks may do."""
    caller = request.auth
    evalset: EvalSet = caller.evalset
    names = ("slug", "name", "description", "scale", "threshold", "gain", "low_unjudged_rate")
    return {
        **{name: getattr(evalset, name) for name in names},
        "questions": evalset.questions.count(),
        "chunks": evalset.chunks.whole().count(),
        "token": {
            "name": caller.token.name,
            "role": caller.role,
            "user": caller.user.username,
            "expires_at": caller.token.expires_at,
        },
    }

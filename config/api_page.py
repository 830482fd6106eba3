"""The page about the HTTP API, made from the document that describes it; readable without a script."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from config.api import api
from judging.reading import markdown


@dataclass(frozen=True)
class Field:
    """A parameter, or a key of a body."""

    name: str
    place: str
    type: str
    required: bool
    description: str


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    anchor: str
    summary: str
    description: SafeString
    token: str  # whose token it takes
    fields: list[Field]
    example: str  # of a JSON body; "" where it has none
    statuses: list[str]


@require_GET
@login_not_required
def api_page(request: HttpRequest) -> HttpResponse:
    document = api.get_openapi_schema()
    sections = routes_by_section(document)
    return render(
        request,
        "config/api_page.html",
        {"sections": sections, "about": markdown(document["info"]["description"])},
    )


def routes_by_section(document: dict[str, Any]) -> dict[str, list[Route]]:
    """The routes of an OpenAPI document under their first tag, in the order in which they stand."""
    sections: dict[str, list[Route]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            route = _route(document, method.upper(), path, operation)
            sections.setdefault(operation["tags"][0], []).append(route)
    return sections


def _route(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Route:
    parameters = [
        Field(
            name=item["name"],
            place=item["in"],
            type=_type(document, item["schema"]),
            required=item["required"],
            description=item.get("description", "").replace("`", ""),
        )
        for item in operation["parameters"]
        if item["in"] != "path" or item["name"] == "name"  # the others are numbers that the path explains
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    schema = _resolved(document, body) if body else {}
    keys = [
        Field(
            name=name,
            place="body",
            type=_type(document, item),
            required=name in schema.get("required", []),
            description=item.get("description", "").replace("`", ""),
        )
        for name, item in schema.get("properties", {}).items()
    ]
    shown = {
        name: item["examples"][0] for name, item in schema.get("properties", {}).items() if "examples" in item
    }
    return Route(
        method=method,
        path=path,
        anchor=operation["operationId"],
        summary=operation["summary"],
        description=markdown(operation["description"]),
        token=document["components"]["securitySchemes"][next(iter(operation["security"][0]))]["description"],
        fields=parameters + keys,
        example=json.dumps(shown) if shown else "",
        statuses=[str(status) for status in operation["responses"] if status != "default"],
    )


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    if not reference:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def _type(document: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a value may be, for people: "integer", "one of dev, holdout", "list of string"."""
    schema = _resolved(document, schema)
    if "anyOf" in schema:
        return " or ".join(_type(document, one) for one in schema["anyOf"] if "const" not in one)
    if "enum" in schema:
        return "one of " + ", ".join(map(str, filter(None, schema["enum"])))
    if schema.get("type") == "array":
        return f"list of {_type(document, schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "anything"))

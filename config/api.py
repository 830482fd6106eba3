"""The HTTP API: the routes that the apps bring, mounted under /api/v1/, and the document that describes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase, HttpResponseNotAllowed
from django.urls.resolvers import URLPattern, URLResolver
from django.utils.cache import patch_vary_headers
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from evalsets.api.jobs import router as job_routes
from evalsets.api.problems import MEDIA_TYPE, Problem, answer_errors_of, not_found, problem
from evalsets.api.routes import router as evalset_routes
from judging.api.batches import router as batch_routes
from judging.api.imports import router as import_routes
from judging.api.pools import router as pool_routes
from labels.api import router as release_routes
from pooling.api import router as run_routes
from scoring.api import router as score_routes

DESCRIPTION = """\
Push questions, chunks, runs and labels; see what judging would cost; fetch releases; ask whether a comparison may be
read. Everything that pages and commands do to data, over the same rules.

Every request shows a token, `Authorization: Bearer …`, that a lead made on the page *Tokens* of the eval set. It opens
that eval set alone, in one role. Errors are problem details (RFC 9457). Long work answers 202 with a job, whose
address is in the header `Location`: ask there until its `state` is `done`, `failed` or `cancelled`.
"""


class FairpoolAPI(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        """What code generators name the route by."""
        return operation.view_func.__name__

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        """The document; our address has no parameters, so it is one for the whole process, and nobody changes it."""
        return self._document

    @cached_property
    def _document(self) -> OpenAPISchema:
        """The document with what all routes share: the eval set in the address, problems, and who may call."""
        document = super().get_openapi_schema()
        schemas = document["components"].setdefault("schemas", {})
        described = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= described.pop("$defs")
        schemas["Problem"] = described
        answer = {
            "description": "Anything else: what is wrong, and what would be right.",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        slug = {
            "in": "path",
            "name": "slug",
            "required": True,
            "description": "The eval set's short name.",
            "schema": {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$"},
            "example": "handbook",
        }
        for path, methods in document["paths"].items():
            for operation in methods.values():
                operation["responses"]["default"] = answer
                if "{slug}" in path:
                    operation["parameters"].insert(0, slug)
        return document


api = FairpoolAPI(title="Fairpool", version="1", description=DESCRIPTION, urls_namespace="api", docs_url=None)
answer_errors_of(api)
for address, routes in (
    ("", evalset_routes),
    ("/jobs", job_routes),
    ("/imports", import_routes),
    ("/runs", run_routes),
    ("/pools", pool_routes),
    ("/batches", batch_routes),
    ("/releases", release_routes),
    ("", score_routes),
):
    api.add_router("/evalsets/{slug:slug}" + address, routes)


def _as_api(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """The view for callers without a session: tokens decide, and a wrong method is a problem like any other."""

    @login_not_required
    @wraps(view, assigned=())
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except Http404:  # the bare address of the API
            return not_found(request)
        patch_vary_headers(response, ["Authorization"])
        response.setdefault("Cache-Control", "private")
        if isinstance(response, HttpResponseNotAllowed):
            allowed = response["Allow"]
            return problem(
                405, f"{request.method} is not for this address; {allowed} is.", headers={"Allow": allowed}
            )
        return response

    return answer


def _urls() -> tuple[list[URLPattern | URLResolver], str, str]:
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        assert isinstance(pattern, URLPattern)
        pattern.callback = _as_api(pattern.callback)
    return patterns, app_name, namespace


urls = _urls()

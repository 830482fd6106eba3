"""The API's role matrix: which token may call which route. A route without a row here fails the test."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from config.api import api
from evalsets.models import ApiToken, Member
from evalsets.services.jobs import start_job
from judging.services.batches import make_batch
from labels.services.publishing import publish_release
from pooling.services.pools import build_pool
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve
from tests.config.api import ApiClient, token_for
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge

LEAD, READER, MEMBER = {"lead"}, {"lead", "viewer"}, {"lead", "viewer", "assessor"}
# Inside /api/v1/evalsets/{slug}: method and path -> the roles whose tokens may call it.
MATRIX: dict[str, set[str]] = {
    "GET ": MEMBER,
    "GET /jobs": LEAD,
    "GET /jobs/{pk}": LEAD,
    "GET /jobs/{pk}/result": LEAD,
    "POST /jobs/{pk}/cancel": LEAD,
    "POST /jobs/{pk}/retry": LEAD,
    "POST /imports/questions": LEAD,
    "POST /imports/chunks": LEAD,
    "POST /imports/run": LEAD,
    "POST /imports/qrels": LEAD,
    "POST /imports/verdicts": LEAD,
    "POST /imports/judge": LEAD,
    "GET /runs": READER,
    "GET /runs/{pk}": READER,
    "GET /pools": READER,
    "GET /pools/{pk}": READER,
    "POST /pools": LEAD,
    "POST /pools/preview": LEAD,
    "GET /pools/{pk}/remainder": LEAD,
    "GET /batches": MEMBER,
    "GET /batches/{pk}": MEMBER,
    "POST /batches": LEAD,
    "GET /releases": MEMBER,
    "GET /releases/{number}": MEMBER,
    "POST /releases": LEAD,
    "GET /releases/{number}/files/{name}": READER,
    "GET /releases/{before}/difference/{after}": READER,
    "GET /scores": READER,
    "GET /scores/{pk}": READER,
    "POST /scores": LEAD,
    "GET /comparisons": READER,
    "GET /comparisons/{pk}": READER,
    "POST /comparisons": LEAD,
}
BASE = "/api/v1/evalsets/{slug}"
UNKNOWN = {401}


def routes() -> set[str]:
    paths = api.get_openapi_schema()["paths"]
    return {
        f"{method.upper()} {path.removeprefix(BASE)}" for path, methods in paths.items() for method in methods
    }


def address_of(row: str) -> tuple[str, str]:
    """The method and an address with IDs that exist nowhere: who may call is decided before anything is looked for."""
    method, path = row.split(" ", 1)
    for name in ("pk", "number", "before", "after"):
        path = path.replace(f"{{{name}}}", "0")
    return method.lower(), path.replace("{name}", "qrels")


@pytest.fixture(autouse=True)
def _no_wrong_tokens_yet(settings) -> None:
    cache.clear()
    settings.AXES_FAILURE_LIMIT = 1000


def test_every_route_has_a_row() -> None:
    assert routes() == MATRIX.keys()


@pytest.fixture
def text_of(evalset, other_evalset, carol, mallory):
    """The text of a token by the name of a persona."""

    def make(persona: str) -> str | None:
        if persona == "anonymous":
            return None
        if persona == "wrong":
            return "fairpool_" + "x" * 43
        if persona == "other lead":
            return token_for(other_evalset, mallory)
        if persona in Member.Role.values:
            return token_for(evalset, carol, persona)
        text = token_for(evalset, carol, "lead")
        now = timezone.now()
        change = {"revoked": {"revoked_at": now}, "expired": {"expires_at": now - timedelta(seconds=1)}}
        ApiToken.objects.update(**change[persona])
        return text

    return make


@pytest.mark.parametrize(
    "persona", ["anonymous", "wrong", "revoked", "expired", "viewer", "assessor", "lead", "other lead"]
)
def test_matrix(persona, text_of) -> None:
    client = ApiClient(text_of(persona))
    wrong = {}
    for row, allowed in MATRIX.items():
        method, path = address_of(row)
        status = client.call(method, path).status_code
        if persona == "other lead":
            right = {404}
        elif persona not in Member.Role.values:
            right = {401}
        elif persona in allowed:
            right = {200, 400, 404, 422}
        else:
            right = {403}
        if status not in right:
            wrong[row] = status
    assert wrong == {}


@pytest.mark.parametrize(
    ("role", "maker", "may"),
    [
        ("lead", "assessor", "assessor"),
        ("lead", "viewer", "viewer"),
        ("viewer", "assessor", None),
        ("assessor", "viewer", None),
        ("lead", None, None),
    ],
)
def test_a_token_falls_with_its_maker(role, maker, may, evalset, carol) -> None:
    client = ApiClient(token_for(evalset, carol, role))
    membership = evalset.members.filter(user=carol)
    membership.update(role=maker) if maker else membership.delete()
    for row, allowed in MATRIX.items():
        method, path = address_of(row)
        status = client.call(method, path).status_code
        right = {401} if may is None else {200, 400, 404, 422} if may in allowed else {403}
        assert status in right, row


def test_only_what_describes_the_api_is_public(client_for, db) -> None:
    assert client_for(None).get("/api/v1/openapi.json").status_code == 200
    page = client_for(None).get("/api/v1/docs").content.decode()
    for path in api.get_openapi_schema()["paths"]:
        assert f"</strong> {path}</p>" in page
    assert "one of dev, holdout" in page


@pytest.fixture
def things(evalset, alice, carol) -> dict[str, str]:
    """One of everything in Carol's eval set: the row of a route -> the address of the thing, from the set on."""
    [question] = make_questions(evalset, "q1")
    c1, c2, _ = make_chunks(evalset, "c1", "c2", "c3")
    secret, rival = (
        make_run(evalset, "sekrit-run", {"q1": ["c1", "c2", "c3"]}, system="sekrit-system"),
        make_run(evalset, "sekrit-rival", {"q1": ["c2", "c1"]}),
    )
    judge(question, c1, 2)
    judge(question, c2, 0)
    release = publish_release(evalset=evalset, by=carol, notes="born of sekrit-run").release
    pool, _ = build_pool(evalset=evalset, name="sekrit-pool", runs=[(secret, 10), (rival, 10)], by=carol)
    batch = make_batch(pool=pool, name="first batch", by=carol, assessors=[alice, carol])
    job = start_job(evalset=evalset, task="none", title="A job", by=carol)
    asked = resolve(release, measures=["Recall@2"])
    [comparison] = compare_runs(release=release, run_a=secret, run_b=rival, asked=asked)
    return {
        "GET /jobs/{pk}": f"/jobs/{job.pk}",
        "GET /jobs/{pk}/result": f"/jobs/{job.pk}/result",
        "POST /jobs/{pk}/retry": f"/jobs/{job.pk}/retry",
        "POST /jobs/{pk}/cancel": f"/jobs/{job.pk}/cancel",
        "GET /runs/{pk}": f"/runs/{secret.pk}",
        "GET /pools/{pk}": f"/pools/{pool.pk}",
        "GET /pools/{pk}/remainder": f"/pools/{pool.pk}/remainder",
        "GET /batches/{pk}": f"/batches/{batch.pk}",
        "GET /releases/{number}": f"/releases/{release.number}",
        "GET /releases/{number}/files/{name}": f"/releases/{release.number}/files/qrels",
        "GET /releases/{before}/difference/{after}": "/releases/1/difference/1",
        "GET /scores/{pk}": f"/scores/{comparison.raw_a.pk}",
        "GET /comparisons/{pk}": f"/comparisons/{comparison.pk}",
    }


def test_ids_of_another_eval_set_are_not_there(things, evalset, other_evalset, mallory, carol) -> None:
    assert things.keys() == {row for row in MATRIX if "{" in row}
    stranger = ApiClient(token_for(other_evalset, mallory), base="/api/v1/evalsets/elsewhere")
    lead = ApiClient(token_for(evalset, carol))
    for row, path in things.items():
        method = row.split()[0].lower()
        assert stranger.call(method, path).status_code == 404, row
        assert lead.call(method, path).status_code in (200, 409), row  # 409: a job that has not run


def test_runs_and_pools_of_another_eval_set_cannot_be_named(things, other_evalset, mallory) -> None:
    make_questions(other_evalset, "q1")
    stranger = ApiClient(token_for(other_evalset, mallory), base="/api/v1/evalsets/elsewhere")
    for address, body in {
        "/pools/preview": {"runs": [{"run": "sekrit-run"}]},
        "/batches": {"pool": "sekrit-pool", "name": "x", "assessors": ["mallory"]},
        "/scores": {"release": 1, "runs": ["sekrit-run"], "measures": ["Recall@2"]},
    }.items():
        assert stranger.call("post", address, body).status_code == 422, address


def test_an_assessors_token_sees_neither_systems_nor_runs_nor_pools(things, evalset, carol) -> None:
    client = ApiClient(token_for(evalset, carol, "assessor"))
    seen = 0
    for row, allowed in MATRIX.items():
        method, path = row.split(" ", 1)
        if "assessor" in allowed:
            response = client.call(method.lower(), things.get(row, path))
            assert response.status_code == 200, row
            assert b"sekrit" not in response.content, row
            seen += 1
    assert seen == 5
    reader = ApiClient(token_for(evalset, carol, "viewer"))
    assert b"sekrit" in reader.call("get", "/runs").content  # so the words above could have been found


def test_a_session_neither_helps_nor_harms(evalset, carol, client_for) -> None:
    client: Client = client_for(carol)
    assert client.get("/api/v1/evalsets/handbook").status_code == 401
    header = {"Authorization": f"Bearer {token_for(evalset, carol, 'viewer')}"}
    client.handler.enforce_csrf_checks = True
    facts = client.get("/api/v1/evalsets/handbook", headers=header).json()
    assert facts["token"]["role"] == "viewer"
    assert client.post("/api/v1/evalsets/handbook/jobs/0/cancel", headers=header).status_code == 403
    lead = {"Authorization": f"Bearer {token_for(evalset, carol, 'lead')}"}
    assert client.post("/api/v1/evalsets/handbook/jobs/0/cancel", headers=lead).status_code == 404

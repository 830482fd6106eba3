"""Who gets in, and how errors look."""

import json

import pytest
from django.core.cache import cache
from django.utils import timezone

from evalsets.models import ApiToken
from tests.config.api import API, ApiClient, token_for
from tests.conftest import make_chunks, make_questions


@pytest.fixture(autouse=True)
def _no_wrong_tokens_yet() -> None:
    cache.clear()


def assert_problem(response, status: int, *words: str) -> dict:
    document = response.json()
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    assert document["status"] == status
    assert document["type"] == "about:blank"
    assert document["title"]
    for word in words:
        assert word in document["detail"]
    return document


def test_the_eval_set(evalset, carol) -> None:
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "c1")
    facts = ApiClient(token_for(evalset, carol)).get(API).json()
    assert (facts["slug"], facts["questions"], facts["chunks"]) == ("handbook", 2, 1)
    assert facts["token"] == {"name": "a lead", "role": "lead", "user": "carol", "expires_at": None}


def test_strangers_are_told_to_show_a_token(evalset, carol, client_for) -> None:
    for client in (client_for(None), client_for(carol)):  # a session opens nothing here
        response = client.get(API)
        assert_problem(response, 401, "Authorization: Bearer")
        assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer fairpool_wrong", "Bearer ", "Basic Y2Fyb2w6eA==", "Bearer é\x00"])
def test_wrong_tokens(header, evalset, client_for) -> None:
    assert_problem(client_for(None).get(API, headers={"Authorization": header}), 401)


def test_dead_tokens_say_why(evalset, carol) -> None:
    client = ApiClient(token_for(evalset, carol, "lead"))
    carol.is_active = False
    carol.save()
    assert_problem(client.get(API), 401, "can no longer sign in")
    carol.is_active = True
    carol.save()
    evalset.members.filter(user=carol).delete()
    assert_problem(client.get(API), 401, "no longer has the role")
    ApiToken.objects.update(expires_at=timezone.now())
    assert_problem(client.get(API), 401, "expired")
    ApiToken.objects.update(revoked_at=timezone.now())
    assert_problem(client.get(API), 401, "revoked")


def test_a_token_loses_power_with_its_maker(evalset, carol) -> None:
    client = ApiClient(token_for(evalset, carol, "lead"))
    evalset.members.filter(user=carol).update(role="viewer")
    assert client.get(API).json()["token"]["role"] == "viewer"


def test_wrong_tokens_are_throttled_and_right_ones_are_not(evalset, carol, settings) -> None:
    wrong, right = ApiClient("fairpool_wrong"), ApiClient(token_for(evalset, carol))
    for _ in range(settings.AXES_FAILURE_LIMIT):
        assert wrong.get(API).status_code == 401
    response = wrong.get(API)
    assert_problem(response, 429, "Too many wrong tokens")
    assert response["Retry-After"] == "900"
    assert right.get(API).status_code == 200
    assert wrong.get(API, REMOTE_ADDR="192.0.2.7").status_code == 401


def test_another_eval_set_and_an_unknown_one_look_alike(evalset, other_evalset, carol) -> None:
    client = ApiClient(token_for(evalset, carol))
    for slug in ("elsewhere", "no-such-set"):
        assert_problem(client.get(f"/api/v1/evalsets/{slug}"), 404, "another eval set")


@pytest.mark.parametrize(
    "address", ["/api/", "/api/v1/", "/api/v1/nothing", "/api/v2/evalsets/handbook", f"{API}/nothing"]
)
def test_unknown_addresses_are_problems(address, db, client_for) -> None:
    assert_problem(client_for(None).get(address), 404)
    assert_problem(client_for(None).post(address), 404)


def test_a_wrong_method_is_a_problem(evalset, carol) -> None:
    response = ApiClient(token_for(evalset, carol)).delete(API)
    assert_problem(response, 405, "DELETE")
    assert response["Allow"] == "GET"


def test_the_document_describes_itself(client_for, db) -> None:
    document = client_for(None).get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["security"], where
            assert "application/problem+json" in operation["responses"]["default"]["content"], where
            names = [item["name"] for item in operation["parameters"] if item["in"] == "path"]
            assert names == [part[1:-1] for part in path.split("/") if part.startswith("{")], where
    assert json.dumps(document).count("fairpool_") == 0

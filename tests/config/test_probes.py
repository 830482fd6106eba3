"""Answers for machines: alive, ready, figures; and who may read those."""

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from config.embedded.home import free_port
from evalsets.services.jobs import start_job


@pytest.fixture
def nobody_home(settings) -> None:
    """A broker and a database that are not there."""
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port(21000)}/0"


@pytest.fixture
def database_away(monkeypatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "PORT", str(free_port(22000)))
    monkeypatch.setattr(
        connection, "get_connection_params", lambda: {"host": "127.0.0.1", "port": free_port(22000)}
    )


def test_alive_asks_no_database(client, django_assert_num_queries, db) -> None:
    with django_assert_num_queries(0):
        response = client.get("/health/")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_ready(client, db) -> None:
    response = client.get("/health/ready/")
    assert response.status_code == 200
    told = response.json()
    assert isinstance(told.pop("workers"), int)
    assert told == {"status": "ok", "database": "ok", "migrations": "ok", "broker": "ok"}


def test_not_ready_without_a_broker(client, db, nobody_home) -> None:
    response = client.get("/health/ready/")
    assert response.status_code == 503
    assert response.json() == {
        "status": "missing: broker",
        "database": "ok",
        "migrations": "ok",
        "broker": "cannot be reached",
        "workers": None,
    }


def test_not_ready_without_a_database(client, db, database_away) -> None:
    response = client.get("/health/ready/")
    assert response.status_code == 503
    told = response.json()
    assert (told["database"], told["migrations"]) == ("cannot be reached", "not known")


@pytest.mark.django_db(transaction=True)
def test_not_ready_before_the_migrations(client) -> None:
    applied = MigrationRecorder.Migration.objects.filter(app="scoring")
    rows = list(applied)
    applied.delete()
    try:
        response = client.get("/health/ready/")
    finally:
        MigrationRecorder.Migration.objects.bulk_create(rows)
    assert response.status_code == 503
    assert response.json()["migrations"] == f"{len(rows)} to apply: manage.py migrate"


def figures(client: Client, **more) -> dict[str, float]:
    response = client.get("/metrics", **more)
    assert response.status_code == 200
    lines = [line for line in response.content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_figures_count_what_happens(client, evalset, carol, client_for) -> None:
    ours = 'fairpool_requests_total{method="GET",route="evalset-home",status="200"}'
    before = figures(client).get(ours, 0)
    client_for(carol).get("/e/handbook/")
    start_job(evalset=evalset, task="none", title="Waits", by=carol)
    now = figures(client)
    assert now[ours] == before + 1
    assert now['fairpool_request_seconds_bucket{le="+Inf",route="evalset-home"}'] >= 1
    assert now['fairpool_jobs_unfinished{state="waiting"}'] == 1
    assert (now["fairpool_database_up"], now["fairpool_broker_up"]) == (1, 1)
    assert {"fairpool_claims_held", "fairpool_judgments_saved_total", "fairpool_queue_length"} <= now.keys()


def test_figures_say_that_a_store_is_away(client, db, nobody_home, database_away) -> None:
    now = figures(client)
    assert (now["fairpool_database_up"], now["fairpool_broker_up"]) == (0, 0)
    assert "fairpool_queue_length" not in now


def test_figures_need_few_small_reads(client, db, django_assert_num_queries) -> None:
    with django_assert_num_queries(3):
        client.get("/metrics")


@pytest.mark.parametrize(
    ("token", "request_made", "status"),
    [
        ("", {}, 200),
        ("", {"REMOTE_ADDR": "::1"}, 200),
        ("", {"REMOTE_ADDR": "10.0.0.7"}, 403),
        ("", {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
        ("s3cret", {}, 403),
        ("s3cret", {"HTTP_AUTHORIZATION": "Bearer other"}, 403),
        ("s3cret", {"HTTP_AUTHORIZATION": "Bearer s3cret", "REMOTE_ADDR": "10.0.0.7"}, 200),
    ],
)
def test_who_may_read_the_figures(token, request_made, status, settings, client, db) -> None:
    settings.METRICS_TOKEN = token
    assert client.get("/metrics", **request_made).status_code == status


def test_behind_a_proxy_only_the_token_opens_the_figures(settings, client, db) -> None:
    settings.BEHIND_PROXY = True
    assert client.get("/metrics").status_code == 403

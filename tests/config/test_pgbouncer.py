"""Everything that runs, behind a PgBouncer in transaction mode: nothing counts on a session of its own.

PgBouncer is no part of what Fairpool sets up; without the program (Debian's package `pgbouncer`) this is skipped.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from celery import current_app
from django.db import connection

from config.embedded.home import free_port
from judging.models import Judgment
from labels.models import Release
from pooling.models import Pool, Run
from tests.config.api import API, token_for
from tests.config.test_faults import get
from tests.config.test_several_processes import judge_to_the_end
from tests.conftest import make_chunks, make_questions
from tests.judging.batches import batch_of, places_by_pair
from tests.judging.test_batch_over_http import Browser
from tests.servers import running_web, running_worker, server_environment
from tests.waiting import wait_until

PROGRAM = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
SERVER_CONNECTIONS = 4  # for two web processes and the worker together

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        PROGRAM is None, reason="no PgBouncer here (Debian and Ubuntu: apt install pgbouncer)"
    ),
]


@pytest.fixture
def pgbouncer(broker, transactional_db, tmp_path) -> Iterator[str]:
    """The address of a PgBouncer before the test database."""
    address = urllib.parse.urlsplit(server_environment(broker)["DATABASE_URL"])
    server = f"host={address.hostname} port={address.port} user={address.username} password={address.password or ''}"
    port = free_port(26000)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))  # pytest's own is closed to others
        file = folder / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n* = {server}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\n"
            "server_round_robin = 1\n"  # so that no two transactions of a client meet the same session by luck
        )
        command = [str(PROGRAM), "-q", str(file)]
        if os.geteuid() == 0:  # it refuses to run as root
            for place in (folder, file):
                shutil.chown(place, "nobody")
            command = ["setpriv", "--reuid=nobody", "--clear-groups", *command]
        log = stack.enter_context((tmp_path / "pgbouncer.log").open("wb"))
        process = stack.enter_context(subprocess.Popen(command, stderr=log))
        stack.callback(process.terminate)
        url = address._replace(netloc=f"{address.username}@127.0.0.1:{port}").geturl()
        wait_until(lambda: _answers(url), seconds=20)
        yield url


def _answers(url: str) -> bool:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as link:
        return link.execute("SELECT 1").fetchone() == (1,)
    return False


class Program:
    """A program with a token: it calls the API over real HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._place, self._token = urllib.parse.urlsplit(url).netloc, token

    def call(self, method: str, address: str, body: Any = None, status: int = 200) -> bytes:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with contextlib.closing(http.client.HTTPConnection(self._place, timeout=60)) as link:
            link.request(method, API + address, content, {"Authorization": f"Bearer {self._token}"})
            response = link.getresponse()
            said = response.read()
        assert response.status == status, said[:1000]
        return said

    def finished(self, address: str, body: Any) -> dict:
        """The result of the job that this call begins."""
        job = json.loads(self.call("POST", address, body, status=202))["id"]
        wait_until(lambda: json.loads(self.call("GET", f"/jobs/{job}"))["finished_at"])
        return json.loads(self.call("GET", f"/jobs/{job}/result"))


def left_behind(url: str) -> list[Any]:
    """What lasts beyond a transaction in the server connections, each looked at in a transaction of its own.

    What PgBouncer itself keeps the same for each client is left out.
    """
    found: list[Any] = []
    with contextlib.ExitStack() as stack:
        for _ in range(SERVER_CONNECTIONS):
            link = stack.enter_context(psycopg.connect(url, prepare_threshold=None))
            found += link.execute(
                """
                SELECT 'statement', statement FROM pg_prepared_statements
                UNION ALL SELECT 'cursor', statement FROM pg_cursors
                UNION ALL SELECT 'lock', objid::text FROM pg_locks
                    WHERE locktype = 'advisory' AND pid = pg_backend_pid()
                UNION ALL SELECT 'listens', channel FROM pg_listening_channels() channel
                UNION ALL SELECT 'table', relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()
                UNION ALL SELECT 'setting', name FROM pg_settings
                    WHERE source = 'session' AND setting <> reset_val AND name NOT IN
                    ('TimeZone', 'DateStyle', 'client_encoding', 'application_name', 'standard_conforming_strings')
                """
            ).fetchall()
    return found


def test_web_and_worker_do_all_their_work(
    pgbouncer, broker, static_root, tmp_path, evalset, alice, bob, carol
) -> None:
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, *(f"c{n}" for n in range(12)))
    batch = batch_of(
        evalset, {"q1": [f"c{n}" for n in range(12)]}, by=carol, assessors=[alice, bob],
        overlap=2, overlap_share=1.0,
    )  # fmt: skip
    assert left_behind(pgbouncer) == []  # and from now on all sessions are there
    settings = {"DATABASE_URL": pgbouncer, "DATABASE_POOL": "0"}
    with contextlib.ExitStack() as stack:
        with current_app.connection_for_write() as link:
            current_app.control.purge(connection=link)  # jobs of earlier tests
        web = stack.enter_context(running_web(broker, tmp_path, static_root, workers=2, **settings))
        worker = stack.enter_context(running_worker(broker, tmp_path, **settings))
        browsers = [Browser(web.url, user) for user in (alice, bob, alice, bob)]
        stack.callback(lambda: [browser.connection.close() for browser in browsers])
        program = Program(web.url, token_for(evalset, carol))
        connection.close()

        with ThreadPoolExecutor(5) as threads:
            judging = [threads.submit(judge_to_the_end, browser, batch) for browser in browsers]
            for number in range(3):  # meanwhile the worker has large transactions
                file = "".join(
                    f"q{q} Q0 c{c} {c + 1} {20 - c} run\n" for q in (1, 2) for c in range(12)
                ).encode()
                assert program.finished(f"/imports/run?system=s{number}", file)["written"]
            for judged in judging:
                judged.result()
        assert set(places_by_pair(batch).values()) == {2}
        assert Judgment.objects.count() == 24

        asked = {"runs": [{"run": "s0"}, {"run": "s1", "k": 5}], "k": 12}
        assert json.loads(program.call("POST", "/pools/preview", asked))["remainder"] == 12
        pool = json.loads(program.call("POST", "/pools", {**asked, "name": "both"}, status=201))["id"]
        assert len(program.call("GET", f"/pools/{pool}/remainder").splitlines()) == 12
        release = program.finished("/releases", {"notes": ""})["release"]
        assert len(program.call("GET", f"/releases/{release}/files/qrels").splitlines()) == 12
        for name in ("csv", "parquet", "beir", "judgments"):
            assert program.call("GET", f"/releases/{release}/files/{name}")
        lead = Browser(web.url, carol)
        stack.callback(lead.connection.close)
        run = Run.objects.get(name="s0")
        assert len(get(lead, f"/e/handbook/runs/{run.pk}/file/").splitlines()) == 24
        scores = {"release": release, "runs": ["s0", "s1"], "measures": ["Recall@5"]}
        assert json.loads(program.call("POST", "/scores", scores))["runs"]

        assert left_behind(pgbouncer) == []
        assert (Run.objects.count(), Pool.objects.count(), Release.objects.count()) == (3, 2, 1)
        for process in (web, worker):
            assert "Traceback" not in process.log.read_text()

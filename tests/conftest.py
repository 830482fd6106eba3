"""A small named world.

Alice and Bob assess, Carol leads, Victor views; Mallory leads another eval set and must see nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.test import Client, TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from evalsets.models import Chunk, ChunkRevision, EvalSet, Member, Question, User
from pooling.models import Ranking, Run, System

# A real broker for all tests, a real worker and web server for those that ask.
pytest_plugins = ["tests.servers"]

PASSWORD = "a long enough password"

# No test is timed: a busy machine is not a fault.
hypothesis_settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("untimed")

# What takes long, by its fixtures: homes with servers of their own; web servers, workers and Chromium on test rows.
LONGEST, LONG = {"homestead", "second_home"}, {"static_root", "worker", "browser"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of several processes none shall be left alone with long tests at the end: they come first."""

    def place(item: pytest.Item) -> int:
        fixtures = set(getattr(item, "fixturenames", ()))
        return 0 if fixtures & LONGEST else 1 if fixtures & LONG else 2

    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=place)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker) -> Iterator[None]:
    """The test database; before it is dropped, sessions that killed servers and ended threads left in it are ended."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        with connection.cursor() as cursor:
            # No test pulls the machine's plug: a commit need not wait for the disk. Holds for new connections.
            name = connection.ops.quote_name(connection.settings_dict["NAME"])
            cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
            cursor.execute("SELECT current_setting('is_superuser')")
            if cursor.fetchone() == ("on",):
                patch.setattr(TransactionTestCase, "_fixture_teardown", delete_all_rows)
        # Fifty threads of a test share the pool's eight connections, however busy the machine.
        if pool := connection.settings_dict["OPTIONS"].get("pool"):
            pool["timeout"] = 60
        connection.close()
        connection.close_pool()
        yield
    with django_db_blocker.unblock():
        connection.close()
        connection.close_pool()  # it may hold connections that a test had ended
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def delete_all_rows(test: TransactionTestCase) -> None:
    """Empty the tables after a test that committed.

    Django truncates all of them and then makes the content types and permissions again, which takes ten times as long
    with the few rows of a test.
    """
    kept = {ContentType._meta.db_table, Permission._meta.db_table}
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with transaction.atomic(), connection.cursor() as cursor:
        # Rows of append-only tables too, and in any order.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("".join(f'DELETE FROM "{table}";' for table in sorted(set(tables) - kept)))
    # A new pool for the next test: threads that a test leaves behind do not always give their connections back.
    connection.close()
    connection.close_pool()


@pytest.fixture(autouse=True)
def _plain_static_files(settings) -> None:
    """Pages name static files as they are: no collectstatic before a test."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _uploads_in_a_folder_of_the_test(settings, tmp_path) -> None:
    settings.MEDIA_ROOT = tmp_path / "uploads"


def make_user(username: str, **fields) -> User:
    return User.objects.create_user(username, password=PASSWORD, first_name=username.capitalize(), **fields)


@pytest.fixture
def evalset(db) -> EvalSet:
    return EvalSet.objects.create(slug="handbook", name="Support handbook")


@pytest.fixture
def other_evalset(db) -> EvalSet:
    return EvalSet.objects.create(slug="elsewhere", name="Another team's set")


@pytest.fixture
def alice(evalset) -> User:
    return _member(evalset, "alice", Member.Role.ASSESSOR)


@pytest.fixture
def bob(evalset) -> User:
    return _member(evalset, "bob", Member.Role.ASSESSOR)


@pytest.fixture
def carol(evalset) -> User:
    return _member(evalset, "carol", Member.Role.LEAD)


@pytest.fixture
def victor(evalset) -> User:
    return _member(evalset, "victor", Member.Role.VIEWER)


@pytest.fixture
def mallory(other_evalset) -> User:
    return _member(other_evalset, "mallory", Member.Role.LEAD)


@pytest.fixture
def root(db) -> User:
    return make_user("root", is_superuser=True)


def _member(evalset: EvalSet, username: str, role: Member.Role) -> User:
    user = make_user(username)
    Member.objects.create(evalset=evalset, user=user, role=role)
    return user


@pytest.fixture
def client_for() -> Callable[[User | None], Client]:
    """A client signed in as that user; None is a stranger."""

    def make(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return make


# Builders: plain functions over rows, for tests that need data and not the way it came in.


def make_questions(evalset: EvalSet, *ids: str, **fields) -> list[Question]:
    """Questions of these IDs; the text of q1 is "What is q1?"."""
    return [
        Question.objects.create(evalset=evalset, external_id=qid, **{"text": f"What is {qid}?", **fields})
        for qid in ids
    ]


def make_chunks(evalset: EvalSet, *ids: str, text: bool = True) -> list[Chunk]:
    """Chunks of these IDs; with a text "Text of c1." as revision 1 unless `text` is false."""
    chunks = []
    for cid in ids:
        chunk = Chunk.objects.create(evalset=evalset, external_id=cid, has_text=text)
        if text:
            add_revision(chunk, f"Text of {cid}.", number=1)
        chunks.append(chunk)
    return chunks


def add_revision(chunk: Chunk, text: str, *, number: int | None = None, **fields) -> ChunkRevision:
    """The next revision of the chunk (or that number), which becomes its current one."""
    number = number or chunk.revision + 1
    revision = ChunkRevision.objects.create(
        chunk=chunk,
        number=number,
        text=text,
        text_hash=hashlib.sha256(text.encode()).hexdigest(),
        **fields,
    )
    chunk.revision, chunk.has_text = number, True
    chunk.save()
    return revision


def make_run(
    evalset: EvalSet,
    name: str,
    rankings: dict[str, Sequence[str]],
    *,
    system: str | None = None,
    date: datetime.date = datetime.date(2026, 1, 1),
    **fields,
) -> Run:
    """A run whose rankings map question IDs to chunk IDs, best first; scores fall by one from the top.

    Questions must be there; chunks that are not are made without a text.
    """
    owner, _ = System.objects.get_or_create(evalset=evalset, name=system or name)
    run = Run.objects.create(
        evalset=evalset,
        system=owner,
        name=name,
        date=date,
        content_hash=hashlib.sha256(repr(sorted(rankings.items())).encode()).hexdigest(),
        **fields,
    )
    for qid, cids in rankings.items():
        chunks = [Chunk.objects.get_or_create(evalset=evalset, external_id=cid)[0].pk for cid in cids]
        Ranking.objects.create(
            run=run,
            question=Question.objects.get(evalset=evalset, external_id=qid),
            chunk_ids=chunks,
            scores=[float(len(chunks) - i) for i in range(len(chunks))],
        )
    return run

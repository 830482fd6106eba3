"""Logs: one line a record, which says whose and where, and nothing that people wrote."""

import json
import logging
import uuid

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import path

from config.logs import JsonLines, TextLines, chosen_form
from config.urls import *  # noqa: F403 (the addresses, and one more)
from evalsets.models import Chunk, ChunkRevision

SECRET = "the first line\n\nof the text of a chunk"


def fail(request):
    raise RuntimeError("it broke")


urlpatterns = [*urlpatterns, path("fails/", fail, name="fails")]  # noqa: F405


class Lines(logging.Handler):
    """What our formatter makes of every record, in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[dict] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def of(self, logger: str) -> list[dict]:
        return [line for line in self.lines if line["logger"] == logger]


@pytest.fixture
def lines():
    handler = Lines()
    root = logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_a_request_leaves_one_line_without_its_query(lines, evalset, carol, client_for) -> None:
    response = client_for(carol).get("/e/handbook/questions/?q=secret+words")
    [line] = lines.of("fairpool.request")
    expected = {
        "request_id": response["X-Request-ID"], "user": carol.pk, "evalset": "handbook", "method": "GET",
        "path": "/e/handbook/questions/", "route": "labels:question-list", "status": 200,
    }  # fmt: skip
    assert {name: line[name] for name in expected} == expected
    assert line["ms"] > 0
    assert "secret" not in json.dumps(lines.lines)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("0f8b2a9c3d4e4f60a1b2c3d4e5f60718", True),
        ("0f8b2a9c-3d4e-4f60-a1b2-c3d4e5f60718", True),
        ("x" * 5000, False),
        ('"} , {"level": "forged', False),
        ("", False),
    ],
)
def test_a_request_id_is_taken_where_it_is_one(sent, kept, lines, db) -> None:
    answered = Client().get("/sign-in/", headers={"X-Request-ID": sent})["X-Request-ID"]
    assert (answered == sent) == kept
    assert uuid.UUID(answered)
    assert lines.of("fairpool.request")[0]["request_id"] == answered
    assert len(lines.lines) == 1


@pytest.mark.urls(__name__)
def test_the_page_of_a_fault_tells_the_id_to_quote(lines, evalset, carol, client_for) -> None:
    client = client_for(carol)
    client.raise_request_exception = False
    response = client.get("/fails/")
    assert response.status_code == 500
    request_id = response["X-Request-ID"]
    assert f"<code>{request_id}</code>" in response.content.decode()
    [fault] = lines.of("django.request")
    assert "it broke" in fault["traceback"]
    assert (fault["request_id"], fault["user"]) == (request_id, carol.pk)


def test_rows_that_postgres_quotes_are_left_out(lines, evalset) -> None:
    chunk = Chunk.objects.create(evalset=evalset, external_id="c1")
    wrong = ChunkRevision(chunk=chunk, number=0, text=SECRET, text_hash="0")
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        wrong.save()
    fault = caught.value
    assert SECRET in str(fault)
    logging.getLogger("fairpool").error("It could not be saved: %s", fault, exc_info=fault)
    [line] = lines.of("fairpool")
    assert "revision_number_below_one" in line["traceback"]
    assert "text of a chunk" not in json.dumps(line)


def test_text_for_people_puts_the_facts_behind_the_message() -> None:
    record = logging.LogRecord("a.b", logging.WARNING, __file__, 1, "Slow: %s", ("x",), None)
    assert TextLines().format(record).endswith(" WARNING a.b: Slow: x")


def test_text_for_people_says_whose_and_where(evalset, carol, client_for) -> None:
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(TextLines().format(record))  # type: ignore[method-assign]
    logger = logging.getLogger("fairpool.request")
    logger.addHandler(handler)
    response = client_for(carol).get("/e/handbook/questions/")
    logger.removeHandler(handler)
    [line] = texts
    assert "fairpool.request: GET /e/handbook/questions/ 200 in " in line
    assert line.endswith(f"[request_id={response['X-Request-ID']} user={carol.pk} evalset=handbook]")


def test_a_line_of_text_stays_one_line_and_reads_as_written() -> None:
    forged = "x\n2026-01-01 ERROR forged\r\x1b[2J \u202edetrever\u2028 fin"
    record = logging.LogRecord("a.b", logging.WARNING, __file__, 1, "Bad name: %s", (forged,), None)
    said = TextLines().format(record)
    assert said.endswith(r"Bad name: x\n2026-01-01 ERROR forged\r\x1b[2J \u202edetrever\u2028 fin")


def test_a_line_break_in_a_path_makes_no_second_line(lines, db) -> None:
    Client().get("/no%0A2026-01-01 ERROR forged/")
    [line] = lines.of("fairpool.request")
    assert line["path"] == "/no%0A2026-01-01%20ERROR%20forged/"


def test_which_form_is_written() -> None:
    assert chosen_form({"DATABASE_URL": "postgresql://x/y", "LOG_FORMAT": "text"}) == "text"
    assert chosen_form({"LOG_FORMAT": "json"}) == "json"
    with pytest.raises(Exception, match="LOG_FORMAT is 'xml'; it must be json or text"):
        chosen_form({"LOG_FORMAT": "xml"})

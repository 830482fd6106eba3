"""Fifty assessors at the desk at once: POST a grade and get the next pair, over HTTP to gunicorn and Postgres here.

    .venv/bin/python benchmarks/desk.py [--assessors 50] [--seconds 60] [--unpaced 15] [--label-studio VENV] [--json]

- With a grade a second each, for as long as `--seconds` says (300 at most): how long a save and what comes next take
  (the bar is 100 ms at the 95th percentile), and whether the grades sent, confirmed and stored are equal and each pair
  got as many judgments as it asked for.
- Without pauses, for `--unpaced` seconds: how many grades a second are confirmed.
- `--label-studio` names a virtual environment with Label Studio and gunicorn in it (python -m venv VENV; VENV/bin/pip
  install label-studio gunicorn). It is started beside ours, one after the other, on the same Postgres server with as
  many processes and threads, and as many people take tasks and annotate them. The bar is a ratio of 5.

The client runs on the same machine and takes its share of it, of ours and of theirs. Databases of its own are made and
dropped.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import contextlib
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings
from django.db import connection
from django.db.models import Count
from django.test import Client
from django.urls import reverse

from benchmarks.crowd import Http, Outcome, run_crowd, running
from benchmarks.database import own_database
from benchmarks.label_studio_reference import label_studio
from config.embedded.home import free_port
from config.supervise import web_arguments
from evalsets.models import Chunk, ChunkRevision, EvalSet, Member, Question, User
from judging.models import Batch, BatchPair, Judgment
from judging.services.batches import PairToJudge, make_batch
from pooling.models import Pool

P95_BAR, RATIO_BAR, MOST_SECONDS = 0.100, 5.0, 300
# People who begin in the same second must not come to the end of their questions in the same second.
PER_QUESTION, WORDS = (10, 30), 150
COUNTS_EVERY = 20  # seconds, as static/js/desk.js does
CSRF = "c" * 32


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--assessors", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=60, help="With a grade a second each; 300 at most.")
    parser.add_argument("--unpaced", type=int, default=15, help="Seconds without pauses.")
    parser.add_argument("--label-studio", type=Path, metavar="VENV")
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    if not 1 <= options.seconds <= MOST_SECONDS:
        parser.error(f"--seconds is 1 to {MOST_SECONDS}")
    logging.disable(logging.INFO)
    with own_database(), tempfile.TemporaryDirectory(prefix="fairpool-desk-") as folder:
        result = measure(options, Path(folder))
    print(json.dumps(result) if options.json else in_words(result))


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    # More than anybody grades without pauses.
    paced, unpaced = options.assessors * options.seconds, 600 * options.unpaced
    crowd = make_crowd(options.assessors)
    batch, endless = make_batches(crowd, [paced, unpaced])
    with web_server(folder) as address:
        outcome = judge(address, batch, crowd, pause=1.0, most=options.seconds + 60)
        exact = look_back(batch, outcome)
        flat_out = judge(address, endless, crowd, pause=0.0, most=options.unpaced)
        flat_out_stored = Judgment.objects.filter(pair__batch=endless).count()
    result = {
        "assessors": options.assessors,
        "p50": outcome.percentile(0.50),
        "p95": outcome.percentile(0.95),
        "p99": outcome.percentile(0.99),
        "p95_bar": P95_BAR,
        "seconds": outcome.seconds,
        "sent": outcome.sent,
        "confirmed": outcome.confirmed,
        **exact,
        "unpaced_sent": flat_out.sent,
        "unpaced_confirmed": flat_out.confirmed,
        "unpaced_stored": flat_out_stored,
        "grades_per_second": flat_out.confirmed / flat_out.seconds,
        "unpaced_p95": flat_out.percentile(0.95),
    }
    if options.label_studio:
        theirs = label_studio(
            options.label_studio, folder, people=options.assessors, seconds=options.unpaced, text=text_of(0)
        )
        result["label_studio_per_second"] = theirs
        result["ratio"] = result["grades_per_second"] / theirs
        result["ratio_bar"] = RATIO_BAR
    return result


def in_words(result: dict[str, Any]) -> str:
    lines = [
        f"{result['assessors']} assessors, a grade a second each, {result['seconds']:.0f} s: grade to next pair "
        f"p50 {result['p50'] * 1000:.0f} ms, p95 {result['p95'] * 1000:.0f} ms (bar {P95_BAR * 1000:.0f}), "
        f"p99 {result['p99'] * 1000:.0f} ms",
        f"{result['sent']:,} grades sent, {result['confirmed']:,} confirmed, {result['stored']:,} stored; of "
        f"{result['pairs']:,} pairs {result['as_often_as_asked']:,} got as many judgments as asked, "
        f"{result['too_often']:,} more",
        f"without pauses {result['grades_per_second']:.0f} grades a second, p95 {result['unpaced_p95'] * 1000:.0f} ms; "
        f"{result['unpaced_sent']:,} sent, {result['unpaced_confirmed']:,} confirmed, "
        f"{result['unpaced_stored']:,} stored",
    ]
    if "ratio" in result:
        lines.append(
            f"Label Studio {result['label_studio_per_second']:.1f} annotations a second: "
            f"ratio {result['ratio']:.1f} (bar {RATIO_BAR:g})"
        )
    return "\n".join(lines)


# The world: questions of 10 to 30 chunks each, a tenth of the pairs judged twice.


def make_crowd(count: int) -> list[User]:
    evalset = EvalSet.objects.create(slug="load", name="Load")
    people = User.objects.bulk_create(
        User(username=f"assessor{number:03}", password="!") for number in range(count)
    )
    Member.objects.bulk_create(
        Member(evalset=evalset, user=user, role=Member.Role.ASSESSOR) for user in people
    )
    return people


def text_of(number: int) -> str:
    draw = random.Random(number)
    words = draw.choices([f"word{n}" for n in range(3000)], k=WORDS)
    return f"Text {number}. " + " ".join(words)


def make_batches(crowd: Sequence[User], sizes: Sequence[int]) -> list[Batch]:
    evalset = EvalSet.objects.get()
    chunks = Chunk.objects.bulk_create(
        Chunk(evalset=evalset, external_id=f"c{number}", revision=1, has_text=True) for number in range(2000)
    )
    ChunkRevision.objects.bulk_create(
        ChunkRevision(chunk=chunk, number=1, text=text_of(number), text_hash=f"{number:064}")
        for number, chunk in enumerate(chunks)
    )
    pool = Pool.objects.create(
        evalset=evalset, name="load", strategy=Pool.Strategy.DEPTH, seed=1, specification_hash="load"
    )
    draw, batches = random.Random(1), []
    for number, size in enumerate(sizes):
        questions = Question.objects.bulk_create(
            Question(
                evalset=evalset, external_id=f"b{number}q{q}", text=f"What does word{q} say of word{q + 1}?"
            )
            for q in range(-(-size // min(PER_QUESTION)))
        )
        pairs = [
            PairToJudge(question.pk, chunk.pk, 1, position)
            for question in questions
            for position, chunk in enumerate(draw.sample(chunks, draw.randint(*PER_QUESTION)))
        ]
        batches.append(
            make_batch(
                pool=pool, name=f"Load {number}", by=crowd[0], assessors=list(crowd), pairs=pairs[:size], seed=1,
                overlap=2, overlap_share=0.1,
            )
        )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return batches


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """Our gunicorn as the demo runs it, on the benchmark's database. Yields host:port."""
    database = connection.settings_dict
    account = f"{database['USER']}:{urllib.parse.quote(database['PASSWORD'] or '', safe='')}@"
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{account}{database['HOST']}:{database['PORT']}/{database['NAME']}",
        "SECRET_KEY": settings.SECRET_KEY,
        "BEHIND_TLS": "0",
        "ALLOWED_HOSTS": "127.0.0.1",
        "STATIC_ROOT": str(folder / "static"),
        "LOG_LEVEL": "WARNING",
    }
    manage = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    subprocess.run(manage, cwd=CHECKOUT, env=environment, check=True)
    port = free_port(18400)
    command = [sys.executable, "-m", *web_arguments("127.0.0.1", port)]
    with running(command, environment, folder / "web.log", f"http://127.0.0.1:{port}/health/", cwd=CHECKOUT):
        yield f"127.0.0.1:{port}"


# The crowd.


def judge(address: str, batch: Batch, crowd: Sequence[User], *, pause: float, most: float) -> Outcome:
    """All assessors judge to the end of the batch, or for `most` seconds."""
    people = [Assessor(address, batch, user) for user in crowd]
    connection.close()
    return run_crowd(people, pause=pause, most=most)


class Assessor:
    """Does what static/js/desk.js does: keeps some pairs ready, and sends what it has with each grade."""

    def __init__(self, address: str, batch: Batch, user: User):
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self.user = user
        self.http = Http(
            address,
            {
                "Accept": "application/json",
                "Content-Type": "application/x-www-form-urlencoded",
                "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}; {settings.CSRF_COOKIE_NAME}={CSRF}",
                "X-CSRFToken": CSRF,
            },
        )
        arguments = [batch.evalset.slug, batch.pk]
        self.next_url = reverse("judging:desk-next", args=arguments)
        self.save_url = reverse("judging:desk-save", args=arguments)
        self.ready: list[int] = []
        self.known: set[str] = set()
        self.draw = random.Random(user.pk)

    def start(self) -> None:
        self.take(self.post(self.next_url, {"counts": "1"}))

    def work(self, outcome: Outcome, on: Callable[[], bool], rest: Callable[[], None]) -> None:
        counted = time.perf_counter() - self.draw.random() * COUNTS_EVERY
        while on():
            if not self.ready:
                # What others hold may come back, and near the end of a batch it does.
                self.take(self.post(self.next_url, {}))
                if not self.ready:
                    return
            fields = {
                "pair": self.ready.pop(0),
                "key": uuid.uuid4(),
                "as_user": self.user.pk,
                "revision": 1,
                "spans": "[]",
                "note": "",
                "act": f"grade:{self.draw.randrange(4)}",
                "seconds": "1.0",
                "chosen_ago": "0.0",
                "have": ",".join(map(str, self.ready)),
                "known": ",".join(self.known),
            }
            if time.perf_counter() - counted > COUNTS_EVERY:
                fields["counts"], counted = "1", time.perf_counter()
            outcome.sent += 1
            begun = time.perf_counter()
            answer = self.post(self.save_url, fields)
            outcome.times.append(time.perf_counter() - begun)
            outcome.confirmed += answer["saved"]["said"].startswith("Saved")
            self.take(answer)
            rest()

    def post(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.http.ask("POST", path, urllib.parse.urlencode(fields)))
        return answer

    def take(self, answer: dict[str, Any]) -> None:
        self.ready += [item["pair"] for item in answer["next"]]
        self.known |= answer["questions"].keys()


def look_back(batch: Batch, outcome: Outcome) -> dict[str, int]:
    """What is stored of the batch, and how often its pairs were judged."""
    judgments = Judgment.objects.filter(pair__batch=batch)
    got = Counter(dict(judgments.values_list("pair").annotate(Count("pk"))))
    wanted = dict(BatchPair.objects.filter(batch=batch).values_list("pk", "wanted"))
    return {
        "stored": judgments.count(),
        "pairs": len(wanted),
        "as_often_as_asked": sum(got[pair] == asked for pair, asked in wanted.items()),
        "too_often": sum(got[pair] > asked for pair, asked in wanted.items()),
    }


if __name__ == "__main__":
    main()

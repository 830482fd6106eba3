"""What every page costs in an eval set, and in one ten times as large: page times must not grow with the eval set.

    .venv/bin/python benchmarks/page_costs.py [--questions 10000] [--times 10] [--only NAME] [--keep] [--json]

Makes two eval sets, opens each page that a lead and an assessor can reach in both, and prints for each page its
statements, the CPU time of Python and the time in the database, at both sizes, and how often the larger takes the
smaller one's time. Figures that a job works out (judging/reckoning.py) are worked out first, and their times printed.
With 10,000 questions the larger has a million judgments and is made within some minutes. A database of its own is made
and dropped; `--keep` leaves it, and a second call with `--keep` uses it.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("LOG_LEVEL", "WARNING")

import django

django.setup()

from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from benchmarks.database import own_database
from benchmarks.large_evalset import World, find_world, make_world
from evalsets.models import User
from labels.reports import REPORTS
from labels.services.reckoning import reckon

# A page below so many milliseconds in both is no matter, whatever its ratio.
NO_MATTER = 20.0


class Cost(NamedTuple):
    """Of one page: statements, and milliseconds of Python and of the database."""

    statements: int
    cpu: float
    database: float

    @property
    def total(self) -> float:
        return self.cpu + self.database


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=10_000, help="Of the larger eval set.")
    parser.add_argument("--times", type=int, default=10, help="How often as large as the smaller it is.")
    parser.add_argument("--only", default="", help="Pages whose name or address has this.")
    parser.add_argument("--keep", action="store_true", help="Keep the database for the next call.")
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    with own_database(keep=options.keep):
        result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    for key in ("small", "large"):
        print(f"{key}: " + ", ".join(f"{count:,} {what}" for what, count in result[key].items()))
    for name, (small, large) in result["reckoned"].items():
        print(f"worked out by a job: {name}, {small:.1f} s and {large:.1f} s")
    print(f"{'page':58} {'statements':>11} {'CPU ms':>13} {'database ms':>15} {'ratio':>6}")
    for page in result["pages"]:
        less, more = Cost(*page["small"]), Cost(*page["large"])
        print(
            f"{page['page']:58} {less.statements:5} {more.statements:5} {less.cpu:6.0f} {more.cpu:6.0f} "
            f"{less.database:7.0f} {more.database:7.0f} {page['ratio']:6.1f}{'  grows' if page['grows'] else ''}"
        )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    small, large = worlds(options)
    names = zip(reports(small), reports(large), strict=True)
    reckoned = {
        name.partition(":")[0]: (seconds_of(small, name), seconds_of(large, larger)) for name, larger in names
    }
    rows = []
    for (name, address, ask), (_, larger, ask_larger) in zip(pages(small), pages(large), strict=True):
        if options.only not in name and options.only not in address:
            continue
        costs = [ask(address), ask_larger(larger)]
        ratio = costs[1].total / costs[0].total
        grows = ratio > 2 and costs[1].total > NO_MATTER
        rows.append({"page": name, "small": costs[0], "large": costs[1], "ratio": ratio, "grows": grows})
    return {"small": small.rows, "large": large.rows, "pages": rows, "reckoned": reckoned}


def reports(world: World) -> list[str]:
    """The figures that a job works out, named as `Reckoned.name` does."""
    keys = {
        "judge": [f":{world.judge.pk}"],
        "pool": [f":{world.pool.pk}"],
        "agreement": ["", f":{world.done.pk}"],
        "rated-pairs": ["", f":{world.done.pk}"],
        "room": [f":{world.done.pk}"],
    }
    return [name + key for name in REPORTS for key in keys.get(name, [""])]


def seconds_of(world: World, report: str) -> float:
    """How long working these figures out takes."""
    begun = time.perf_counter()
    reckon(evalset=world.evalset, reports=[report])
    return time.perf_counter() - begun


def worlds(options: argparse.Namespace) -> list[World]:
    if not User.objects.exists():
        make_world("small", options.questions // options.times)
        make_world("large", options.questions)
    return [find_world("small"), find_world("large")]


def asking(user: User, **headers: str) -> Callable[[str], Cost]:
    """Opens a page as that user: once to warm everything up, once to measure."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")

    def ask(address: str) -> Cost:
        client.get(address, headers=headers)
        spent = [0.0, 0.0]

        def watch(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
            begun, cpu = time.perf_counter(), time.process_time()
            try:
                return execute(sql, params, many, context)
            finally:
                spent[0] += time.perf_counter() - begun
                spent[1] += time.process_time() - cpu
                counted.append(sql)

        counted: list[str] = []
        with connection.execute_wrapper(watch):
            cpu = time.process_time()
            response = client.get(address, headers=headers)
            cpu = time.process_time() - cpu
        if response.status_code not in (200, 302):
            raise SystemExit(f"{address} answers {response.status_code}")
        return Cost(len(counted), 1000 * (cpu - spent[1]), 1000 * spent[0])

    return ask


def pages(world: World) -> Iterator[tuple[str, str, Callable[[str], Cost]]]:
    """Each page's name, its address in that eval set, and how to open it."""
    lead, assessor = asking(world.lead), asking(world.assessor)
    yield "my-work", reverse("my-work"), lead
    for name, arguments, queries in pages_of_lead(world):
        for query in ["", *queries]:
            yield name + query, reverse(name, args=[world.evalset.slug, *arguments]) + query, lead
    again = reverse("judging:batch", args=[world.evalset.slug, world.at_work.pk])
    yield "judging:batch, asked again", again, asking(world.lead, HX_Request="true")
    yield "assessor: my-work", reverse("my-work"), assessor
    for name, arguments in [
        ("evalset-home", []),
        ("judging:batch-list", []),
        ("judging:desk", [world.at_work.pk]),
        ("labels:release-list", []),
        ("labels:release", [1]),
    ]:
        yield f"assessor: {name}", reverse(name, args=[world.evalset.slug, *arguments]), assessor


def pages_of_lead(world: World) -> Iterator[tuple[str, list[Any], list[str]]]:
    """Names of addresses with their arguments, and queries to try besides none."""
    yield "evalset-home", [], []
    yield "evalsets:settings", [], []
    yield "evalsets:split-draw", [], []
    yield "evalsets:member-list", [], []
    yield "evalsets:token-list", [], []
    yield "evalsets:job-list", [], []
    yield "evalsets:job", [world.job.pk], []
    yield "evalsets:audit", [], ["?page=100"]
    yield "judging:import", [], []
    yield "judging:pool-list", [], []
    yield "judging:pool-new", [], []
    yield "judging:pool-simulation", [], []
    yield "judging:pool", [world.pool.pk], []
    yield "judging:pool-question", [world.pool.pk, world.question.pk], []
    yield "judging:pool-order", [world.pool.pk], []
    yield "judging:batch-list", [], []
    yield "judging:batch-new", [], []
    yield "judging:batch", [world.at_work.pk], []
    yield "judging:batch", [world.done.pk], ["?page=10"]
    yield "judging:desk", [world.at_work.pk], []
    yield "labels:question-list", [], ["?page=100", "?sort=text", "?slice=slice-3", "?q=case+77"]
    yield "labels:question", [world.question.pk], []
    yield (
        "labels:chunk-list",
        [],
        ["?page=100", "?sort=-revision", "?only=waiting", "?only=revised", "?q=word77", "?q=case+77."],
    )
    yield "labels:chunk", [world.chunk.pk], []
    yield "labels:system-list", [], []
    yield "labels:system", [world.system.pk], []
    yield "labels:run", [world.run.pk], []
    yield "labels:ranking", [world.run.pk, world.question.pk], []
    yield "labels:agreement", [], [f"?batch={world.done.pk}"]
    yield "labels:agreement-pairs", [], ["?low=0&high=1"]
    yield "labels:judge-list", [], []
    yield "labels:judge", [world.judge.pk], []
    yield "labels:contested", [], ["?page=20", "?why=skipped-only", "?why=decided"]
    yield "labels:settle-next", [], []
    yield "labels:settle", list(world.waiting), []
    yield "labels:duplicate-list", [], []
    yield "labels:duplicate", [world.candidate.pk], []
    yield "labels:class", [world.chunk_class.pk], []
    yield "labels:mapping-list", [], []
    yield "labels:mapping", [world.mapping.pk], []
    yield "labels:release-list", [], []
    yield "labels:release-new", [], []
    yield "labels:release", [2], []
    yield "labels:release-unlabelled", [2], []
    yield "labels:release-difference", [], []
    yield "scoring:score-list", [], []
    yield "scoring:score", [world.score.pk], []
    yield "scoring:comparison-list", [], []
    yield "scoring:comparison", [world.comparison.pk], []
    yield "scoring:comparison-question", [world.comparison.pk, world.question.pk], []
    yield "scoring:sweep", [], []
    yield "scoring:unjudged", [], []
    yield "scoring:reusability", [], []
    yield "scoring:stages", [], []


if __name__ == "__main__":
    main()

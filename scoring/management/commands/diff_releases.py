from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_evalset
from labels.models import labels_of_models_in_words
from labels.services.finding import find_release
from scoring.effects import difference_document

SHOWN = 20


class Command(FairpoolCommand):
    help = (
        "Show what differs between two releases: labels added, removed and regraded, questions, "
        "classes, settings, and the scores of runs that were scored on both."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument("before", metavar="A", type=int, help="Number of the one release.")
        parser.add_argument("after", metavar="B", type=int, help="Number of the other release.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        before, after = find_release(evalset, options["before"]), find_release(evalset, options["after"])
        return difference_document(before, after)

    def show(self, document: dict[str, Any]) -> None:
        write = self.stdout.write
        write(f"From release {document['from']['release']} to release {document['to']['release']}:")
        for side in (document["from"], document["to"]):
            if said := labels_of_models_in_words(side):
                write(f"  release {side['release']}: {said}")
        regraded = sum(item["count"] for item in document["regraded"])
        write(f"  labels: {document['added']} added, {document['removed']} removed, {regraded} regraded")
        for item in document["regraded"]:
            write(f"    {item['from']} to {item['to']}: {item['count']}")
        models = document["of_models"]
        if any(models.values()):
            write(
                f"    labels of models: {models['models_added']} of those added, {models['models_removed']} of those "
                f"removed; {models['judged']} judged by people since, {models['unjudged']} no longer"
            )
        for name, changes in document["questions"].items():
            if changes:
                write(f"  questions {name}: {', '.join(changes[:SHOWN])}{_more(changes)}")
        for name, classes in document["classes"].items():
            for members in classes[:SHOWN]:
                write(f"  class {name}: {', '.join(members)}")
        for name, change in document["settings"].items():
            write(f"  {name}: {change['from']} to {change['to']}")
        for effect in document["scores"]:
            for measure, change in effect["measures"].items():
                rates = change["unjudged"]
                write(
                    f"  {effect['run']} ({effect['policy']}): {measure} {_score(change['from'])} to "
                    f"{_score(change['to'])}, unjudged {rates['from']:.1%} to {rates['to']:.1%}"
                )
        for pair in document["pairs"][:SHOWN]:
            before, after = ("unlabelled" if pair[side] is None else pair[side] for side in ("from", "to"))
            write(f"  {pair['question']} {pair['chunk']}: {before} to {after}")
        if more := _more(document["pairs"]):
            write(f" {more}; --json lists all")


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _more(items: list[Any]) -> str:
    return f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""

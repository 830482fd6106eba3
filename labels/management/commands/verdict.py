from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_chunk, find_evalset, find_lead
from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet
from judging.models import PairVerdict
from judging.near_copies import said_of
from judging.services.verdicts import give_verdict, standing_verdict

Verdict = PairVerdict.Verdict
WORDS = {
    "same": Verdict.SAME,
    "newer": Verdict.FIRST_NEWER,
    "older": Verdict.SECOND_NEWER,
    "different": Verdict.DIFFERENT,
    "take-back": Verdict.NONE,
}
TOLD = {str(verdict): word for word, verdict in WORDS.items()}


class Command(FairpoolCommand):
    help = (
        "Say in a lead's name what two chunks are to each other, or take that back, and tell how their classes change. "
        "Without a verdict: what holds for the two. Without chunks: the pairs found by find_duplicates that wait for "
        "a verdict, the likeliest first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("first", metavar="CHUNK_A", nargs="?", help="A chunk's ID.")
        parser.add_argument("second", metavar="CHUNK_B", nargs="?", help="Another's.")
        parser.add_argument(
            "verdict",
            nargs="?",
            choices=list(WORDS),
            help="The same content; A replaces B; B replaces A; different content; no verdict any more.",
        )
        parser.add_argument("--by", metavar="USER", help="The lead whose verdict it is.")
        parser.add_argument("--note", default="", metavar="TEXT", help="Why.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        if options["first"] is None:
            return _waiting(evalset)
        if options["second"] is None:
            raise BadInput("A verdict is on two chunks: name CHUNK_B too.")
        first, second = (find_chunk(evalset, options[name]) for name in ("first", "second"))
        if options["verdict"] is None:
            return _standing(first, second)
        if options["by"] is None:
            raise BadInput("A verdict is a lead's: name them with --by.")
        given = give_verdict(
            first=first,
            second=second,
            verdict=WORDS[options["verdict"]],
            by=find_lead(evalset, options["by"]),
            note=options["note"],
        )
        return {
            **_standing(first, second),
            "written": given.created,
            "classes_before": given.before,
            "classes": given.after,
            "sentence": given.sentence,
        }

    def show(self, document: dict[str, Any]) -> None:
        if "waiting" in document:
            for pair in document["waiting"]:
                likeness = "equal" if pair["equal"] else f"{pair['similarity']:.0%} alike"
                self.stdout.write(f"{pair['first']}  {pair['second']}  {likeness}")
            self.stdout.write(f"{len(document['waiting'])} pairs wait for a verdict.")
            return
        if document["verdict"] is None:
            said = "no verdict holds"
        else:
            said = f"{document['verdict']}, by {document['assessor']}"
        self.stdout.write(f"{document['first']} and {document['second']}: {said}.")
        if "written" in document:
            self.stdout.write(document["sentence"] if document["written"] else "Nothing was written.")


def _waiting(evalset: EvalSet) -> dict[str, Any]:
    candidates = evalset.duplicate_candidates.open().select_related("first", "second")
    return {
        "waiting": [
            {
                "first": pair.first.external_id,
                "second": pair.second.external_id,
                "similarity": pair.similarity,
                "equal": pair.equal,
            }
            for pair in candidates
        ]
    }


def _standing(first: Chunk, second: Chunk) -> dict[str, Any]:
    """The verdict that holds for the two, in words about the first; `verdict` is null where none does."""
    standing = standing_verdict(first, second)
    return {
        "first": first.external_id,
        "second": second.external_id,
        "verdict": TOLD[said_of(first, second)] if standing else None,
        "assessor": standing.assessor.name if standing else None,
        "note": standing.note if standing else "",
    }

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Count, Sum

from evalsets.commands import FairpoolCommand, add_by, find_evalset, find_user, lead_of
from evalsets.errors import BadInput
from judging.models import Batch
from judging.services.batches import make_batch
from judging.services.gold import Gold
from pooling.services.finding import find_pool


class Command(FairpoolCommand):
    help = "Hand what is left of a pool to named assessors as a batch."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument("pool", metavar="POOL", help="The pool's name.")
        parser.add_argument(
            "--name", required=True, help="The batch's name. Assessors see it: name no system."
        )
        parser.add_argument(
            "--assessor",
            dest="assessors",
            metavar="USER",
            nargs="+",
            action="extend",
            required=True,
            help="Those who judge in it.",
        )
        parser.add_argument(
            "--without-copies",
            action="store_true",
            help="Leave out chunks of a class that has a member judged for the question already.",
        )
        parser.add_argument(
            "--overlap",
            metavar="N:SHARE",
            default="1:0",
            help="N independent judgments for that share of the pairs, 0 to 1. Default: one for each pair.",
        )
        parser.add_argument(
            "--again",
            action="store_true",
            help="With --overlap: as large a share of the judged pairs that have fewer judgments goes in for the rest.",
        )
        parser.add_argument(
            "--gold",
            metavar="FILE|decided",
            help="Mix in pairs with a known answer: of a file (question, chunk, grade on a line; or qrels), or those "
            "of the batch's questions that a lead has decided.",
        )
        parser.add_argument(
            "--gold-share",
            type=float,
            default=0.05,
            metavar="X",
            help="The share of each one's work that is gold, above 0 and below 1. Default: 0.05.",
        )
        parser.add_argument(
            "--sharing",
            choices=Batch.Sharing.values,
            default=Batch.Sharing.BY_QUESTION,
            help="How the work is shared. Default: by-question.",
        )
        parser.add_argument("--due", metavar="YYYY-MM-DD", help="The day it is due on.")
        parser.add_argument(
            "--instructions",
            metavar="FILE",
            help="Markdown that goes into the rubric. Default: the latest rubric's.",
        )
        parser.add_argument(
            "--lease-minutes", type=int, default=30, help="Idle for so long, open work goes back."
        )
        parser.add_argument(
            "--seed", type=int, help="Of the choice of overlapping and gold pairs. Default: a random one."
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["evalset"])
        overlap, share = _overlap(options["overlap"])
        batch = make_batch(
            pool=find_pool(evalset, options["pool"]),
            name=options["name"],
            by=lead_of(evalset, options),
            assessors=[find_user(name) for name in options["assessors"]],
            without_copies=options["without_copies"],
            sharing=Batch.Sharing(options["sharing"]),
            overlap=overlap,
            overlap_share=share,
            again=options["again"],
            gold=_gold(options["gold"], options["gold_share"]),
            due_on=_date(options["due"]),
            instructions=_text_of(options["instructions"]),
            lease_minutes=options["lease_minutes"],
            seed=options["seed"],
        )
        wanted = batch.pairs.ordinary().aggregate(judgments=Sum("wanted"), pairs=Count("pk"))
        return {
            "batch": batch.pk,
            "name": batch.name,
            "questions": batch.batch_questions.count(),
            "pairs": wanted["pairs"],
            "judgments": wanted["judgments"] or 0,
            "gold_pairs": batch.pairs.gold().count(),
            "assessors": options["assessors"],
            "sharing": batch.sharing,
            "seed": batch.seed,
        }

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"Batch {document['name']}: {document['pairs']} pairs of {document['questions']} questions, "
            f"{document['judgments']} judgments, for {', '.join(document['assessors'])}."
        )
        if document["gold_pairs"]:
            self.stdout.write(f"{document['gold_pairs']} gold pairs are mixed in for each of them.")


def _overlap(text: str) -> tuple[int, float]:
    number, _, share = text.partition(":")
    try:
        return int(number), float(share) if share else 1.0
    except ValueError:
        raise BadInput(f"--overlap is {text!r}; write it as N:SHARE, for example 2:0.1.") from None


def _gold(source: str | None, share: float) -> Gold | None:
    if source is None:
        return None
    return Gold(share) if source == "decided" else Gold(share, file=Path(source), file_name=Path(source).name)


def _date(text: str | None) -> datetime.date | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--due is {text!r}; write the day as YYYY-MM-DD.") from None


def _text_of(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The instructions cannot be read: {error}") from None
    if "\x00" in text:
        raise BadInput("The instructions hold a NUL character; they are Markdown, in UTF-8.")
    return text

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_by, find_evalset, find_user, lead_of
from evalsets.errors import BadInput
from judging import batch_counts, batch_reads
from judging.models import Assessor, Batch, BatchQuestion
from judging.services import batches as services
from judging.services.finding import find_batch


class Command(FairpoolCommand):
    help = "Say how far a batch is, after doing with it what is asked."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("evalset", metavar="SLUG", help="The eval set.")
        parser.add_argument("batch", metavar="BATCH", help="The batch's name.")
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--pause", action="store_true", help="Hand out nothing more.")
        act.add_argument("--resume", action="store_true", help="Hand out pairs again.")
        act.add_argument(
            "--cancel", action="store_true", help="End it for good. Judgments stay; open pairs go back."
        )
        act.add_argument("--take-out", metavar="USER", help="Take an assessor out; what they hold goes back.")
        act.add_argument(
            "--give",
            nargs="+",
            metavar=("USER", "QUESTION"),
            help="Give these questions, by ID, to an assessor of the batch; what others hold of them goes back.",
        )
        act.add_argument(
            "--free",
            nargs="+",
            metavar="QUESTION",
            help="Let whoever comes take these questions; what is held of them goes back.",
        )
        parser.add_argument(
            "--add", metavar="USER", action="append", default=[], help="Add an assessor. One for each."
        )
        parser.add_argument(
            "--due", type=datetime.date.fromisoformat, metavar="YYYY-MM-DD", help="A due date."
        )
        parser.add_argument(
            "--more-pairs", action="store_true", help="Take in what is new in the pool's remainder."
        )
        add_by(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        batch = find_batch(find_evalset(options["evalset"]), options["batch"])
        by = lead_of(batch.evalset, options)
        if options["add"] or options["due"] or options["more_pairs"]:
            services.extend_batch(
                batch=batch,
                by=by,
                assessors=[find_user(name) for name in options["add"]],
                due_on=options["due"],
                more_pairs=options["more_pairs"],
            )
        if options["pause"]:
            services.pause_batch(batch=batch, by=by)
        elif options["resume"]:
            services.resume_batch(batch=batch, by=by)
        elif options["cancel"]:
            services.cancel_batch(batch=batch, by=by)
        elif options["take_out"]:
            assessor = batch.assessors.filter(user=find_user(options["take_out"])).first()
            if assessor is None:
                raise BadInput(f"{options['take_out']} is not an assessor of batch {batch}.")
            services.remove_assessor(batch=batch, by=by, assessor=assessor)
        elif options["give"]:
            user, *questions = options["give"]
            services.reassign_questions(
                batch=batch, by=by, to=_assessor(batch, user), questions=_questions(batch, questions)
            )
        elif options["free"]:
            services.reassign_questions(
                batch=batch, by=by, to=None, questions=_questions(batch, options["free"])
            )
        return _document(batch)

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"Batch {document['name']}, {document['state']}: {document['done']} of {document['wanted']} judgments, "
            f"{document['filled']} of {document['pairs']} pairs."
        )
        for row in document["assessors"]:
            gold = f", gold {row['gold_exact']} of {row['gold']} exact" if row["gold"] else ""
            self.stdout.write(
                f"  {row['name']}: {row['judged']} judged, {row['skipped']} skipped, holds {row['held']}{gold}"
            )


def _assessor(batch: Batch, user: str) -> Assessor:
    assessor = batch.assessors.filter(user=find_user(user)).first()
    if assessor is None:
        raise BadInput(f"{user} is not an assessor of batch {batch}. Add them first, with --add.")
    return assessor


def _questions(batch: Batch, ids: Sequence[str]) -> list[BatchQuestion]:
    rows = list(batch.batch_questions.filter(question__external_id__in=ids).select_related("question"))
    missing = set(ids) - {row.question.external_id for row in rows}
    if missing or not rows:
        said = ", ".join(sorted(missing)) or "none was named"
        raise BadInput(f"Questions that batch {batch} does not have: {said}.")
    return rows


def _document(batch: Batch) -> dict[str, Any]:
    state = next(
        state for state in Batch.STATES if Batch.objects.in_state(state).filter(pk=batch.pk).exists()
    )
    batch.refresh_from_db()
    figures = batch_reads.batch_figures(batch)
    counts = batch_counts.assessor_counts(batch)
    numbers = ("judged", "extra", "skipped", "cannot_judge", "median_seconds")
    gold = ("gold", "gold_exact", "gold_near")
    return {
        "batch": batch.pk,
        "name": batch.name,
        "state": state,
        "due_on": batch.due_on.isoformat() if batch.due_on else None,
        "questions": figures.questions,
        "pairs": figures.pairs,
        "filled": figures.filled,
        "wanted": figures.wanted,
        "done": figures.done,
        "gold_pairs": figures.gold_pairs,
        "assessors": [
            {
                "name": row.assessor.name,
                "in_batch": row.in_batch,
                "held": row.held,
                **{name: getattr(row.counts, name) for name in (*numbers, *gold)},
            }
            for row in batch_reads.assessor_rows(batch, figures.lately, counts)
        ],
    }

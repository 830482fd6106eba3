from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, find_chunk, find_evalset, find_lead
from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet, Question
from judging.services.adjudication import adjudicate, take_decision_back
from labels.settling import labels_of_question
from labels.waiting import waiting_pairs, why_it_waits


class Command(FairpoolCommand):
    help = (
        "List the pairs that wait for a lead's decision, or decide one in a lead's name: what its grade is, that it "
        "cannot be judged, or that the decision on it is taken back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set's short name.")
        parser.add_argument("--by", metavar="USER", help="The lead whose decision it is.")
        parser.add_argument("--question", metavar="ID")
        parser.add_argument("--chunk", metavar="ID")
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--grade", type=int, metavar="N", help="Decide that this is its grade.")
        act.add_argument("--cannot-judge", action="store_true", help="Decide that it cannot be judged.")
        act.add_argument("--take-back", action="store_true", help="Undo the decision that stands.")
        parser.add_argument("--note", default="", metavar="TEXT", help="Why.")

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        decides = options["grade"] is not None or options["cannot_judge"] or options["take_back"]
        named = [name for name in ("by", "question", "chunk") if options[name]]
        if not decides and not named:
            return _waiting(evalset)
        if not decides or len(named) < 3:
            raise BadInput(
                "A decision needs --by, --question, --chunk, and one of --grade, --cannot-judge, --take-back."
            )
        question = evalset.questions.filter(external_id=options["question"]).first()
        if question is None:
            raise BadInput(f"There is no question {options['question']!r} in {evalset.slug}.")
        chunk = find_chunk(evalset, options["chunk"])
        pair: dict[str, Any] = {"evalset": evalset, "question": question, "chunk": chunk, "key": uuid.uuid4()}
        by = find_lead(evalset, options["by"])
        if options["take_back"]:
            take_decision_back(**pair, by=by)
        else:
            adjudicate(**pair, by=by, grade=options["grade"], note=options["note"])
        return _standing(question, chunk)

    def show(self, document: dict[str, Any]) -> None:
        if "waiting" not in document:
            label = "no label" if document["label"] is None else f"label {document['label']}"
            self.stdout.write(
                f"{document['question']}, {document['chunk']}: {label} ({document['settled_by']})."
            )
            return
        for row in document["waiting"]:
            self.stdout.write(f"{row['question']}  {row['chunk']}  {row['grades']}  {row['why']}")
        self.stdout.write(f"{len(document['waiting'])} pairs wait for a decision.")


def _waiting(evalset: EvalSet) -> dict[str, Any]:
    """All pairs that wait, by question and chunk, with their grades, lowest first."""
    pairs = waiting_pairs(evalset)
    questions = Question.objects.in_bulk({pair.question_id for pair in pairs})
    chunks = Chunk.objects.in_bulk({pair.chunk_id for pair in pairs})
    return {
        "tolerance": evalset.adjudication_tolerance,
        "waiting": [
            {
                "question": questions[pair.question_id].external_id,
                "chunk": chunks[pair.chunk_id].external_id,
                "grades": sorted(pair.grades),
                "label": pair.label,
                "why": why_it_waits(pair, evalset),
            }
            for pair in pairs
        ],
    }


def _standing(question: Question, chunk: Chunk) -> dict[str, Any]:
    """How the pair stands now."""
    settled = labels_of_question(question).get(chunk.pk)
    return {
        "question": question.external_id,
        "chunk": chunk.external_id,
        "label": settled.label if settled else None,
        "settled_by": settled.why if settled else "unjudged",
    }

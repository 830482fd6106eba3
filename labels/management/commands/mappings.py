from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from evalsets.commands import FairpoolCommand, add_yes, find_chunk, find_evalset, find_lead
from evalsets.errors import BadInput
from evalsets.models import EvalSet
from labels.exports.reading import in_batches
from labels.models import TextMapping
from labels.services.carrying import MAPPINGS_AT_ONCE, carriages_of, decide_mapping


class Command(FairpoolCommand):
    help = (
        "List the new texts that carry_labels put beside old, judged ones and nobody has decided on, with the labels "
        "that would come along; or decide on one in a lead's name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("slug", metavar="SLUG", help="The eval set.")
        parser.add_argument("old", metavar="OLD", nargs="?", help="The ID of the chunk that was judged.")
        parser.add_argument("new", metavar="NEW", nargs="?", help="That of the new one; it may be the same.")
        parser.add_argument(
            "act",
            nargs="?",
            choices=["carry", "leave"],
            help="Carry all of its labels to the new text, or leave them: then the new text is to be judged.",
        )
        parser.add_argument("--by", metavar="USER", help="The lead whose decision it is.")
        add_yes(parser)

    def perform(self, **options: Any) -> dict[str, Any]:
        evalset = find_evalset(options["slug"])
        if options["old"] is None:
            waiting = TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True)
            related = waiting.select_related("evalset", "old_chunk", "new_chunk")
            batches = in_batches(related, MAPPINGS_AT_ONCE)
            return {"waiting": [row for batch in batches for row in _rows(batch)]}
        if options["act"] is None or options["by"] is None:
            raise BadInput("A decision needs OLD, NEW, one of carry and leave, and --by.")
        mapping = _find_mapping(evalset, options)
        by = find_lead(evalset, options["by"])
        [row] = _rows([mapping])
        self.confirm(_will(row, options["act"]), yes=options["yes"])
        carried = decide_mapping(mapping=mapping, by=by, carry=options["act"] == "carry")
        return {**row, "decided": options["act"], "carried": carried}

    def show(self, document: dict[str, Any]) -> None:
        if "waiting" not in document:
            self.stdout.write(f"{document['carried']} labels were carried to {document['new']}.")
            return
        for row in document["waiting"]:
            self.stdout.write(
                f"{row['old']} (text {row['old_revision']})  {row['new']} (text {row['new_revision']})  "
                f"{row['method']}, {row['share']:.0%} in common"
            )
            for label in row["labels"]:
                self.stdout.write(
                    f"    {label['question']}: {label['label']}, {label['rule'] or 'a person decides'}"
                )
        self.stdout.write(f"{len(document['waiting'])} wait for a decision.")


def _find_mapping(evalset: EvalSet, options: dict[str, Any]) -> TextMapping:
    """The undecided mapping of the two chunks to the new one's text of today."""
    old, new = (find_chunk(evalset, options[name]) for name in ("old", "new"))
    waiting = TextMapping.objects.filter(
        evalset=evalset, old_chunk=old, new_chunk=new, new_revision=new.revision, decided_at__isnull=True
    )
    related = waiting.select_related("evalset", "old_chunk", "new_chunk")
    mapping = related.order_by("-old_revision").first()
    if mapping is None:
        raise BadInput(
            f"No text of {old} waits to be carried to {new}. `manage.py mappings {evalset.slug}` lists what waits, "
            f"`manage.py carry_labels {evalset.slug}` looks anew."
        )
    return mapping


def _rows(mappings: Sequence[TextMapping]) -> list[dict[str, Any]]:
    """The mappings of one eval set, each with the labels that may still come along."""
    carriages = [item for item in carriages_of(mappings) if item.waits]
    questions = mappings[0].evalset.questions.in_bulk({item.question_id for item in carriages})
    labels: dict[int, list[dict[str, Any]]] = {mapping.pk: [] for mapping in mappings}
    for item in carriages:
        question = questions[item.question_id].external_id
        labels[item.mapping.pk].append({"question": question, "label": item.label, "rule": item.rule})
    return [
        {
            "old": mapping.old_chunk.external_id,
            "old_revision": mapping.old_revision,
            "new": mapping.new_chunk.external_id,
            "new_revision": mapping.new_revision,
            "method": mapping.method,
            "share": mapping.share,
            "labels": labels[mapping.pk],
        }
        for mapping in mappings
    ]


def _will(row: dict[str, Any], act: str) -> str:
    """What the decision does, with numbers."""
    count, ruled = len(row["labels"]), sum(label["rule"] is not None for label in row["labels"])
    if act == "carry":
        return f"{count} labels of {row['old']} will be carried to {row['new']}, {ruled} of them by rule."
    return f"{count} labels stay with the old text of {row['old']}; {row['new']} is to be judged."

from __future__ import annotations

from typing import Any

from config.demo_evalset import PASSWORD, SLUG, make_demo, sign_ins
from evalsets.commands import FairpoolCommand
from evalsets.models import EvalSet
from judging.models import BatchPair, Judgment


class Command(FairpoolCommand):
    help = (
        f"Make the eval set {SLUG!r} with its people, a judged pool, a release and a batch to go on with. If it is "
        f"there already, nothing is changed. Its people have the stated password {PASSWORD!r}: meant for one's own "
        "machine, not for a server that others reach."
    )

    def perform(self, **options: Any) -> dict[str, Any]:
        new = not EvalSet.objects.filter(slug=SLUG).exists()
        evalset = make_demo()
        return {
            "evalset": evalset.slug,
            "created": new,
            "questions": evalset.questions.count(),
            "chunks": evalset.chunks.whole().count(),
            "runs": list(evalset.runs.order_by("id").values_list("name", flat=True)),
            "judgments": Judgment.objects.filter(evalset=evalset).count(),
            "open_pairs": BatchPair.objects.filter(batch__evalset=evalset, filled_at__isnull=True).count(),
            "sign_in": [sign_in._asdict() for sign_in in sign_ins(evalset)],
        }

    def show(self, document: dict[str, Any]) -> None:
        self.stdout.write(
            f"The eval set {document['evalset']!r} {'was made' if document['created'] else 'is there'}: "
            f"{document['questions']} questions, {document['chunks']} chunks, {len(document['runs'])} runs, "
            f"{document['judgments']} judgments, {document['open_pairs']} pairs waiting in batches."
        )
        for person in document["sign_in"]:
            password = person["password"] or "(their own)"
            self.stdout.write(f"  {person['username']:8} {person['role']:10} password: {password}")

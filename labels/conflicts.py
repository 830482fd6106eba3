"""Members of one class whose labels for a question disagree: the same content, two grades."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection

from evalsets.models import EvalSet
from judging.models import ChunkClass, ClassMember, Judgment
from labels.settling import SETTLED, settle_parameters

_CONFLICTS = f"""{SETTLED}
SELECT settled.question_id, q.external_id, m.chunk_class_id,
       array_agg(settled.chunk_id ORDER BY c.external_id),
       array_agg(c.external_id::text ORDER BY c.external_id),
       array_agg(settled.label ORDER BY c.external_id)
FROM settled
JOIN judging_classmember m ON m.chunk_id = settled.chunk_id
JOIN evalsets_chunk c ON c.id = settled.chunk_id
JOIN evalsets_question q ON q.id = settled.question_id
WHERE settled.label IS NOT NULL
GROUP BY settled.question_id, q.external_id, m.chunk_class_id
HAVING min(settled.label) <> max(settled.label)
ORDER BY q.external_id, min(c.external_id)"""  # noqa: S608 - no value from outside is in the text


class LabelConflict(NamedTuple):
    """A question for which members of a class have different labels; the three lists run in parallel."""

    question_id: int
    question: str
    class_id: int
    chunk_ids: list[int]
    chunks: list[str]
    labels: list[int]

    @property
    def members(self) -> list[tuple[int, str, int]]:
        """(Chunk.id, chunk ID, label) of each labelled member."""
        return list(zip(self.chunk_ids, self.chunks, self.labels, strict=True))


def label_conflicts(evalset: EvalSet, *, within: ChunkClass | None = None) -> list[LabelConflict]:
    """The conflicts of labels within classes, or within one class, by question ID, then class."""
    members = ClassMember.objects.filter(chunk_class__evalset=evalset)
    if within is not None:
        members = members.filter(chunk_class=within)
    # Only questions for which a member was judged are settled: few, where classes are few.
    judged = Judgment.objects.filter(evalset=evalset, chunk__in=members.values("chunk"))
    questions = judged.order_by().values_list("question_id", flat=True).distinct()
    with connection.cursor() as cursor:
        cursor.execute(_CONFLICTS, settle_parameters(evalset, questions=questions))
        found = [LabelConflict(*row) for row in cursor.fetchall()]
    return [item for item in found if within is None or item.class_id == within.pk]

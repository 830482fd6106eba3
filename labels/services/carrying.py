"""Carrying labels from old texts to new ones: by rule where the evidence is whole, else where a person says so."""

# ruff: noqa: S608 - no value from outside is in the text of a statement

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from evalsets.errors import Refused
from evalsets.models import EvalSet, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from judging.models import Assessor, Judgment
from judging.services.assessors import assessor_for
from labels.exports.reading import in_batches, revisions_of
from labels.models import TextMapping
from labels.settling import COLUMNS, SETTLED, SettledPair, settle_parameters
from labels.surviving import survival

MAPPINGS_AT_ONCE = 200
PERSON = "a person said so"

_TEXTS_OF_TODAY = "JOIN evalsets_chunk c ON c.id = j.chunk_id AND c.revision = j.revision"
_OLD_TEXTS = """JOIN (
        SELECT DISTINCT old_chunk_id, old_revision FROM labels_textmapping WHERE id = ANY(%(mappings)s)
    ) old ON old.old_chunk_id = j.chunk_id AND old.old_revision = j.revision"""
assert _TEXTS_OF_TODAY in SETTLED
# What the old texts of these mappings settled to: the one statement, over other texts.
_SETTLED_THEN = (
    f"{SETTLED.replace(_TEXTS_OF_TODAY, _OLD_TEXTS)} SELECT {COLUMNS} FROM settled WHERE label IS NOT NULL"
)


class Carriage(NamedTuple):
    """A label of an old text that may come to the new one. `rule` says why it may; None where a person must decide.

    `spans` is the evidence that is whole in the new text, `marked` how much there was. Nothing is carried where the
    new pair has been `judged`, or where this label or a higher one was `carried` to it already.
    """

    mapping: TextMapping
    question_id: int
    label: int
    why: str
    judgment_ids: list[int]
    spans: list[dict[str, Any]]
    marked: int
    rule: str | None
    judged: bool
    carried: bool

    @property
    def waits(self) -> bool:
        return not self.judged and not self.carried


def carriages_of(mappings: Sequence[TextMapping]) -> list[Carriage]:
    """The labels that these mappings of one eval set may carry, by mapping, then question."""
    if not mappings:
        return []
    evalset = mappings[0].evalset
    labels = _labels_then(evalset, mappings)
    histories = _histories(evalset, mappings)
    judged, carried = _judged_now(evalset, mappings), _carried_now(evalset, mappings)
    texts = revisions_of(
        [(m.old_chunk_id, m.old_revision) for m in mappings]
        + [(m.new_chunk_id, m.new_revision) for m in mappings]
    )
    found = []
    for mapping in mappings:
        old = texts.get((mapping.old_chunk_id, mapping.old_revision))
        new = texts[mapping.new_chunk_id, mapping.new_revision]
        for pair in labels[mapping.old_chunk_id]:
            history = histories[pair.question_id, mapping.old_chunk_id, mapping.old_revision]
            marked = [span for judgment in history if judgment.grade == pair.label for span in judgment.spans]
            spans, rule = survival(old.text if old else "", new.text, marked)
            new_pair = (pair.question_id, mapping.new_chunk_id)
            found.append(
                Carriage(
                    mapping=mapping,
                    question_id=pair.question_id,
                    label=pair.label or 0,
                    why=pair.why,
                    judgment_ids=[judgment.pk for judgment in history],
                    spans=spans,
                    marked=len(marked),
                    rule=rule,
                    judged=new_pair in judged,
                    carried=carried.get(new_pair, -1) >= (pair.label or 0),
                )
            )
    return found


def _labels_then(evalset: EvalSet, mappings: Sequence[TextMapping]) -> dict[int, list[SettledPair]]:
    labels: defaultdict[int, list[SettledPair]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SETTLED_THEN, {**settle_parameters(evalset), "mappings": [m.pk for m in mappings]})
        for row in sorted(cursor.fetchall()):
            labels[row[1]].append(SettledPair(*row))
    return labels


def _histories(
    evalset: EvalSet, mappings: Sequence[TextMapping]
) -> dict[tuple[int, int, int], list[Judgment]]:
    """The current grades by question, chunk and revision."""
    rows = _current_grades(evalset, {mapping.old_chunk_id for mapping in mappings})
    found: defaultdict[tuple[int, int, int], list[Judgment]] = defaultdict(list)
    for judgment in rows.order_by("pk"):
        found[judgment.question_id, judgment.chunk_id, judgment.revision].append(judgment)
    return found


def _judged_now(evalset: EvalSet, mappings: Sequence[TextMapping]) -> set[tuple[int, int]]:
    """(Question.id, Chunk.id) of the pairs of new texts that somebody judged; carried labels do not stop others."""
    grades = _grades_of_new_texts(evalset, mappings).exclude(source=Judgment.Source.CARRIED)
    return set(grades.values_list("question_id", "chunk_id"))


def _carried_now(evalset: EvalSet, mappings: Sequence[TextMapping]) -> dict[tuple[int, int], int]:
    """The label that was carried to each pair of a new text, by (Question.id, Chunk.id)."""
    grades = _grades_of_new_texts(evalset, mappings).filter(source=Judgment.Source.CARRIED)
    return {(grade.question_id, grade.chunk_id): grade.grade or 0 for grade in grades}


def _grades_of_new_texts(evalset: EvalSet, mappings: Sequence[TextMapping]) -> QuerySet[Judgment]:
    """Current grades of the new texts, as long as they are their chunks' texts of today."""
    grades = _current_grades(evalset, {mapping.new_chunk_id for mapping in mappings})
    return grades.filter(revision=F("chunk__revision"))


def _current_grades(evalset: EvalSet, chunks: set[int]) -> QuerySet[Judgment]:
    """What people and files say now of these chunks (`Chunk.id`), whichever of their texts they read."""
    return Judgment.objects.filter(
        evalset=evalset, chunk__in=chunks, kind=Judgment.Kind.GRADE, replaced_by__isnull=True
    ).exclude(assessor__kind=Assessor.Kind.MODEL)


class RulePlan(NamedTuple):
    """What carrying by rule would do: labels that come along, and labels for which a person is needed."""

    by_rule: int
    to_ask: int


def plan_by_rule(evalset: EvalSet) -> RulePlan:
    """How many labels of undecided mappings a rule carries, and how many wait for a person."""
    by_rule = to_ask = 0
    for batch in in_batches(_undecided(evalset), MAPPINGS_AT_ONCE):
        for carriage in carriages_of(batch):
            if carriage.waits:
                by_rule += carriage.rule is not None
                to_ask += carriage.rule is None
    return RulePlan(by_rule, to_ask)


def _undecided(evalset: EvalSet) -> Iterable[TextMapping]:
    return TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True).select_related(
        "evalset", "old_chunk"
    )


@transaction.atomic
def carry_by_rule(*, evalset: EvalSet, by: User, progress: Progress = silent) -> RulePlan:
    """Carry every label of undecided mappings that a rule allows. A mapping with nothing left to ask is decided."""
    carried = asked = 0
    total = TextMapping.objects.filter(evalset=evalset, decided_at__isnull=True).count()
    done = 0
    for batch in in_batches(_undecided(evalset), MAPPINGS_AT_ONCE):
        open_mappings = {mapping.pk for mapping in batch}
        for carriage in carriages_of(batch):
            if not carriage.waits:
                continue
            if carriage.rule is None:
                open_mappings.discard(carriage.mapping.pk)
                asked += 1
            else:
                carried += _carry(carriage, by, carriage.rule)
        _decide(evalset, open_mappings, by)
        done += len(batch)
        progress(done, total, "Carrying labels")
    record_event(
        evalset=evalset,
        by=by,
        verb="labels-carried",
        summary=f"Carried {carried} labels to new texts by rule.",
    )
    return RulePlan(carried, asked)


@transaction.atomic
def decide_mapping(*, mapping: TextMapping, by: User, carry: bool) -> int:
    """Carry all labels of the mapping, or leave them to the remainder; return how many were carried.

    Raises Refused where the mapping was decided, or a newer text has come since it was found.
    """
    mapping = (
        TextMapping.objects.select_for_update(of=("self",))
        .select_related("evalset", "old_chunk", "new_chunk")
        .get(pk=mapping.pk)
    )
    if mapping.decided_at:
        raise Refused("This was decided already.")
    if mapping.new_revision != mapping.new_chunk.revision:
        raise Refused(f"{mapping.new_chunk} has a newer text by now. Look for texts to carry to again.")
    carried = 0
    if carry:
        carried = sum(_carry(item, by, item.rule or PERSON) for item in carriages_of([mapping]) if item.waits)
    _decide(mapping.evalset, {mapping.pk}, by)
    record_event(
        evalset=mapping.evalset,
        by=by,
        verb="labels-carried",
        summary=f"Carried {carried} labels from {mapping.old_chunk} to {mapping.new_chunk}."
        if carry
        else f"Left the labels of {mapping.old_chunk} with its old text; {mapping.new_chunk} is to be judged.",
    )
    return carried


def _decide(evalset: EvalSet, keys: Iterable[int], by: User) -> None:
    TextMapping.objects.filter(evalset=evalset, pk__in=list(keys)).update(
        decided_at=timezone.now(), decided_by=by
    )


def _carry(carriage: Carriage, by: User, reason: str) -> bool:
    """Write the carried label as a judgment of the new text, marked with where it came from.

    Two old texts may have come together in a new one: then the higher label stands.
    """
    mapping = carriage.mapping
    earlier = Judgment.objects.filter(
        question=carriage.question_id,
        chunk=mapping.new_chunk_id,
        revision=mapping.new_revision,
        source=Judgment.Source.CARRIED,
        replaced_by__isnull=True,
    ).first()
    if earlier is not None and (earlier.grade or 0) >= carriage.label:
        return False
    Judgment.objects.create(
        evalset=mapping.evalset,
        question_id=carriage.question_id,
        chunk_id=mapping.new_chunk_id,
        revision=mapping.new_revision,
        assessor=assessor_for(evalset=mapping.evalset, user=by),
        grade=carriage.label,
        source=Judgment.Source.CARRIED,
        spans=carriage.spans,
        replaces=earlier,
        details={
            "carried_from": {
                "chunk": mapping.old_chunk.external_id,
                "revision": mapping.old_revision,
                "judgments": carriage.judgment_ids,
                "settled_by": carriage.why,
                "because": reason,
            }
        },
    )
    return True

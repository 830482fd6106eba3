"""Verdicts on two chunks: the same content, one newer than the other, different; and the classes that follow."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import connection, transaction

from evalsets.errors import BadInput, Refused
from evalsets.models import Chunk, ChunkRevision, EvalSet, Question, User
from evalsets.services.events import record_event
from judging.class_graph import Chain, Link, Period, forbids_different, forbids_newer, forbids_same
from judging.models import ClassMember, PairVerdict
from judging.services.assessors import assessor_for

Verdict = PairVerdict.Verdict

_TURNED = {Verdict.FIRST_NEWER: Verdict.SECOND_NEWER, Verdict.SECOND_NEWER: Verdict.FIRST_NEWER}
_WORDS = {
    "same": "{first} has the content of {second}",
    "newer": "{first} replaces {second}",
    "different": "{first} differs from {second}",
    "period": "{first} is valid in another period than {second}",
}

# All verdicts that hold among the chunks that hang together with these ones by any of them.
_CONNECTED = """
WITH RECURSIVE reached (chunk_id) AS (
    SELECT unnest(%(chunks)s::integer[])
    UNION
    SELECT CASE WHEN v.first_id = reached.chunk_id THEN v.second_id ELSE v.first_id END
    FROM reached
    JOIN judging_standing_verdict v ON v.first_id = reached.chunk_id OR v.second_id = reached.chunk_id
)
SELECT v.first_id, v.second_id, v.verdict, v.of_today
FROM judging_standing_verdict v JOIN reached ON reached.chunk_id = v.first_id
ORDER BY v.id"""


@dataclass(frozen=True)
class VerdictGiven:
    """What came of a verdict. `created` is false where the same was said already. The classes are lists of chunk IDs:
    those of the chunks concerned before and after, each with two members at least."""

    verdict: PairVerdict | None
    created: bool
    before: list[list[str]] = field(default_factory=list)
    after: list[list[str]] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """What the classes look like now, for people."""
        if self.before == self.after:
            return "No class changes."
        made = "; ".join(", ".join(members) for members in self.after) or "none"
        was = "; ".join(", ".join(members) for members in self.before) or "none"
        return f"Classes before: {was}. Classes now: {made}."


@transaction.atomic
def give_verdict(
    *,
    first: Chunk,
    second: Chunk,
    verdict: Verdict,
    by: User,
    question: Question | None = None,
    note: str = "",
    key: uuid.UUID | None = None,
) -> VerdictGiven:
    """Write down the user's verdict on two chunks of one eval set, and bring the classes in step with it.

    `Verdict.NONE` takes the standing verdict back. The same verdict again writes nothing, and neither does the same
    `key` with the same verdict: an act that was sent twice.
    Raises Refused, naming the chain of verdicts, where the chunks may not be one class (same), are one class already
    (newer, different), or where the newer one is the older one by other verdicts. BadInput for a chunk with itself,
    chunks of two eval sets, and chunks without text.
    """
    _check(first, second)
    EvalSet.objects.select_for_update(no_key=True).get(
        pk=first.evalset_id
    )  # one verdict at a time in an eval set
    if first.pk > second.pk:
        first, second, verdict = second, first, _TURNED.get(verdict, verdict)
    if key is not None and (sent := PairVerdict.objects.filter(idempotency_key=key).first()):
        if (sent.first_id, sent.second_id, sent.verdict) == (first.pk, second.pk, verdict):
            return VerdictGiven(sent, created=False)
        key = uuid.uuid4()  # another act, from a page that was gone back to
    standing = standing_verdict(first, second)
    if (standing.verdict if standing else Verdict.NONE) == verdict:
        return VerdictGiven(standing, created=False)
    _refuse_contradiction(first, second, verdict)
    before = _classes_of([first, second])
    given = PairVerdict.objects.create(
        evalset_id=first.evalset_id,
        first=first,
        first_revision=first.revision,
        second=second,
        second_revision=second.revision,
        verdict=verdict,
        assessor=assessor_for(evalset=first.evalset, user=by),
        question=question,
        note=note,
        idempotency_key=key,
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT rebuild_chunk_classes(%s::integer[])", [[first.pk, second.pk]])
    after = _classes_of(
        Chunk.objects.filter(
            external_id__in={name for members in before for name in members}, evalset=first.evalset
        )
        | Chunk.objects.filter(pk__in=[first.pk, second.pk])
    )
    outcome = VerdictGiven(given, created=True, before=before, after=after)
    if before != after:
        record_event(
            evalset=first.evalset, by=by, verb="classes-changed", summary=f"{_said(given)} {outcome.sentence}"
        )
    return outcome


def standing_verdict(first: Chunk, second: Chunk) -> PairVerdict | None:
    """The verdict that holds for the two chunks' texts of today, whoever gave it; None where there is none.

    That one chunk replaces another holds whatever becomes of their texts.
    """
    low, high = sorted([first, second], key=lambda chunk: chunk.pk)
    latest = PairVerdict.objects.filter(first=low, second=high).order_by("-id").first()
    if latest is None or latest.verdict == Verdict.NONE:
        return None
    of_today = (latest.first_revision, latest.second_revision) == (low.revision, high.revision)
    is_order = latest.verdict in (Verdict.FIRST_NEWER, Verdict.SECOND_NEWER)
    return latest if of_today or is_order else None


def _check(first: Chunk, second: Chunk) -> None:
    if first.pk == second.pk:
        raise BadInput(f"{first} cannot be compared with itself.")
    if first.evalset_id != second.evalset_id:
        raise BadInput(f"{first} and {second} are of two eval sets.")
    for chunk in (first, second):
        if not chunk.has_text:
            raise BadInput(f"{chunk} has no text yet; nobody can compare it.")


def _refuse_contradiction(first: Chunk, second: Chunk, verdict: Verdict) -> None:
    links = _links_around(first, second)
    chain: Chain | None
    match verdict:
        case Verdict.SAME:
            chain = forbids_same(links, _periods(links, first, second), first.pk, second.pk)
            refusal = f"{first} and {second} cannot be one class"
        case Verdict.FIRST_NEWER:
            chain = forbids_newer(links, first.pk, second.pk)
            refusal = f"{first} cannot replace {second}"
        case Verdict.SECOND_NEWER:
            chain = forbids_newer(links, second.pk, first.pk)
            refusal = f"{second} cannot replace {first}"
        case Verdict.DIFFERENT:
            chain = forbids_different(links, first.pk, second.pk)
            refusal = f"{first} and {second} cannot be different"
        case _:
            return
    if chain is not None:
        raise Refused(f"{refusal}: {_sentences(chain)}. Take one of these back first, if it is wrong.")


def _links_around(first: Chunk, second: Chunk) -> list[Link]:
    """The verdicts that hold around the two chunks, without the one on themselves: the new one takes its place."""
    with connection.cursor() as cursor:
        cursor.execute(_CONNECTED, {"chunks": [first.pk, second.pk]})
        rows = cursor.fetchall()
    links = []
    for a, b, verdict, of_today in rows:
        if (a, b) == (first.pk, second.pk):
            continue
        if verdict == Verdict.FIRST_NEWER:
            links.append(Link(a, b, "newer"))
        elif verdict == Verdict.SECOND_NEWER:
            links.append(Link(b, a, "newer"))
        elif of_today:
            links.append(Link(a, b, "same" if verdict == Verdict.SAME else "different"))
    return links


def _periods(links: list[Link], first: Chunk, second: Chunk) -> dict[int, Period]:
    chunks = {first.pk, second.pk, *(chunk for link in links for chunk in (link.first, link.second))}
    texts = ChunkRevision.objects.current().filter(chunk__in=chunks)
    return {text.chunk_id: (text.effective_from, text.effective_to) for text in texts}


def _sentences(chain: Chain) -> str:
    names = dict(
        Chunk.objects.filter(
            pk__in={chunk for link in chain for chunk in (link.first, link.second)}
        ).values_list("pk", "external_id")
    )
    return "; ".join(
        _WORDS[link.kind].format(first=names[link.first], second=names[link.second]) for link in chain
    )


def _classes_of(chunks: Iterable[Chunk]) -> list[list[str]]:
    """The classes that any of these chunks is in, as the IDs of their members; sorted."""
    members = ClassMember.objects.filter(chunk_class__members__chunk__in=list(chunks)).distinct()
    by_class: dict[int, list[str]] = {}
    for chunk_class, name in members.order_by("chunk__external_id").values_list(
        "chunk_class_id", "chunk__external_id"
    ):
        by_class.setdefault(chunk_class, []).append(name)
    return sorted(by_class.values())


def _said(given: PairVerdict) -> str:
    first, second = given.first, given.second
    match given.verdict:
        case Verdict.SAME:
            return f"{first} has the content of {second}."
        case Verdict.FIRST_NEWER:
            return f"{first} replaces {second}."
        case Verdict.SECOND_NEWER:
            return f"{second} replaces {first}."
        case Verdict.DIFFERENT:
            return f"{first} differs from {second}."
        case _:
            return f"The verdict on {first} and {second} was taken back."

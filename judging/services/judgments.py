"""Saving what an assessor says of a pair. Every act is kept; a later one replaces the earlier one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.types.json import Jsonb

from evalsets.errors import BadInput, Refused
from evalsets.models import ChunkRevision, User
from evalsets.statements import Statement
from judging.models import Assessor, Batch, BatchPair, Judgment, Rubric
from judging.services.claims import places_gone, renew_leases, take_seat

# Longer than this on one pair, somebody was elsewhere: the time says nothing.
MOST_SECONDS = 3600.0

# The pair, locked, with whether %(me)s has a live task on it (null without one), and whether they have said anything of
# it or anybody has used %(key)s. Under their seat's lock nothing changes that.
LOCK_PAIR = Statement(
    """
    SELECT {p},
        (SELECT t.leased_until > statement_timestamp() FROM judging_task t
         WHERE t.pair_id = p.id AND t.assessor_id = %(me)s) AS task_live,
        EXISTS (SELECT FROM judging_judgment WHERE pair_id = p.id AND assessor_id = %(me)s)
        OR EXISTS (SELECT FROM judging_judgment WHERE idempotency_key = %(key)s) AS said_before
    FROM judging_batchpair p
    WHERE p.id = %(pair)s AND p.batch_id = %(batch)s
    FOR NO KEY UPDATE OF p
    """,
    p=BatchPair,
)

INSERT = Statement(
    """
    INSERT INTO judging_judgment AS judgment (
        evalset_id, question_id, chunk_id, revision, pair_id, assessor_id, rubric_id, kind, grade, source, reason,
        note, spans, facts, seconds, replaces_id, idempotency_key, details
    ) VALUES (
        %(evalset_id)s, %(question_id)s, %(chunk_id)s, %(revision)s, %(pair_id)s, %(assessor_id)s, %(rubric_id)s,
        %(kind)s, %(grade)s, %(source)s, %(reason)s,
        %(note)s, %(spans)s, %(facts)s, %(seconds)s, %(replaces_id)s, %(idempotency_key)s, %(details)s
    )
    RETURNING {judgment}
    """,
    judgment=Judgment,
)

# What follows from a judgment of %(me)s on the pair, whose lock is held: it is no longer theirs to do, and `filled_at`
# is brought in step with the judgments. A regrade to a skip opens the pair again.
SETTLE_PAIR = Statement(
    """
    WITH done AS (DELETE FROM judging_task WHERE pair_id = %(pair)s AND assessor_id = %(me)s)
    UPDATE judging_batchpair p
    SET filled_at = CASE WHEN given.places >= p.wanted THEN statement_timestamp() END
    FROM (
        SELECT count(*) AS places FROM judging_judgment j
        WHERE j.pair_id = %(pair)s AND j.kind <> 'skip' AND j.details -> 'extra' IS NULL
          AND NOT EXISTS (SELECT FROM judging_judgment later WHERE later.replaces_id = j.id)
    ) given
    WHERE p.id = %(pair)s AND (given.places >= p.wanted) <> (p.filled_at IS NOT NULL)
    """
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an assessor says of a pair: a grade, a skip with its reason, or that it cannot be judged, and why."""

    kind: Judgment.Kind
    grade: int | None = None
    reason: str = ""
    note: str = ""
    spans: Sequence[dict[str, Any]] = field(default_factory=list)
    facts: Sequence[str] = field(default_factory=list)
    # The chunk from whose grade, by the same assessor for the same question, this grade was copied.
    copied_from: int | None = None

    def check(self, rubric: Rubric) -> None:
        """Raises BadInput for a grade outside the scale, or a skip or cannot-judge without a reason."""
        if self.kind == Judgment.Kind.GRADE:
            highest = len(rubric.scale) - 1
            if self.grade is None or not 0 <= self.grade <= highest:
                raise BadInput(f"The grade is {self.grade!r}; the scale has 0 to {highest}.")
        elif self.reason not in Judgment.Reason.values:
            raise BadInput(
                f"The reason is {self.reason!r}; one of {', '.join(Judgment.Reason.values)} is asked for."
            )

    def is_said_by(self, judgment: Judgment) -> bool:
        return (
            self.kind == judgment.kind
            and self.grade == judgment.grade
            and (self.kind == Judgment.Kind.GRADE or self.reason == judgment.reason)
            and self.note == judgment.note
            and list(self.spans) == judgment.spans
            and sorted(self.facts) == sorted(judgment.facts)
        )


@dataclass(frozen=True)
class Saved:
    """What became of a save.

    `created`: a row was written; else the same had been said before. `extra`: the pair had gone to others meanwhile
    and has all the judgments it asked for; this one is kept beside them. `overtaken`: a newer judgment by the same
    assessor stands, made after this one was chosen; `judgment` is that newer one.
    """

    judgment: Judgment
    created: bool
    extra: bool = False
    overtaken: bool = False


@transaction.atomic
def save_judgment(
    *,
    batch: Batch,
    pair_id: int,
    by: User,
    verdict: Verdict,
    key: uuid.UUID,
    seconds: float | None = None,
    chosen_ago: timedelta = timedelta(0),
    revision: int | None = None,
) -> Saved:
    """Save the user's verdict on a pair of the batch. One act is one judgment, however often it is sent.

    - `key` names the act. The same key with the same verdict is the same act: nothing is written. The same key with
      another verdict is another act (a page that was gone back to): it replaces the earlier one.
    - The user's verdict from before, if there is one, is replaced; saying the same again writes nothing.
    - `chosen_ago` is how long the verdict waited in the browser. Where a newer one by the same user came in
      meanwhile (another tab, another device), the newer one stands.
    - A verdict counts towards what the pair wants if the user holds the pair, or has judged it already, or a place
      is free. If their lease has ended and others have taken all places since, it is kept as an extra judgment and
      marked so. It is kept too while the batch is paused or after it was cancelled.

    `seconds` is active time on the pair. `revision` is the chunk's revision that was read, the pair's own unless it is
    said: a page that lay open while the chunk was revised judges the text that it shows.

    Raises BadInput for a verdict outside the rubric, Refused for a pair that was never given to this user, and
    BatchPair.DoesNotExist for one that is not in the batch.
    """
    assessor = take_seat(batch=batch, by=by)
    on_pair = {"pair": pair_id, "me": assessor.pk}
    locked = LOCK_PAIR.first({**on_pair, "batch": batch.pk, "key": key})
    if locked is None:
        raise BatchPair.DoesNotExist
    pair: BatchPair
    task_live: bool | None
    pair, task_live, said_before = locked
    rubric = batch.rubric
    verdict.check(rubric)
    if revision is None:
        revision = pair.revision
    verdict = replace(verdict, spans=_placed(verdict.spans, pair, revision))

    known: list[Judgment] = []
    if said_before:
        known = list(Judgment.objects.filter(Q(pair=pair, assessor=assessor) | Q(idempotency_key=key)))
    sent_before = next((judgment for judgment in known if judgment.idempotency_key == key), None)
    if sent_before is not None:
        if (sent_before.pair_id, sent_before.assessor_id) != (pair.pk, assessor.pk):
            raise Refused(
                "This key belongs to a judgment of another pair or another assessor. Load the page anew."
            )
        if verdict.is_said_by(sent_before):
            return Saved(sent_before, created=False, extra=is_extra(sent_before))
        key = uuid.uuid4()

    replaced = {judgment.replaces_id for judgment in known}
    current = next((judgment for judgment in known if judgment.pk not in replaced), None)
    if current is not None:
        if verdict.is_said_by(current):
            return Saved(current, created=False, extra=is_extra(current))
        if chosen_ago and current.judged_at > timezone.now() - chosen_ago:
            return Saved(current, created=False, overtaken=True)

    if task_live is None and current is None:
        raise Refused("This pair was never given to you. Go on with the next one.")
    details: dict[str, Any] = {}
    if verdict.kind != Judgment.Kind.SKIP:
        # With a live task or a judgment that counts, a place is the user's own; else one must be free.
        has_place = task_live or (current is not None and takes_a_place(current))
        if not has_place and places_gone(pair=pair, assessor=assessor) >= pair.wanted:
            details["extra"] = True
    if verdict.copied_from is not None:
        details["copied_from"] = _original(verdict, pair, assessor).pk

    is_grade = verdict.kind == Judgment.Kind.GRADE
    row = {
        "evalset_id": batch.evalset_id,
        "question_id": pair.question_id,
        "chunk_id": pair.chunk_id,
        "revision": revision,
        "pair_id": pair.pk,
        "assessor_id": assessor.pk,
        "rubric_id": rubric.pk,
        "kind": verdict.kind.value,
        "grade": verdict.grade if is_grade else None,
        "source": (Judgment.Source.DESK if verdict.copied_from is None else Judgment.Source.COPY).value,
        "reason": "" if is_grade else verdict.reason,
        "note": verdict.note,
        "spans": Jsonb(list(verdict.spans)),
        "facts": list(verdict.facts),
        "seconds": seconds if seconds is not None and 0 <= seconds <= MOST_SECONDS else None,
        "replaces_id": current.pk if current else None,
        "idempotency_key": key,
        "details": Jsonb(details),
    }
    [judgment] = INSERT.one(row)
    SETTLE_PAIR.run(on_pair)
    renew_leases(batch=batch, assessor=assessor)
    return Saved(judgment, created=True, extra=is_extra(judgment))


def is_extra(judgment: Judgment) -> bool:
    """Whether it came too late to count among the judgments that the pair asked for."""
    return bool(judgment.details.get("extra"))


def takes_a_place(judgment: Judgment) -> bool:
    """Whether it counts among the judgments that the pair asked for, as long as nothing replaces it."""
    return judgment.kind != Judgment.Kind.SKIP and not is_extra(judgment)


def _placed(spans: Sequence[dict[str, Any]], pair: BatchPair, revision: int) -> list[dict[str, Any]]:
    """The evidence with its places in the text that was read. Raises BadInput for words that are not in it."""
    known = (
        revision == pair.revision
        or ChunkRevision.objects.filter(chunk=pair.chunk_id, number=revision).exists()
    )
    if not known:
        raise BadInput(f"The chunk has no revision {revision}. Load the page anew.")
    if not spans:
        return []
    text = ChunkRevision.objects.get(chunk=pair.chunk_id, number=revision).text
    placed = []
    for span in spans:
        words, start = span["text"], span["start"]
        if text[start : start + len(words)] != words:
            # Typed words may be wrapped in another way than in the text.
            found = re.search(r"\s+".join(map(re.escape, words.split())), text)
            start, words = (found.start(), found.group()) if found else (-1, words)
        if not words.strip() or start < 0:
            raise BadInput(
                f"The marked evidence “{words[:80]}” is not in the text. Mark it again, or leave it out."
            )
        placed.append({"start": start, "end": start + len(words), "text": words})
    return placed


def _original(verdict: Verdict, pair: BatchPair, assessor: Assessor) -> Judgment:
    """The judgment whose grade is copied: the assessor's latest of that grade, for the same question.

    It may have been replaced since: the copy says what was on screen. Raises Refused where there is none.
    """
    original = (
        Judgment.objects.filter(
            question=pair.question_id, chunk=verdict.copied_from, assessor=assessor, grade=verdict.grade
        )
        .exclude(chunk=pair.chunk_id)
        .order_by("-pk")
        .first()
    )
    if original is None:
        raise Refused(
            "You have not graded that other text so. Load the page anew, or grade this one by itself."
        )
    return original

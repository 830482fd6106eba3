"""The demo eval set: what is in demo/, brought in through the services that people use, and a fortnight of judging.

A team has judged the pool of its two oldest systems and published that as its first release. Since then its lead has
decided some pairs that two people saw differently, said which chunks are copies and which replace which, had a rule
judge the same pairs, and mixed known answers into what Alice has to grade. The newer systems are imported and largely
unjudged. That is where the demo opens.
"""

from __future__ import annotations

import datetime
import json
import uuid
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from demo import assessors as demo_assessors
from demo.ground_truth import read_jsonl, read_relevance
from evalsets.models import EvalSet, Member, User
from evalsets.services.evalsets import create_evalset
from evalsets.services.members import add_member
from evalsets.services.users import create_user
from judging.models import Assessor, Batch, BatchPair, Judgment, PairVerdict
from judging.services.adjudication import adjudicate
from judging.services.batches import make_batch
from judging.services.gold import Gold
from judging.services.import_judge import import_judge
from judging.services.verdicts import give_verdict
from labels.services.publishing import publish_release
from labels.settling import contested_pairs
from pooling.models import Pool, Run
from pooling.services.importing import import_chunks, import_questions, import_run
from pooling.services.pools import build_pool

SLUG = "demo"
NAME = "Quillmere support handbook"
FOLDER: Path = settings.BASE_DIR / "demo"
PASSWORD = "home-battery-demo"  # noqa: S105 (stated to everybody; for a demo on one's own machine)
LEAD = "carol"
FULL_NAMES = {"carol": "Carol Castro", "alice": "Alice Ahn", "bob": "Bob Brandt", "victor": "Victor Vale"}
ROLES = {"alice": Member.Role.ASSESSOR, "bob": Member.Role.ASSESSOR, "victor": Member.Role.VIEWER}

POOLED_RUNS, POOL_DEPTH = ("bm25", "bm25-tuned"), 10
NEWER_RUN, NEWER_DEPTH = "lsa", 5
GOLD_SHARE = 0.05
JUDGE, JUDGE_FILES = "shared words (rule)", ("judge-1.qrels", "judge-2.qrels")
# (question, chunk): what the lead decides, and why, where two people saw the pair differently. Other such pairs wait
# still. (Which pairs go to both is drawn among the database's keys.)
DECIDED = {
    ("q08", "error-codes#10"): (0, "Another code."),
    ("q08", "error-codes#15"): (0, "Another code."),
    ("q09", "error-codes#03"): (0, "Another code; the beeping is not this one's."),
    ("q22", "billing#06"): (0, "About bank details; no day is named."),
    ("q24", "steady-terms#02"): (2, "Part of the answer; the rest stands in section 10."),
    ("q41", "steady-terms#01"): (1, "One line in ten pages helps, and only a little."),
}
INSTRUCTIONS = """\
Ask of each passage: **would a good answer to this question use it?**

- Grade the text that you see, not the document that it comes from.
- A passage about last year's rules does not answer a question about today's. Look at the dates.
- Two passages with the same words get the same grade.
- If the question has no answer in the handbook, everything is 0. That is a finding, not a failure.
"""
DESCRIPTION = (
    "A fictional company's support handbook. Its first labels come from the pool of the two oldest systems; newer "
    "ones find much that nobody has looked at."
)


class SignIn(NamedTuple):
    """How to sign in as somebody of the demo. `password` is None where it is not the demo's (any more)."""

    username: str
    role: str
    password: str | None


@transaction.atomic
def make_demo(*, today: datetime.date | None = None) -> EvalSet:
    """Make the eval set `demo` with its people, or return the one that is there, untouched.

    All or nothing. `today` is the day from which the past days of judging are counted back. Somebody who has one of
    the demo's user names already keeps their password.
    """
    existing = EvalSet.objects.filter(slug=SLUG).first()
    if existing is not None:
        return existing
    people = {username: _person(username) for username in FULL_NAMES}
    lead = people[LEAD]
    evalset = create_evalset(by=lead, slug=SLUG, name=NAME, description=DESCRIPTION)
    for username, role in ROLES.items():
        add_member(evalset=evalset, username=username, role=role, by=lead)
    _import_everything(evalset, by=lead)
    assessors = [people["alice"], people["bob"]]
    batch = _first_batch(evalset, by=lead, assessors=assessors)
    _judge(batch, today or timezone.now().date())
    publish_release(evalset=evalset, by=lead, notes="The pool of both BM25 systems to depth 10, judged.")
    _decide(evalset, by=lead)
    _say_what_chunks_are_to_each_other(evalset, by=lead)
    for repetition, file in enumerate(JUDGE_FILES, start=1):
        import_judge(evalset=evalset, source=FOLDER / file, by=lead, judge=JUDGE, repetition=repetition)
    _open_batch(evalset, by=lead, assessors=[people["alice"]])
    return evalset


def sign_ins(evalset: EvalSet) -> list[SignIn]:
    """Those of the demo's people who are members still, the lead first."""
    members = Member.objects.filter(evalset=evalset, user__username__in=FULL_NAMES).select_related("user")
    by_name = {member.user.username: member for member in members}
    return [
        SignIn(
            username,
            str(by_name[username].get_role_display()).lower(),
            PASSWORD if by_name[username].user.check_password(PASSWORD) else None,
        )
        for username in FULL_NAMES
        if username in by_name
    ]


def _person(username: str) -> User:
    there = User.objects.filter(username=username).first()
    return there or create_user(username=username, password=PASSWORD, full_name=FULL_NAMES[username])


def _import_everything(evalset: EvalSet, *, by: User) -> None:
    import_questions(evalset=evalset, source=FOLDER / "questions.jsonl", by=by)
    import_chunks(evalset=evalset, source=FOLDER / "chunks.jsonl", by=by)
    runs = FOLDER / "runs"
    for run in json.loads((runs / "runs.json").read_text(encoding="utf-8")):
        import_run(
            evalset=evalset,
            source=runs / run["file"],
            by=by,
            system=run["system"],
            run=run["run"],
            version=run["version"],
            date=datetime.date.fromisoformat(run["date"]),
            stage=run["stage"],
            k=run["k"],
            config=json.loads((runs / run["config"]).read_text(encoding="utf-8")),
            missing=run["missing"],
        )


def _first_batch(evalset: EvalSet, *, by: User, assessors: list[User]) -> Batch:
    runs = {run.name: run for run in Run.objects.filter(evalset=evalset)}
    pool, _ = build_pool(
        evalset=evalset,
        name="Both BM25 systems",
        runs=[(runs[name], POOL_DEPTH) for name in POOLED_RUNS],
        by=by,
        seed=1,
    )
    return make_batch(
        pool=pool,
        name="First labels",
        by=by,
        assessors=assessors,
        overlap=2,
        overlap_share=0.12,
        instructions=INSTRUCTIONS,
        seed=1,
    )


def _open_batch(evalset: EvalSet, *, by: User, assessors: list[User]) -> None:
    newer = Run.objects.get(evalset=evalset, name=NEWER_RUN)
    pool, _ = build_pool(
        evalset=evalset, name="What latent semantic analysis adds", runs=[(newer, NEWER_DEPTH)], by=by, seed=2
    )
    make_batch(
        pool=pool,
        name="Second look",
        by=by,
        assessors=assessors,
        gold=Gold(share=GOLD_SHARE, file=FOLDER / "known-answers.txt"),
        instructions=INSTRUCTIONS,
        seed=2,
    )


def _decide(evalset: EvalSet, *, by: User) -> None:
    contested = contested_pairs(evalset)
    questions = evalset.questions.in_bulk([pair.question_id for pair in contested])
    chunks = evalset.chunks.in_bulk([pair.chunk_id for pair in contested])
    for pair in contested:
        question, chunk = questions[pair.question_id], chunks[pair.chunk_id]
        if decision := DECIDED.get((question.external_id, chunk.external_id)):
            grade, note = decision
            adjudicate(
                evalset=evalset,
                question=question,
                chunk=chunk,
                grade=grade,
                note=note,
                by=by,
                key=uuid.uuid4(),
            )


def _say_what_chunks_are_to_each_other(evalset: EvalSet, *, by: User) -> None:
    chunks = {chunk.external_id: chunk for chunk in evalset.chunks.select_related("evalset")}
    for said in read_jsonl(FOLDER / "pair-verdicts.jsonl"):
        give_verdict(
            first=chunks[said["first"]],
            second=chunks[said["second"]],
            verdict=PairVerdict.Verdict(said["verdict"]),
            note=said["note"],
            by=by,
        )


def _judge(batch: Batch, today: datetime.date) -> None:
    """Write the batch's judgments with their times in the past, which the desk's own service rightly cannot."""
    pairs = list(
        BatchPair.objects.filter(batch=batch)
        .select_related("batch", "question", "chunk")
        .order_by("batch_question__position", "position")
    )
    acts = demo_assessors.judgments(_as_planned(pairs), read_relevance(), today)
    by_ids = {(pair.question.external_id, pair.chunk.external_id): pair for pair in pairs}
    assessors = {assessor.name: assessor for assessor in batch.assessors.all()}

    firsts = [act for act in acts if not act.replaces_earlier]
    written: dict[tuple[int, str], Judgment] = {}
    for act in firsts:
        pair = by_ids[act.question, act.chunk]
        written[pair.pk, act.assessor] = _judgment(act, pair, assessors[act.assessor])
    Judgment.objects.bulk_create(written.values())
    Judgment.objects.bulk_create(
        _judgment(act, pair, assessors[act.assessor], replaces=written[pair.pk, act.assessor])
        for act in acts
        if act.replaces_earlier
        for pair in [by_ids[act.question, act.chunk]]
    )
    counted = Judgment.objects.filter(pair=OuterRef("pk")).exclude(kind=Judgment.Kind.SKIP)
    last_place_taken = counted.order_by("-judged_at").values("judged_at")[:1]
    BatchPair.objects.filter(batch=batch).update(filled_at=Subquery(last_place_taken))

    # The pool and the batch were there before anybody judged.
    handed_out = acts[0].at - datetime.timedelta(hours=1)
    Batch.objects.filter(pk=batch.pk).update(created_at=handed_out)
    Pool.objects.filter(pk=batch.pool_id).update(created_at=handed_out - datetime.timedelta(minutes=10))


def _as_planned(pairs: list[BatchPair]) -> list[demo_assessors.Pair]:
    words = {chunk["id"]: len(chunk["text"].split()) for chunk in read_jsonl(FOLDER / "chunks.jsonl")}
    return [
        demo_assessors.Pair(
            question=pair.question.external_id,
            chunk=pair.chunk.external_id,
            words=words[pair.chunk.external_id],
            wanted=pair.wanted,
        )
        for pair in pairs
    ]


def _judgment(
    act: demo_assessors.Act, pair: BatchPair, assessor: Assessor, replaces: Judgment | None = None
) -> Judgment:
    return Judgment(
        evalset_id=assessor.evalset_id,
        question=pair.question,
        chunk=pair.chunk,
        revision=pair.revision,
        assessor=assessor,
        kind=act.kind,
        grade=act.grade,
        reason=act.reason,
        pair=pair,
        rubric_id=pair.batch.rubric_id,
        note=act.note,
        facts=list(act.facts),
        seconds=act.seconds,
        replaces=replaces,
        idempotency_key=uuid.uuid4(),
        judged_at=act.at,
    )

"""What a release freezes of each question, read in batches, and the hash over it.

The canonical form that is hashed is UTF-8 JSON, keys sorted, one line each: the settings, the questions by the bytes
of their IDs, the classes by those of their representatives. It names everything by IDs from outside, never by keys of
this database, so equal content has equal hashes everywhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson
from django.db import connection

from evalsets.models import EvalSet, Question
from judging.models import Assessor, ClassMember
from labels.models import Release, ReleaseClass, ReleaseQuestion
from labels.services.sampling import Sampled, read_samples
from labels.settling import COLUMNS, SETTLED, SettledPair, settle_parameters

QUESTIONS_AT_ONCE = 200

# One row a pair of these questions, in the order of the chunk IDs' bytes.
PAIRS = f"""{SETTLED}
SELECT {COLUMNS}, c.external_id, c.revision, c.has_text, c.cut_from_id IS NOT NULL
FROM settled JOIN evalsets_chunk c ON c.id = settled.chunk_id
ORDER BY settled.question_id, c.external_id"""  # noqa: S608

POOLED_RUNS = """
SELECT pq.question_id, s.name, r.name, r.stage, max(pr.k), r.date
FROM pooling_poolquestion pq
JOIN pooling_poolrun pr ON pr.pool_id = pq.pool_id
JOIN pooling_run r ON r.id = pr.run_id
JOIN pooling_system s ON s.id = r.system_id
WHERE pq.question_id = ANY(%s)
GROUP BY pq.question_id, s.name, r.name, r.stage, r.date
ORDER BY s.name, r.name"""

# What outside judges said is no judgment: their rows go along where the release has them, and are not counted.
JUDGMENTS = """
SELECT j.question_id, array_agg(j.id ORDER BY j.id), count(*) FILTER (WHERE a.kind <> 'model')
FROM judging_judgment j
JOIN judging_assessor a ON a.id = j.assessor_id AND (a.kind <> 'model' OR a.id = ANY(%s::bigint[]))
WHERE j.evalset_id = %s AND j.question_id = ANY(%s) GROUP BY j.question_id"""


class Tally:
    """Counts kept while a release is written: what `Release.counts` holds."""

    def __init__(self, threshold: int) -> None:
        self.threshold = threshold
        self.numbers: Counter[str] = Counter()
        self.by_grade: Counter[int] = Counter()
        self.by_why: Counter[str] = Counter()
        self.spaced_ids: set[str] = set()

    def add(self, frozen: ReleaseQuestion, *, judgments: int, without_text: int) -> None:
        self.numbers["questions"] += 1
        self.numbers["labels"] += len(frozen.grades)
        self.numbers["relevant"] += sum(grade >= self.threshold for grade in frozen.grades)
        self.numbers["questions_with_labels"] += bool(frozen.grades)
        self.numbers["questions_with_relevant"] += any(grade >= self.threshold for grade in frozen.grades)
        self.numbers["judgments"] += judgments
        self.numbers["contested"] += sum(item["why"] == "contested" for item in frozen.unlabelled)
        self.numbers["skipped_only"] += sum(item["why"] == "skipped-only" for item in frozen.unlabelled)
        self.numbers["from_models"] += len(frozen.model_chunk_ids)
        self.numbers["cut_passages"] += len(frozen.cut_ids)
        self.numbers["without_text"] += without_text
        self.by_grade.update(frozen.grades)
        self.by_why.update(frozen.why)
        in_qrels = set(frozen.external_ids) - set(_names(frozen, frozen.cut_ids))
        if in_qrels:  # a question without labels stands in no qrels
            self.spaced_ids.update(filter(has_space, (frozen.external_id, *in_qrels)))

    def counts(self, *, scale: list[dict[str, Any]], classes: int) -> dict[str, Any]:
        names = (
            "questions",
            "questions_with_labels",
            "questions_with_relevant",
            "labels",
            "relevant",
            "judgments",
            "contested",
            "skipped_only",
            "from_models",
            "cut_passages",
            "without_text",
        )
        return {
            **{name: self.numbers[name] for name in names},
            "classes": classes,
            "by_grade": {str(item["grade"]): self.by_grade[item["grade"]] for item in scale},
            "by_why": dict(sorted(self.by_why.items())),
        }


def has_space(identifier: str) -> bool:
    """Whether the ID has white space in it, of any alphabet: some TREC readers split at all of it."""
    return identifier.split() != [identifier]


def freeze_questions(
    evalset: EvalSet, *, release_id: int, judges: Sequence[Assessor], tally: Tally
) -> Iterator[list[ReleaseQuestion]]:
    """All questions of the set as unsaved rows, in batches, by the bytes of their IDs; `tally` counts along."""
    questions = list(evalset.questions.order_by("external_id"))
    for first in range(0, len(questions), QUESTIONS_AT_ONCE):
        batch = questions[first : first + QUESTIONS_AT_ONCE]
        yield [
            _freeze(question, position, release_id, facts, tally)
            for position, (question, facts) in enumerate(_with_facts(evalset, batch, judges), start=first)
        ]


class _Pair(NamedTuple):
    """A settled pair with what is to be frozen of its chunk."""

    settled: SettledPair
    external_id: str
    revision: int
    has_text: bool
    is_cut: bool


class _Facts:
    """What the batch queries found of one question."""

    def __init__(self) -> None:
        self.pairs: list[_Pair] = []
        self.pool: list[dict[str, Any]] = []
        self.judgment_ids: list[int] = []
        self.judgments = 0
        self.sampled: Sampled | None = None


def _with_facts(
    evalset: EvalSet, batch: list[Question], judges: Sequence[Assessor]
) -> Iterable[tuple[Question, _Facts]]:
    keys = [question.pk for question in batch]
    facts: defaultdict[int, _Facts] = defaultdict(_Facts)
    with connection.cursor() as cursor:
        cursor.execute(PAIRS, settle_parameters(evalset, questions=keys, judges=judges))
        for *settled, external_id, revision, has_text, is_cut in cursor:
            pair = _Pair(SettledPair(*settled), external_id, revision, has_text, is_cut)
            facts[pair.settled.question_id].pairs.append(pair)
        cursor.execute(POOLED_RUNS, [keys])
        for question, system, run, stage, k, date in cursor:
            facts[question].pool.append(
                {"system": system, "run": run, "stage": stage, "k": k, "date": date.isoformat()}
            )
        cursor.execute(JUDGMENTS, [[judge.pk for judge in judges], evalset.pk, keys])
        for question, ids, judgments in cursor:
            facts[question].judgment_ids, facts[question].judgments = ids, judgments
    for key, sampled in read_samples(keys).items():
        facts[key].sampled = sampled
    return [(question, facts[question.pk]) for question in batch]


def _freeze(
    question: Question, position: int, release_id: int, facts: _Facts, tally: Tally
) -> ReleaseQuestion:
    labelled = [pair for pair in facts.pairs if pair.settled.label is not None]
    settled = [pair.settled for pair in labelled]
    chunk_ids = [pair.chunk_id for pair in settled]
    frozen = ReleaseQuestion(
        release_id=release_id,
        question=question,
        position=position,
        external_id=question.external_id,
        details=question.as_json(),
        chunk_ids=chunk_ids,
        external_ids=[pair.external_id for pair in labelled],
        revisions=[pair.revision for pair in labelled],
        grades=[pair.label for pair in settled],
        why=[pair.why for pair in settled],
        judgment_counts=[len(pair.grades) + (pair.why == "adjudicated") for pair in settled],
        model_chunk_ids=[pair.chunk_id for pair in settled if pair.model_grades],
        cut_ids=[pair.settled.chunk_id for pair in labelled if pair.is_cut],
        unlabelled=[
            {
                "chunk_id": pair.settled.chunk_id,
                "id": pair.external_id,
                "why": pair.settled.why,
                "grades": pair.settled.grades,
                "skips": pair.settled.skips,
                "revision": pair.revision,
            }
            for pair in facts.pairs
            if pair.settled.label is None
        ],
        pool=facts.pool,
        judgment_ids=facts.judgment_ids,
        pooled_ids=facts.sampled.left_out(set(chunk_ids)) if facts.sampled else [],
        inclusion=facts.sampled.inclusion(chunk_ids) if facts.sampled else None,
    )
    tally.add(frozen, judgments=facts.judgments, without_text=sum(not pair.has_text for pair in labelled))
    return frozen


def freeze_classes(evalset: EvalSet, *, release_id: int) -> list[ReleaseClass]:
    """The set's classes as unsaved rows, by the bytes of their representatives' IDs.

    One of cut passages alone is left out: as a unit it would be evidence that no other run can return.
    """
    with_wholes = ClassMember.objects.filter(chunk_class__evalset=evalset, chunk__cut_from=None)
    members = (
        ClassMember.objects.filter(chunk_class__in=with_wholes.values("chunk_class"))
        .order_by("chunk__external_id")
        .values_list("chunk_class_id", "chunk_id", "chunk__external_id", "chunk__revision")
    )
    by_class: defaultdict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for chunk_class, chunk, external_id, revision in members:
        by_class[chunk_class].append((chunk, external_id, revision))
    # The first member met of each class is its representative, so the classes come in the right order already.
    return [
        ReleaseClass(
            release_id=release_id,
            number=number,
            representative=members_of_one[0][1],
            chunk_ids=[chunk for chunk, _, _ in members_of_one],
            external_ids=[external_id for _, external_id, _ in members_of_one],
            revisions=[revision for _, _, revision in members_of_one],
        )
        for number, members_of_one in enumerate(by_class.values())
    ]


def _names(frozen: ReleaseQuestion, chunks: Sequence[int]) -> list[str]:
    """The IDs of these of its labelled chunks."""
    return [frozen.external_ids[frozen.chunk_ids.index(chunk)] for chunk in chunks]


class ContentHash:
    """SHA-256 over the canonical form of a release, fed row by row."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._hash = hashlib.sha256()
        judges = settings["judges"]
        marks = {"include_models": bool(judges), **({"judges": judges} if judges else {})}
        self._line(
            {
                "form": "fairpool-release-1",
                **{name: value for name, value in settings.items() if name != "judges"},
                **marks,
            }
        )

    def _line(self, document: dict[str, Any]) -> None:
        self._hash.update(orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE))

    def add_question(self, frozen: ReleaseQuestion, names_of_pooled: dict[int, str]) -> None:
        self._line(
            {
                "question": frozen.details,
                "labels": [
                    list(label)
                    for label in zip(
                        frozen.external_ids,
                        frozen.revisions,
                        frozen.grades,
                        frozen.why,
                        frozen.judgment_counts,
                        strict=True,
                    )
                ],
                "from_models": _names(frozen, frozen.model_chunk_ids),
                "pooled": sorted(names_of_pooled[chunk] for chunk in frozen.pooled_ids),
                "inclusion": frozen.inclusion,
                "unlabelled": [
                    {key: value for key, value in item.items() if key != "chunk_id"}
                    for item in frozen.unlabelled
                ],
                "pool": frozen.pool,
                "judgments": len(frozen.judgment_ids),
                # Only where there are any: what was released before there were any keeps its hash.
                **({"cut_passages": _names(frozen, frozen.cut_ids)} if frozen.cut_ids else {}),
            }
        )

    def add_class(self, frozen: ReleaseClass) -> None:
        self._line(
            {
                "class": frozen.representative,
                "members": [list(m) for m in zip(frozen.external_ids, frozen.revisions, strict=True)],
            }
        )

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def settings_of(evalset: EvalSet, judges: Sequence[Assessor]) -> dict[str, Any]:
    """The settings that a release freezes, as keyword arguments of `Release`."""
    return {
        "scale": evalset.scale,
        "threshold": evalset.threshold,
        "gain": evalset.gain,
        "settle_policy": evalset.settle_policy,
        "judges": sorted(judge.name for judge in judges),
    }


def latest_release(evalset: EvalSet) -> Release | None:
    return Release.objects.filter(evalset=evalset).order_by("-number").first()

"""An eval set of any size, made by a few statements: what benchmarks/page_costs.py opens the pages of.

Everything but the text of a question grows with `questions`: a hundred judgments a question by twenty people, a tenth
of the pairs read twice; twenty chunks a question; twenty runs to depth 50; pools, batches, releases, an outside judge,
classes, candidates and mappings.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

from evalsets.models import Chunk, EvalSet, Job, Member, Question, User
from judging.models import Assessor, Batch, ChunkClass
from judging.services.batches import make_batch
from judging.services.remainder import pairs_to_judge
from labels.models import DuplicateCandidate, TextMapping
from labels.services.publishing import publish_release
from labels.waiting import waiting_pairs
from pooling.models import Pool, Run, System
from pooling.services.pools import build_pool
from scoring.models import Comparison, ScoreResult
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve, score_runs

PEOPLE, RUNS, DEPTH, CHUNKS_A_QUESTION = 20, 20, 50, 20
# Chunks that runs return for a question, and how many of them are judged.
CANDIDATES, JUDGED = 150, 91


@dataclass(frozen=True)
class World:
    """An eval set with one of each thing that has a page."""

    evalset: EvalSet
    lead: User
    assessor: User
    question: Question
    chunk: Chunk
    system: System
    run: Run
    pool: Pool
    done: Batch
    at_work: Batch
    waiting: tuple[int, int]
    judge: Assessor
    chunk_class: ChunkClass
    candidate: DuplicateCandidate
    mapping: TextMapping
    job: Job
    score: ScoreResult
    comparison: Comparison

    @property
    def rows(self) -> dict[str, int]:
        """How large it is."""
        return {
            "questions": self.evalset.questions.count(),
            "chunks": self.evalset.chunks.count(),
            "judgments": self.evalset.judgments.count(),
        }


_QUESTIONS = """
INSERT INTO evalsets_question
    (evalset_id, external_id, text, narrative, slices, split, answerable, "group", scope, facts)
SELECT %(evalset)s, 'question-' || n, 'What does chapter ' || n %% 971 || ' say of case ' || n || '?', '',
    ARRAY['slice-' || n %% 7], CASE WHEN n %% 5 = 0 THEN 'holdout' ELSE 'dev' END, n %% 50 > 0, '', '', '[]'
FROM generate_series(1, %(questions)s) n ORDER BY n;
INSERT INTO evalsets_chunk (evalset_id, external_id, has_text, revision)
SELECT %(evalset)s, 'handbook/' || n %% 971 || '#' || n, n %% 100 > 0, CASE WHEN n %% 100 = 1 THEN 2 ELSE 1 END
FROM generate_series(1, %(chunks)s) n ORDER BY n"""

_TEXTS = """
INSERT INTO evalsets_chunkrevision
    (chunk_id, number, title, text, text_hash, doc_id, url, scope, source_revision, metadata)
SELECT c.id, r.number, 'Case ' || n, 'Revision ' || r.number || ' of case ' || n || '. ' || words.text,
    encode(sha256(c.external_id::bytea), 'hex'), 'handbook/' || n %% 971, '', '', '', '{}'
FROM generate_series(1, %(chunks)s) n JOIN evalsets_chunk c ON c.id = %(chunk)s + n AND c.has_text
CROSS JOIN LATERAL generate_series(1, c.revision) r (number)
CROSS JOIN LATERAL (
    SELECT string_agg('word' || (n::bigint * i * 7919) %% 3001, ' ') FROM generate_series(1, 80) i
) words (text)"""

# Chunk j (from 0) of question n; 104729 is a prime, so that a question has none of them twice.
_CHUNK = "%(chunk)s + 1 + (n * 7919 + {j}::bigint * 104729) %% %(chunks)s"

_RUNS = f"""
INSERT INTO pooling_ranking (run_id, question_id, chunk_ids)
SELECT %(run)s, %(question)s + n, ARRAY(
    SELECT ({_CHUNK.format(j=f"((rank * 3 + %(number)s * 5) %% {CANDIDATES})")})::int
    FROM generate_series(1, {DEPTH}) rank
)
FROM generate_series(1, %(questions)s) n"""

# A fifth of the questions were judged in a batch that is done.
_BATCH = f"""
INSERT INTO judging_batchquestion (batch_id, question_id, position)
SELECT %(batch)s, %(question)s + n, n FROM generate_series(1, %(questions)s / 5) n;
INSERT INTO judging_batchpair
    (batch_question_id, batch_id, question_id, chunk_id, revision, position, wanted, filled_at)
SELECT bq.id, %(batch)s, bq.question_id, {_CHUNK.format(j="j")}, 1, j,
    CASE WHEN (j * 13 + n) %% 10 = 0 THEN 2 ELSE 1 END, now()
FROM judging_batchquestion bq CROSS JOIN LATERAL (SELECT bq.position AS n) number
CROSS JOIN generate_series(0, {JUDGED - 1}) j
WHERE bq.batch_id = %(batch)s"""

_JUDGMENTS = f"""
INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source,
    pair_id, seconds, judged_at, note, spans, facts, details)
SELECT %(evalset)s, %(question)s + n, said.chunk, 1, %(person)s + 1 + said.person %% {PEOPLE},
    CASE WHEN j = {JUDGED} THEN 'skip' ELSE 'grade' END,
    CASE WHEN j < {JUDGED} THEN (said.grade + (reader > 0 AND (n / 2 + j + reader) %% 4 = 0)::int) %% 4 END,
    CASE WHEN j = {JUDGED} THEN 'unclear-question' ELSE '' END, 'desk', p.id, 4 + (n * j) %% 30,
    now() - make_interval(secs => (%(questions)s - n) * 100 - j - reader), '', '[]', '{{}}', '{{}}'
FROM generate_series(1, %(questions)s) n
CROSS JOIN generate_series(0, {JUDGED}) j
CROSS JOIN generate_series(0, 2) reader
CROSS JOIN LATERAL (
    SELECT {_CHUNK.format(j="j")} AS chunk,
        n + CASE reader WHEN 0 THEN 0 WHEN 1 THEN 1 + j %% 19 ELSE 1 + (j + 7) %% 19 END AS person,
        CASE WHEN (n * 31 + j * 17) %% 100 < 70 THEN 0 WHEN (n * 31 + j * 17) %% 100 < 85 THEN 1
             WHEN (n * 31 + j * 17) %% 100 < 95 THEN 2 ELSE 3 END AS grade
) said
LEFT JOIN judging_batchpair p ON p.batch_id = %(batch)s AND p.question_id = %(question)s + n AND p.chunk_id = said.chunk
WHERE CASE reader WHEN 0 THEN j < {JUDGED} OR n %% 2 = 0
                  WHEN 1 THEN j < {JUDGED} AND (j * 13 + n) %% 10 = 0
                  ELSE j < {JUDGED} AND (j * 13 + n) %% 100 = 0 END
ORDER BY n, j, reader;
INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source,
    pair_id, seconds, judged_at, note, spans, facts, details, replaces_id)
SELECT evalset_id, question_id, chunk_id, revision, assessor_id, kind, (grade + 1) %% 4, '', source, pair_id, seconds,
    judged_at + interval '1 minute', '', '[]', '{{}}', '{{}}', id
FROM judging_judgment WHERE evalset_id = %(evalset)s AND kind = 'grade' AND id %% 100 = 0;
INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source,
    judged_at, note, spans, facts, details)
SELECT evalset_id, question_id, chunk_id, 1, %(person)s + 1, 'grade', 1, '', 'adjudication',
    now(), '', '[]', '{{}}', '{{}}'
FROM judging_judgment WHERE evalset_id = %(evalset)s AND kind = 'grade' AND id %% 1000 = 1;
INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source,
    judged_at, note, spans, facts, details)
SELECT %(evalset)s, %(question)s + n, {_CHUNK.format(j="j + 84")}, 1, %(judge)s, 'grade', (n * 7 + j) %% 4, '',
    'import', now(), '', '[]', '{{}}', '{{}}'
FROM generate_series(1, %(questions)s) n CROSS JOIN generate_series(0, 14) j"""

# Run after each release, so that the second differs: five pairs of every tenth question are decided anew.
_MORE_JUDGMENTS = f"""
INSERT INTO judging_judgment (evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source,
    judged_at, note, spans, facts, details)
SELECT %(evalset)s, %(question)s + n, {_CHUNK.format(j="j")}, 1, %(person)s + 1, 'grade', 3, '', 'adjudication',
    now(), '', '[]', '{{}}', '{{}}'
FROM generate_series(1, %(questions)s) n CROSS JOIN generate_series(80, 95) j WHERE n %% 10 = 0 AND j %% 3 = 0"""

_CLASSES = """
WITH made AS (
    INSERT INTO judging_chunkclass (evalset_id) SELECT %(evalset)s FROM generate_series(1, %(chunks)s / 200)
    RETURNING id
),
numbered AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM made)
INSERT INTO judging_classmember (chunk_class_id, chunk_id)
SELECT id, %(chunk)s + n * 200 - member FROM numbered CROSS JOIN generate_series(1, 2) member;
INSERT INTO judging_pairverdict
    (evalset_id, first_id, first_revision, second_id, second_revision, verdict, assessor_id, note)
SELECT %(evalset)s, %(chunk)s + n * 200 - 2, 1, %(chunk)s + n * 200 - 1, 1, 'same', %(person)s + 1, ''
FROM generate_series(1, %(chunks)s / 200) n;
INSERT INTO labels_duplicatecandidate
    (evalset_id, first_id, first_revision, second_id, second_revision, similarity, equal)
SELECT %(evalset)s, %(chunk)s + n * 40 + 12, 1, %(chunk)s + n * 40 + 13, 1, 0.6 + (n %% 40) / 100.0, n %% 4 = 0
FROM generate_series(1, %(chunks)s / 40 - 1) n;
INSERT INTO labels_textmapping (evalset_id, old_chunk_id, old_revision, new_chunk_id, new_revision, method, share)
SELECT %(evalset)s, id, 1, id, 2, 'revision', 0.5 + (id %% 50) / 100.0
FROM evalsets_chunk WHERE evalset_id = %(evalset)s AND revision = 2;
INSERT INTO evalsets_event (evalset_id, by_id, verb, summary, details)
SELECT %(evalset)s, %(lead)s, 'pair-decided', 'Decided pair ' || n || '.', '{}'
FROM generate_series(1, %(questions)s) n;
INSERT INTO evalsets_job
    (evalset_id, task, title, parameters, created_by_id, attempt, phase, done, error, result_url)
SELECT %(evalset)s, 'labels.find_duplicates', 'Job ' || n, '{}', %(lead)s, 0, '', 0, '', ''
FROM generate_series(1, %(questions)s / 10) n"""


def make_world(name: str, questions: int) -> None:
    """An eval set of so many questions, with about a hundred times as many judgments."""
    chunks = questions * CHUNKS_A_QUESTION
    evalset = EvalSet.objects.create(slug=name, name=f"An eval set of {questions:,} questions")
    people = [User.objects.create(username=f"{name}-{n:02}", password="!") for n in range(PEOPLE)]
    for n, user in enumerate(people):
        Member.objects.create(evalset=evalset, user=user, role="assessor" if n else "lead")
    readers = [
        Assessor.objects.create(evalset=evalset, kind="person", user=u, name=u.username) for u in people
    ]
    judge = Assessor.objects.create(evalset=evalset, kind="model", name="judge")
    values = {
        "evalset": evalset.pk,
        "questions": questions,
        "chunks": chunks,
        "lead": people[0].pk,
        "person": readers[0].pk - 1,
        "judge": judge.pk,
    }
    _run(_QUESTIONS, values)
    values["question"] = _first(evalset.questions) - 1
    values["chunk"] = _first(evalset.chunks) - 1
    _run(_TEXTS, values)
    runs = [_make_run(evalset, number, values) for number in range(RUNS)]
    _analyze()
    pool, _ = build_pool(evalset=evalset, name="four systems", runs=[(run, 10) for run in runs[:4]], by=None)
    build_pool(evalset=evalset, name="all systems", runs=[(run, 5) for run in runs], by=None, extends=pool)
    done = Batch.objects.create(
        evalset=evalset, pool=pool, name="done", seed=1, overlap=2, overlap_share=0.1,
        rubric=evalset.rubrics.create(version=1, scale=evalset.scale),
    )  # fmt: skip
    done.assessors.set(readers)
    values["batch"] = done.pk
    _run(_BATCH, values)
    _analyze()
    _run(_JUDGMENTS, values)
    _run(_CLASSES, values)
    _analyze()
    small, _ = build_pool(
        evalset=evalset, name="fifty questions", runs=[(run, 50) for run in runs], by=None,
        question_filter={"questions": [question.external_id for question in evalset.questions.order_by("pk")[:50]]},
    )  # fmt: skip
    make_batch(
        pool=small,
        name="at work",
        by=people[0],
        assessors=people[:5],
        pairs=pairs_to_judge(pool=small),
        seed=1,
    )
    for notes in ("first", "second"):
        evalset.threshold += 1  # else there would be nothing new to publish
        evalset.save()
        release = publish_release(evalset=evalset, by=people[0], notes=notes).release
        _run(_MORE_JUDGMENTS, values)
    asked = resolve(release, measures=["nDCG@10", "Recall@5"])
    score_runs(release=release, runs=runs[:2], asked=asked)
    compare_runs(release=release, run_a=runs[0], run_b=runs[1], asked=asked)
    _analyze()


def find_world(name: str) -> World:
    """What `make_world` made under that name."""
    evalset = EvalSet.objects.get(slug=name)
    first = [question.pk for question in evalset.questions.order_by("pk")[:500]]
    waiting = waiting_pairs(evalset, questions=first)[0]
    runs = evalset.runs.order_by("name")
    return World(
        evalset=evalset,
        lead=User.objects.get(username=f"{name}-00"),
        assessor=User.objects.get(username=f"{name}-01"),
        question=evalset.questions.order_by("pk")[0],
        chunk=evalset.chunks.filter(revision=2).order_by("pk")[1],
        system=runs[0].system,
        run=runs[0],
        pool=evalset.pools.get(name="four systems"),
        done=evalset.batches.get(name="done"),
        at_work=evalset.batches.get(name="at work"),
        waiting=(waiting.question_id, waiting.chunk_id),
        judge=evalset.assessors.get(kind="model"),
        chunk_class=ChunkClass.objects.filter(evalset=evalset)[0],
        candidate=DuplicateCandidate.objects.filter(evalset=evalset)[0],
        mapping=TextMapping.objects.filter(evalset=evalset)[0],
        job=Job.objects.filter(evalset=evalset)[0],
        score=ScoreResult.objects.filter(evalset=evalset)[0],
        comparison=Comparison.objects.filter(evalset=evalset)[0],
    )


def _make_run(evalset: EvalSet, number: int, values: dict[str, int]) -> Run:
    system = System.objects.create(evalset=evalset, name=f"system-{number:02}")
    run = Run.objects.create(
        evalset=evalset,
        system=system,
        name=f"run-{number:02}",
        date="2026-01-01",
        content_hash=f"{number:064}",
    )
    _run(_RUNS, {**values, "run": run.pk, "number": number})
    return run


def _run(sql: str, values: dict[str, int]) -> None:
    """Run statements without the checks of foreign keys, which would take most of the time."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, values)


def _first(rows) -> int:  # type: ignore[no-untyped-def]
    return int(rows.order_by("pk").values_list("pk", flat=True)[0])


def _analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")

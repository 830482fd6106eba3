"""Each row breaks one constraint of the database, which must refuse it by its name."""

from __future__ import annotations

import datetime

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F

from evalsets.models import Chunk, ChunkRevision, EvalSet, ImportedFile, Member, Question
from judging.models import Assessor, KeptFigures, PairVerdict
from pooling.models import Ranking, Run, System
from scoring.models import Analysis, Comparison, ScoreResult
from scoring.services.analysing import analyse_stages
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve
from tests.conftest import make_chunks, make_questions, make_run
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db
NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
DAYS = {"effective_from": datetime.date(2026, 3, 2), "effective_to": datetime.date(2026, 3, 1)}

#: The constraint, the model, and what is written into all of its rows.
WRITTEN = [
    ("evalset_threshold_below_one", EvalSet, {"threshold": 0}),
    ("evalset_low_rate_outside_0_1", EvalSet, {"low_unjudged_rate": 1.5}),
    ("chunk_id_twice_in_evalset", Chunk, {"external_id": "a"}),
    ("chunk_without_id", Chunk, {"external_id": ""}),
    ("chunk_revised_without_text", Chunk, {"has_text": False, "revision": 2}),
    ("chunk_cut_from_itself", Chunk, {"cut_from": F("id")}),
    ("revision_span_backwards", ChunkRevision, {"start": 5, "end": 4}),
    ("revision_period_backwards", ChunkRevision, DAYS),
    ("question_id_twice_in_evalset", Question, {"external_id": "q1"}),
    ("question_without_id", Question, {"external_id": ""}),
    ("question_split_unknown", Question, {"split": "train"}),
    ("system_name_twice_in_evalset", System, {"name": "first"}),
    ("system_without_name", System, {"name": ""}),
    ("run_name_twice_in_evalset", Run, {"name": "first"}),
    ("run_without_name", Run, {"name": ""}),
    ("run_stage_unknown", Run, {"stage": "dense"}),
    ("ranking_scores_of_other_length", Ranking, {"scores": [1.0] * 9}),
    ("assessor_person_without_user", Assessor, {"kind": "person"}),
    ("score_result_key_malformed", ScoreResult, {"key": "short"}),
    ("score_result_policy_unknown", ScoreResult, {"policy": "kind"}),
    ("score_result_unit_unknown", ScoreResult, {"unit": "page"}),
    ("score_result_threshold_below_one", ScoreResult, {"threshold": 0}),
    ("comparison_key_malformed", Comparison, {"key": "short"}),
    ("analysis_kind_unknown", Analysis, {"kind": "weather"}),
    ("analysis_key_malformed", Analysis, {"key": "short"}),
]


@pytest.fixture
def world(evalset):
    """An eval set with two rows at least of what has a name, a comparison and an analysis."""
    make_questions(evalset, "q1", "q2")
    make_chunks(evalset, "a", "b")
    release = release_labels(evalset, {"q1": {"a": 1, "b": 0}})
    rankings = {"q1": ["a", "b"], "q2": ["a"]}
    runs = [
        make_run(evalset, "first", rankings, system="first", stage="candidates"),
        make_run(evalset, "second", {**rankings, "q1": ["b", "a"]}, system="first"),
    ]
    make_run(evalset, "third", rankings, system="third")
    compare_runs(release=release, run_a=runs[0], run_b=runs[1], asked=resolve(release, measures=["P@1"]))
    analyse_stages(release=release, runs=runs)
    return evalset


@pytest.mark.parametrize(("name", "model", "fields"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_what_may_not_be_written(world, name, model, fields) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        model.objects.update(**fields)


def test_a_run_is_not_compared_with_itself(world) -> None:
    made = Comparison.objects.get()
    with pytest.raises(IntegrityError, match="comparison_of_a_run_with_itself"), transaction.atomic():
        Comparison.objects.update(run_b=made.run_a)


def test_what_may_not_be_there_twice(world, alice) -> None:
    revision, ranking = ChunkRevision.objects.first(), Ranking.objects.first()
    for name, model, fields in [
        ("member_twice_in_evalset", Member, {"user": alice, "role": "viewer", "evalset": world}),
        ("revision_number_twice", ChunkRevision, {"chunk": revision.chunk, "number": revision.number}),
        (
            "ranking_twice_for_question",
            Ranking,
            {"run": ranking.run, "question": ranking.question, "chunk_ids": []},
        ),
        ("assessor_twice_for_user", Assessor, {"evalset": world, "kind": "person", "user": alice}),
        ("assessor_name_twice", Assessor, {"evalset": world, "kind": "model", "name": "judge"}),
        ("kept_figures_twice", KeptFigures, {"evalset": world, "name": "home", "form": 1, "at": NOW}),
    ]:
        with pytest.raises(IntegrityError, match=name), transaction.atomic():
            model.objects.bulk_create([model(**fields), model(**fields)])


def test_the_chunks_of_a_verdict_have_one_order(world) -> None:
    first, second = world.chunks.order_by("pk")[:2]
    assessor = Assessor.objects.create(evalset=world, kind="model", name="judge")
    with pytest.raises(IntegrityError, match="verdict_chunks_out_of_order"), transaction.atomic():
        PairVerdict.objects.create(
            evalset=world,
            first=second,
            first_revision=1,
            second=first,
            second_revision=1,
            verdict="same",
            assessor=assessor,
        )


def test_an_imported_file_is_of_a_known_kind(world) -> None:
    with pytest.raises(IntegrityError, match="imported_file_kind_unknown"), transaction.atomic():
        ImportedFile.objects.create(evalset=world, kind="songs", name="a.txt", sha256="0" * 64)

"""A chunk stands for its class or its document; what is inadmissible or truncated stands for nothing."""

import numpy as np
import pytest

from scoring.admissible import ANY, ChunkLimits, QuestionLimits, inadmissible
from scoring.classes import UNJUDGED, Labels, Rankings, build_truth, groups
from scoring.matching import match
from scoring.measures import parse_measures
from scoring.scores import Plan, Rules, score_graded
from tests.scoring.score_text import score, world


def test_the_other_copy_is_a_hit() -> None:
    known = world({"q": {"faq": 3, "noise": 0}}, classes=[["faq", "handbook"]])
    scores = score(known, {"q": ["handbook", "noise"]}, ["Recall@1", "RR@1", "nDCG@1", "Judged@2"])
    assert scores.values[0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert scores.unjudged["2"].rate == 0.0


def test_a_later_copy_keeps_its_rank_and_gains_nothing() -> None:
    known = world({"q": {"faq": 2, "other": 2}}, classes=[["faq", "handbook"]])
    scores = score(known, {"q": ["faq", "handbook", "other"]}, ["P@3", "Recall@2", "Recall@3", "AP", "RR"])
    assert scores.values[0] == pytest.approx([2 / 3, 0.5, 1.0, (1 + 2 / 3) / 2, 1.0])


def test_the_class_has_its_highest_label_and_counts_once() -> None:
    known = world({"q": {"a": 1, "b": 3, "c": 0, "d": 2}}, classes=[["a", "b", "c"]])
    first = score(known, {"q": ["c", "d"]}, ["Recall@5", "nDCG@5"])
    assert first.values[0].tolist() == [1.0, 1.0]


def test_a_copy_that_nobody_labelled_does_not_enlarge_the_denominator() -> None:
    known = world({"q": {"a": 1, "b": 1}}, classes=[["a", "a2", "a3"]])
    assert score(known, {"q": ["a3"]}, ["Recall@5"]).values[0].tolist() == [0.5]


def test_a_class_of_one_question_does_not_label_another() -> None:
    known = world({"q1": {"a": 1}, "q2": {"z": 1}}, classes=[["a", "a2"]])
    scores = score(known, {"q1": ["a2"], "q2": ["a2", "z"]}, ["RR", "Judged@1"])
    assert scores.values.tolist() == [[1.0, 1.0], [0.5, 0.0]]


def test_judged_only_keeps_a_repeated_copy() -> None:
    known = world({"q": {"a": 1, "b": 1}}, classes=[["a", "a2"]])
    scores = score(known, {"q": ["a", "x", "a2", "b"]}, ["P@2", "P@3"], policy="judged-only")
    assert scores.values[0] == pytest.approx([0.5, 2 / 3])


def test_by_document_the_best_chunk_speaks_and_later_chunks_gain_nothing() -> None:
    parents = {"doc1": ["p1", "p2"], "doc2": ["r1", "r2", "r3"]}
    known = world({"q": {"p1": 1, "p2": 3, "r1": 0, "r2": 2}}, documents=parents)
    scores = score(known, {"q": ["p1", "p2", "r3"]}, ["Recall@1", "Recall@2", "Recall@3", "P@3", "nDCG@1"])
    assert scores.values[0] == pytest.approx([0.5, 0.5, 1.0, 2 / 3, 1.0])


def test_by_document_copies_of_a_chunk_lend_their_grade_to_both_documents() -> None:
    known = world(
        {"q": {"p1": 2}}, classes=[["p1", "r1"]], documents={"doc1": ["p1", "p2"], "doc2": ["r1", "r2"]}
    )
    scores = score(known, {"q": ["r2", "x"]}, ["Recall@1", "P@1", "Judged@2"])
    assert scores.values[0].tolist() == [0.5, 1.0, 0.5]


def test_a_chunk_in_two_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="in two groups"):
        groups([1, 2, 1], [0, 0, 1])


def test_another_scope_or_period_is_inadmissible() -> None:
    questions = QuestionLimits(scope=np.array([1, ANY, 1, 2]), day=np.array([ANY, 100, 100, 99]))
    chunks = ChunkLimits(
        chunk=np.array([5, 7, 9]),
        scope=np.array([1, 2, ANY]),
        first_day=np.array([ANY, 50, 100]),
        last_day=np.array([ANY, 99, ANY]),
    )
    table = """
    0 5 no   same scope, no date asked
    0 7 yes  another scope
    0 9 no   no scope
    1 5 no   no period
    1 7 yes  ended the day before
    1 9 no   begins on the day
    2 7 yes  another scope and ended
    3 7 no   its last day, its scope
    3 9 yes  not yet begun
    1 8 no   a chunk without any limit
    """
    for row in table.strip().splitlines():
        question, chunk, answer = row.split()[:3]
        flags = inadmissible(np.array([int(question)]), np.array([int(chunk)]), questions, chunks)
        assert flags.tolist() == [answer == "yes"], row


def scored(labels, inadmissible, ranking, names, truncated=None, classes=()):
    """The scores of one ranking where the chunks of these names are inadmissible for every question."""
    known = world(labels, classes=classes)
    rankings = known.rankings({"q": ranking})
    numbers = [known.chunks[name] for name in inadmissible]
    truth = build_truth(
        known.labels,
        questions=1,
        classes=known.classes,
        inadmissible=lambda question, chunk: np.isin(chunk, numbers),
    )
    cut = None if truncated is None else np.array(truncated)
    graded = match(truth, rankings, np.isin(rankings.chunk, numbers), cut)
    return score_graded(truth, Plan(np.array([0]), ()), graded, parse_measures(names), Rules())


def test_inadmissible_chunks_are_not_relevant_whatever_their_label() -> None:
    scores = scored({"q": {"a": 3, "b": 1}}, ["a"], ["a", "b"], ["P@2", "Recall@1", "nDCG@2"])
    assert scores.values[0][:2].tolist() == [0.5, 0.0]
    assert scores.values[0][2] == pytest.approx(1 / np.log2(3))
    assert scores.inadmissible["2"].tolist() == [1]
    assert scores.unjudged["2"].rate == 0.0


def test_an_inadmissible_copy_does_not_use_up_its_class() -> None:
    scores = scored(
        {"q": {"theirs": 3}},
        ["theirs"],
        ["theirs", "ours"],
        ["RR@2", "Recall@2"],
        classes=[["theirs", "ours"]],
    )
    assert scores.values.tolist() == [[0.5, 1.0]]
    assert scores.inadmissible["2"].tolist() == [1]


def test_a_truncated_passage_does_not_inherit_the_grade() -> None:
    scores = scored({"q": {"a": 3, "b": 1}}, [], ["a", "b"], ["P@2"], truncated=[True, False])
    assert scores.values[0].tolist() == [0.5]
    assert scores.unjudged["2"].rate == 0.5


def test_labels_without_any_row_leave_everything_unjudged() -> None:
    nothing = np.empty(0, dtype=np.int64)
    truth = build_truth(Labels(nothing, nothing, nothing), questions=2)
    known = world({"q": {"a": 1}})
    graded = match(truth, known.rankings({"q": ["a", "b"]}))
    assert graded.grade.tolist() == [-1, -1]
    assert not graded.counts.any()


def test_a_table_and_a_search_find_the_same_rows(monkeypatch) -> None:
    rng = np.random.default_rng(5)
    pairs = rng.permutation(40 * 60)[:300]
    labels = Labels(pairs // 60, pairs % 60, rng.integers(0, 4, 300))
    truth = build_truth(labels, questions=40, classes=groups([1, 2, 7, 50], [0, 0, 1, 1]))
    questions = rng.permutation(40)[:30]
    lengths = rng.integers(0, 50, 30)
    chunks = [rng.permutation(90)[:length] for length in lengths]  # some are unknown to the truth
    rankings = Rankings(questions, np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(chunks))

    by_table = match(truth, rankings)
    monkeypatch.setattr("scoring.matching.TABLE_SIZE", 0)
    by_search = match(truth, rankings)

    assert (by_table.grade != UNJUDGED).sum() > 50
    assert by_table.grade.tolist() == by_search.grade.tolist()
    assert by_table.counts.tolist() == by_search.counts.tolist()

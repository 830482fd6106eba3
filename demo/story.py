"""Prints the demo's story: each run scored with the labels of the two oldest systems' pool, and with the full truth.

    python -m demo.story

With the old pool's labels the newer systems look no better than tuned BM25, and their unjudged rate says why; with
the truth they are better. n is the number of questions that have a relevant label.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ir_measures import Qrel, Recall, ScoredDoc, calc_aggregate, nDCG

from demo.ground_truth import read_rankings, read_relevance, run_files

POOL_RUNS = ("bm25", "bm25-tuned")  # the two oldest
POOL_DEPTH = 10
REPORT_DEPTH = 5
EXPONENTIAL = {grade: 2**grade - 1 for grade in range(4)}

Labels = dict[tuple[str, str], int]  # (question, chunk) -> grade


@dataclass(frozen=True)
class Scores:
    """Means over the questions with a relevant label; the unjudged rate is over all questions."""

    unjudged: float
    recall: float
    ndcg: float
    questions: int


def all_rankings() -> dict[str, dict[str, list[str]]]:
    return {path.stem: read_rankings(path) for path in run_files()}


def true_labels(pairs: Iterable[tuple[str, str]]) -> Labels:
    """The true grade of each pair."""
    relevance = read_relevance()
    return {
        (question, chunk): relevance[question][chunk].grade if chunk in relevance[question] else 0
        for question, chunk in pairs
    }


def pool_labels() -> Labels:
    """The labels that a team has after judging the pool of its two oldest systems."""
    runs = all_rankings()
    return true_labels(
        (question, chunk)
        for run in POOL_RUNS
        for question, chunks in runs[run].items()
        for chunk in chunks[:POOL_DEPTH]
    )


def full_labels() -> Labels:
    """Every label, relevant ones that no run has found included."""
    relevant = [(question, chunk) for question, row in read_relevance().items() for chunk in row]
    returned = [
        (question, chunk) for run in all_rankings().values() for question, row in run.items() for chunk in row
    ]
    return true_labels([*relevant, *returned])


def score(rankings: dict[str, list[str]], labels: Labels) -> Scores:
    """Raw scores: an unjudged chunk counts as not relevant."""
    answered = {question for (question, _), grade in labels.items() if grade > 0}
    qrels = [
        Qrel(question, chunk, grade) for (question, chunk), grade in labels.items() if question in answered
    ]
    run = [
        ScoredDoc(question, chunk, float(-rank))
        for question in answered
        for rank, chunk in enumerate(rankings.get(question, []))
    ]
    first = [(question, chunk) for question, chunks in rankings.items() for chunk in chunks[:REPORT_DEPTH]]
    recall, ndcg = Recall @ REPORT_DEPTH, nDCG(gains=EXPONENTIAL) @ REPORT_DEPTH
    return Scores(
        unjudged=sum(pair not in labels for pair in first) / len(first),
        recall=calc_aggregate([recall], qrels, run)[recall],
        ndcg=calc_aggregate([ndcg], qrels, run)[ndcg],
        questions=len(answered),
    )


def main() -> None:
    old, full = pool_labels(), full_labels()
    print(f"labels of the pool of {' and '.join(POOL_RUNS)} to depth {POOL_DEPTH}: {len(old)}")
    print(f"{'':20}{'labels of the old pool':^32}{'full truth':^20}")
    print(f"{'run':20}{'unjudged@5':>12}{'Recall@5':>10}{'nDCG@5':>10}{'Recall@5':>10}{'nDCG@5':>10}")
    for name, rankings in all_rankings().items():
        a, b = score(rankings, old), score(rankings, full)
        print(
            f"{name:20}{a.unjudged:12.1%}{a.recall:10.4f}{a.ndcg:10.4f}{b.recall:10.4f}{b.ndcg:10.4f}"
            f"   n {a.questions} and {b.questions}"
        )


if __name__ == "__main__":
    main()

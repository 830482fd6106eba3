"""The numbers equal trec_eval's wherever the definitions agree; where they do not, the difference is stated."""

import gzip
from pathlib import Path

import pytest
from django.conf import settings

from tests.scoring.score_text import by_question, read_qrels, read_run, score, world

DATA = Path(settings.BASE_DIR).parent / "shared" / "data"
COLLECTIONS = {
    "dl19-passage": "qrels.txt",
    "dl20-passage": "qrels.txt",
    "dl21-passage": "qrels.txt",
    "cranfield": "qrels.graded.txt",
    "vaswani": "qrels.txt",
    "mtrag-un": "qrels.tsv",
    "noveleval": "qrels.txt",
    "touche2020": "qrels.beir-webis-touche2020.test.txt",
}
MEASURES = {
    "map": "AP",
    "map_cut_10": "AP@10",
    "map_cut_100": "AP@100",
    "recip_rank": "RR",
    "P_5": "P@5",
    "P_10": "P@10",
    "P_20": "P@20",
    "recall_5": "Recall@5",
    "recall_10": "Recall@10",
    "recall_20": "Recall@20",
    "recall_100": "Recall@100",
    "ndcg": "nDCG",
    "ndcg_cut_5": "nDCG@5",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut_20": "nDCG@20",
    "success_1": "Success@1",
    "success_5": "Success@5",
    "success_10": "Success@10",
    "bpref": "Bpref",
    "infAP": "infAP",
}

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the collections are not beside the checkout")


def expected(collection: str) -> dict[tuple[str, str], dict[str, float]]:
    table: dict[tuple[str, str], dict[str, float]] = {}
    lines = (DATA / collection / "expected" / "trec_eval_all.tsv").read_text().splitlines()[1:]
    for line in lines:
        run, level, measure, value = line.split("\t")
        table.setdefault((run, level), {})[measure] = float(value)
    return table


@needs_data
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_means_equal_trec_eval(collection: str) -> None:
    folder = DATA / collection
    qrels = {
        question: {chunk: max(grade, 0) for chunk, grade in known.items()}
        for question, known in read_qrels(folder / COLLECTIONS[collection]).items()
    }
    known = world(qrels)
    compared = 0
    for (name, level), published in expected(collection).items():
        run = read_run(folder / "runs" / name)
        run = {question: run.get(question, []) for question in qrels}  # trec_eval -c: missing is empty
        asked = [ours for theirs, ours in MEASURES.items() if theirs in published]
        scores = score(known, run, asked, threshold=int(level[1:]), gain="linear")
        for theirs, ours in MEASURES.items():
            if theirs not in published or (theirs.startswith("ndcg") and level == "l2"):
                continue
            # trec_eval -c averages over all questions of the qrels, one without a relevant label as 0;
            # here such a question is left out, so the sums agree and not the means.
            total = sum(by_question(known, scores, ours).values())
            assert total / len(qrels) == pytest.approx(published[theirs], abs=6e-5), (name, level, ours)
            compared += 1
    assert compared > 0


@needs_data
def test_each_question_equals_trec_eval() -> None:
    folder = DATA / "dl19-passage"
    known = world(read_qrels(folder / "qrels.txt"))
    with gzip.open(folder / "expected" / "trec_eval_per_query.tsv.gz", "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    runs = {row[0] for row in rows}
    values = {}
    for name in runs:
        scores = score(known, read_run(folder / "runs" / name), list(MEASURES.values()), gain="linear")
        for theirs, ours in MEASURES.items():
            for question, value in by_question(known, scores, ours).items():
                values[name, question, theirs] = value
    compared = [
        (values[run, question, measure], float(value), (run, question, measure))
        for run, question, measure, value in rows
        if (run, question, measure) in values
    ]
    assert len(compared) > 1000
    for ours, published, what in compared:
        assert ours == pytest.approx(published, abs=6e-5), what


@needs_data
def test_a_run_with_rounded_scores_differs_from_trec_eval_only_by_its_ties() -> None:
    """Ties keep the order of the file here; trec_eval orders them by chunk id, descending."""
    folder = DATA / "dl19-passage"
    known = world(read_qrels(folder / "qrels.txt"))
    path = folder / "runs" / "REP_LLAMA.txt"
    published = expected("dl19-passage")["REP_LLAMA.txt", "l1"]
    as_filed, as_trec_eval = (
        score(known, read_run(path, trec_eval_order=order), ["nDCG@10", "Recall@100"], gain="linear")
        for order in (False, True)
    )
    assert as_trec_eval.means[0] == pytest.approx(published["ndcg_cut_10"], abs=6e-5)
    assert as_filed.means[0] != pytest.approx(published["ndcg_cut_10"], abs=6e-5)
    assert as_filed.means[1] == pytest.approx(published["recall_100"], abs=6e-5)


@needs_data
def test_exponential_gain_differs_from_trec_eval_where_grades_do() -> None:
    """The same run by linear gain is trec_eval's number; the default gain 2^grade - 1 is another."""
    folder = DATA / "dl19-passage"
    known = world(read_qrels(folder / "qrels.txt"))
    run = read_run(folder / "runs" / "BM25.txt")
    published = expected("dl19-passage")["BM25.txt", "l1"]["ndcg_cut_10"]
    assert score(known, run, ["nDCG@10"], gain="linear").means[0] == pytest.approx(published, abs=6e-5)
    assert abs(score(known, run, ["nDCG@10"]).means[0] - published) > 0.005


@needs_data
def test_the_threshold_does_not_touch_ndcg() -> None:
    folder = DATA / "dl19-passage"
    known = world(read_qrels(folder / "qrels.txt"))
    run = read_run(folder / "runs" / "BM25.txt")
    one, two = (score(known, run, ["nDCG@10", "Recall@10"], threshold=level) for level in (1, 2))
    assert one.column(one.measures[0]).tolist() == two.column(two.measures[0]).tolist()
    assert one.means[1] != two.means[1]

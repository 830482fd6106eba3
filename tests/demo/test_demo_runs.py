"""make_runs makes the committed runs again, and the runs tell the story that the demo opens on."""

import json

import pytest

from demo import story
from demo.ground_truth import DEMO, read_jsonl, read_rankings, run_files
from demo.make_runs import CONTEXT_WORDS, all_runs, is_admissible, write_runs

RUNS = ["bm25", "bm25-tuned", "char-tfidf", "lsa", "hybrid-candidates", "hybrid-context", "hybrid"]


def test_the_same_data_give_the_same_bytes(tmp_path):
    write_runs(all_runs(), tmp_path)
    committed = {path.name: path.read_bytes() for path in (DEMO / "runs").iterdir()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == committed


def test_runs_are_listed_oldest_first():
    listed = json.loads((DEMO / "runs" / "runs.json").read_text())
    assert [run["run"] for run in listed] == RUNS
    assert [run["date"] for run in listed] == sorted(run["date"] for run in listed)
    assert [run["stage"] for run in listed if run["system"] == "hybrid"] == [
        "candidates",
        "context",
        "reranked",
    ]


@pytest.mark.parametrize("run", RUNS)
def test_rankings_are_whole(run):
    (path,) = [path for path in run_files() if path.stem == run]
    rankings = read_rankings(path)
    chunks = {chunk["id"] for chunk in read_jsonl(DEMO / "chunks.jsonl")}
    assert len(rankings) == (59 if run == "bm25-tuned" else 60)
    for ranking in rankings.values():
        assert 1 <= len(ranking) == len(set(ranking)) <= 20
        assert set(ranking) <= chunks


def test_one_ranking_of_tuned_bm25_is_empty():
    (nothing,) = {f"q{number:02}" for number in range(1, 61)} - set(
        read_rankings(DEMO / "runs" / "bm25-tuned.trec")
    )
    assert nothing == "q56"


def test_the_newest_system_returns_nothing_inadmissible():
    chunks = {chunk["id"]: chunk for chunk in read_jsonl(DEMO / "chunks.jsonl")}
    questions = {question["id"]: question for question in read_jsonl(DEMO / "questions.jsonl")}
    for run in ("hybrid-candidates", "hybrid"):
        for question, ranking in read_rankings(DEMO / "runs" / f"{run}.trec").items():
            assert all(is_admissible(chunks[chunk], questions[question]) for chunk in ranking)
    oldest = read_rankings(DEMO / "runs" / "bm25.trec")
    assert any(
        not is_admissible(chunks[chunk], questions[question])
        for question, ranking in oldest.items()
        for chunk in ranking[:5]
    )


def test_the_context_keeps_to_its_budget_and_says_what_it_cut():
    texts = {chunk["id"]: chunk["text"] for chunk in read_jsonl(DEMO / "chunks.jsonl")}
    contexts = read_jsonl(DEMO / "runs" / "hybrid-context.jsonl")
    cut = 0
    for context in contexts:
        assert sum(len(passage["text"].split()) for passage in context["results"]) <= CONTEXT_WORDS
        for passage in context["results"]:
            whole = texts[passage["id"]]
            if passage.get("truncated"):
                cut += 1
                assert whole.startswith(passage["text"])
                assert len(passage["text"]) < len(whole)
            else:
                assert passage["text"] == whole
    assert 10 < cut <= len(contexts)


def test_the_newest_system_abstains_on_names_that_nobody_knows():
    abstained = {
        context["qid"]
        for context in read_jsonl(DEMO / "runs" / "hybrid-context.jsonl")
        if "abstained" in context
    }
    assert {"q57", "q59"} <= abstained
    assert "q08" not in abstained


def test_each_stage_keeps_to_what_the_one_before_gave():
    candidates = read_rankings(DEMO / "runs" / "hybrid-candidates.trec")
    reranked = read_rankings(DEMO / "runs" / "hybrid.trec")
    context = read_rankings(DEMO / "runs" / "hybrid-context.jsonl")
    for question, ranking in reranked.items():
        assert set(ranking) <= set(candidates[question])
        assert context[question] == ranking[: len(context[question])]
    assert candidates != reranked


def test_the_story():
    """A newer system looks worse with the old pool's labels, is unjudged in large part, and is better in truth."""
    old, full = story.pool_labels(), story.full_labels()
    runs = story.all_rankings()
    tuned_old, tuned_full = story.score(runs["bm25-tuned"], old), story.score(runs["bm25-tuned"], full)
    assert tuned_old.unjudged == 0
    for name in ("lsa", "hybrid"):
        newer_old, newer_full = story.score(runs[name], old), story.score(runs[name], full)
        assert 0.25 < newer_old.unjudged < 0.5
        assert newer_old.recall < tuned_old.recall - 0.05
        assert newer_full.recall > tuned_full.recall
        assert newer_full.ndcg > tuned_full.ndcg
        assert newer_full.unjudged == 0


def test_the_story_is_printed(capsys):
    story.main()
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[3:]] == RUNS
    assert "48.7%" in printed


def test_the_readme_shows_the_table_that_is_printed(capsys):
    story.main()
    assert capsys.readouterr().out.rstrip() in (DEMO / "README.md").read_text(encoding="utf-8")

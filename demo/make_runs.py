"""Makes the runs of the demo: five retrievers over the handbook to depth 20, and two later stages of the newest one.

    python -m demo.make_runs [FOLDER]        (default: demo/runs)

Needs the `demo` extra (bm25s, scikit-learn). The same data give the same bytes: all arithmetic is in double
precision without a random start, scores are rounded before they are sorted, and equal scores fall back on the
order of the handbook.

- `bm25`: BM25 as Lucene has it (k1 1.5, b 0.75) over the text.
- `bm25-tuned`: the same with k1 0.9, b 0.4 and English stop words, over title and text.
- `char-tfidf`: TF-IDF of character 3- to 5-grams within words, cosine, over title and text.
- `lsa`: latent semantic analysis, TF-IDF of words and character n-grams projected by an SVD, over document title,
  title and text.
- `hybrid`: the question gains words from the support desk's glossary; BM25, char-tfidf and lsa are fused by reciprocal
  rank; only chunks in force on the day of the question, and that the asker may see, are kept. Its stages:
  `candidates` (20), `reranked` (the best 10 by their best sentence), `context` (what fits a budget of words, the last
  passage cut where the budget ends; it abstains when no passage comes close to the question, or when the question
  names a code, part or form that the handbook does not have).
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

from demo.ground_truth import DEMO, Record, read_jsonl

DEPTH = 20
CORPUS_SNAPSHOT = "2025-10-01"  # also the day on which a question without a date of its own is asked
LSA_DIMENSIONS = 120
RRF_CONSTANT = 60
RERANKED_DEPTH = 10
CONTEXT_WORDS = 250
ABSTAIN_BELOW = 0.40
IDENTIFIER = re.compile(r"\b[A-Z]{2}-\d+(?:-[A-Z])?\b|\b\d\d-[A-Z]\b")  # codes, parts, forms

Ranking = list[tuple[int, float]]  # (position of the chunk in chunks.jsonl, score), best first


# --- retrievers: texts and queries in, scores of shape (queries, texts) out ---


def bm25_scores(
    texts: Sequence[str], queries: Sequence[str], *, k1: float, b: float, stopwords: str | None
) -> np.ndarray:
    """BM25, Lucene's variant."""
    words: str | list[str] = stopwords or []
    corpus = bm25s.tokenize(list(texts), stopwords=words, show_progress=False)
    index = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    index.index(corpus, show_progress=False)
    asked = bm25s.tokenize(list(queries), stopwords=words, return_ids=False, show_progress=False)
    return np.stack([index.get_scores(tokens) if tokens else np.zeros(len(texts)) for tokens in asked])


def character_vectorizer() -> TfidfVectorizer:
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)


def character_scores(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    """Cosine of character n-gram vectors."""
    vectorizer = character_vectorizer()
    corpus = vectorizer.fit_transform(texts)
    return np.asarray((vectorizer.transform(queries) @ corpus.T).toarray())


def lsa_scores(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    """Cosine in the space of the leading singular vectors.

    Deerwester, Dumais, Furnas, Landauer, Harshman: Indexing by latent semantic analysis (1990).
    """
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    vectorizer = FeatureUnion([("words", words), ("letters", character_vectorizer())])
    corpus = vectorizer.fit_transform(texts)
    asked = vectorizer.transform(queries)
    # The left singular vectors are the eigenvectors of the small matrix of chunk likenesses; eigh sorts upwards.
    squares, vectors = np.linalg.eigh((corpus @ corpus.T).toarray())
    leading = vectors[:, -LSA_DIMENSIONS:]
    singular = np.sqrt(squares[-LSA_DIMENSIONS:])
    return unit((asked @ corpus.T).toarray() @ leading / singular) @ unit(leading * singular).T


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1.0, lengths))


def fused_scores(*scores: np.ndarray) -> np.ndarray:
    """Reciprocal-rank fusion: the sum of 1 / (60 + rank). Cormack, Clarke, Buettcher (2009)."""
    total = np.zeros_like(scores[0])
    for matrix in scores:
        order = np.argsort(-matrix.round(6), axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, matrix.shape[1] + 1)[None, :], axis=1)
        total += 1.0 / (RRF_CONSTANT + ranks)
    return total


# --- what the newest system adds ---


def with_glossary(question: str, glossary: list[tuple[re.Pattern[str], str]]) -> str:
    """The question, and behind it the handbook's words for what the customer says."""
    return " ".join([question, *(added for said, added in glossary if said.search(question))])


def read_glossary(path: Path) -> list[tuple[re.Pattern[str], str]]:
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            said, added = line.split(" = ")
            words = "|".join(re.escape(word) for word in said.split(", "))
            entries.append((re.compile(rf"\b(?:{words})\b", re.IGNORECASE), added))
    return entries


def is_admissible(chunk: Record, question: Record) -> bool:
    """Whether the asker may see the chunk and it is in force on the day of the question."""
    day = question.get("effective_date", CORPUS_SNAPSHOT)
    in_force = chunk.get("effective_from", day) <= day <= chunk.get("effective_to", day)
    return in_force and chunk.get("scope") in (None, question.get("scope"))


def reranked(rankings: list[Ranking], chunks: list[Record], queries: Sequence[str]) -> list[Ranking]:
    """Each ranking by the likeness of the chunk's best sentence (its title counts as one) to the question."""
    sentences: list[str] = []
    owners: list[int] = []
    for position, chunk in enumerate(chunks):
        parts = [chunk["title"], *re.split(r"(?<=[.!?;])\s+|\n+", chunk["text"])]
        sentences += parts
        owners += [position] * len(parts)
    likeness = character_scores(sentences, queries)
    result = []
    for ranking, row in zip(rankings, likeness, strict=True):
        best = np.zeros(len(chunks))
        np.maximum.at(best, owners, row)
        kept = np.zeros(len(chunks))
        for rank, (position, _) in enumerate(ranking, start=1):
            kept[position] = best[position] + 1.0 / (5 + rank)  # the first stage keeps a say
        result.append(ranked(kept)[:RERANKED_DEPTH])
    return result


def abstains(question: Record, ranking: Ranking, chunks: list[Record]) -> bool:
    """Whether the newest system would rather say that it does not know."""
    unknown = any(
        all(named not in chunk["title"] + " " + chunk["text"] for chunk in chunks)
        for named in IDENTIFIER.findall(question["text"])
    )
    return unknown or not ranking or ranking[0][1] < ABSTAIN_BELOW


def packed(ranking: Ranking, chunks: list[Record]) -> list[Record]:
    """The passages that fit the budget, in order; the one that crosses it is cut there, and marked."""
    left = CONTEXT_WORDS
    passages = []
    for position, score in ranking:
        if left <= 0:
            break
        words = list(re.finditer(r"\S+", chunks[position]["text"]))
        passage = {"id": chunks[position]["id"], "score": score, "text": chunks[position]["text"]}
        if len(words) > left:
            passage |= {"text": passage["text"][: words[left - 1].end()], "truncated": True}
        passages.append(passage)
        left -= len(words)
    return passages


def ranked(scores: np.ndarray) -> Ranking:
    """The best chunks with a positive score. Equal scores keep the order of the handbook."""
    rounded = scores.round(6)
    best = np.argsort(-rounded, kind="stable")[:DEPTH]
    return [(int(position), float(rounded[position])) for position in best if rounded[position] > 0]


# --- the runs ---


@dataclass(frozen=True, kw_only=True)
class MadeRun:
    """A run file's content and what is recorded with it."""

    name: str
    system: str
    version: str
    date: str
    stage: str = "reranked"  # a system of one stage: its list is what the user sees
    k: int = DEPTH
    suffix: str
    content: str
    config: Record


def all_runs(folder: Path = DEMO) -> list[MadeRun]:
    """The runs, the oldest first, over the questions and chunks in `folder`."""
    chunks, questions = read_jsonl(folder / "chunks.jsonl"), read_jsonl(folder / "questions.jsonl")
    titles = document_titles(folder)
    bare = [chunk["text"] for chunk in chunks]
    titled = [f"{chunk['title']}\n{chunk['text']}" for chunk in chunks]
    in_document = [f"{titles[chunk['doc_id']]}\n{text}" for chunk, text in zip(chunks, titled, strict=True)]
    asked = [question["text"] for question in questions]
    glossary = read_glossary(folder / "glossary.txt")
    asked_wider = [with_glossary(text, glossary) for text in asked]

    def trec(name: str, rankings: list[Ranking]) -> str:
        return "".join(
            f"{question['id']} Q0 {chunks[position]['id']} {rank} {score:.6f} {name}\n"
            for question, ranking in zip(questions, rankings, strict=True)
            for rank, (position, score) in enumerate(ranking, start=1)
        )

    fusion = fused_scores(
        bm25_scores(in_document, asked_wider, k1=0.9, b=0.4, stopwords="en"),
        character_scores(in_document, asked_wider),
        lsa_scores(in_document, asked_wider),
    )
    admissible = np.array([[is_admissible(chunk, question) for chunk in chunks] for question in questions])
    candidates = [ranked(row) for row in np.where(admissible, fusion, 0.0)]
    best = reranked(candidates, chunks, asked_wider)
    context = "".join(
        json.dumps(
            {"qid": question["id"]}
            | ({"abstained": True} if abstains(question, ranking, chunks) else {})
            | {"results": packed(ranking, chunks)},
            ensure_ascii=False,
        )
        + "\n"
        for question, ranking in zip(questions, best, strict=True)
    )

    everywhere = {"corpus_snapshot": CORPUS_SNAPSHOT, "chunker": "one chunk a heading"}
    unscoped = everywhere | {"permission_scope": "none: every chunk is searched"}
    hybrid = everywhere | {
        "permission_scope": "the asker's",
        "period": "in force on the day of the question",
        "fields": ["document title", "title", "text"],
        "query": "with the support desk's glossary",
        "model": "reciprocal-rank fusion of bm25, char-tfidf and lsa",
        "rrf_constant": RRF_CONSTANT,
        "lsa_dimensions": LSA_DIMENSIONS,
    }
    reranker = {"reranker": "character n-grams, best sentence, plus 1/(5 + rank)", "kept": RERANKED_DEPTH}
    packing = {"budget_words": CONTEXT_WORDS, "abstains_below": ABSTAIN_BELOW}
    return [
        MadeRun(
            name="bm25",
            system="bm25",
            version="1",
            date="2025-10-06",
            suffix="trec",
            content=trec(
                "bm25", [ranked(row) for row in bm25_scores(bare, asked, k1=1.5, b=0.75, stopwords=None)]
            ),
            config=unscoped
            | {
                "model": "BM25, Lucene's variant",
                "k1": 1.5,
                "b": 0.75,
                "stopwords": None,
                "fields": ["text"],
            },
        ),
        MadeRun(
            name="bm25-tuned",
            system="bm25-tuned",
            version="1.1",
            date="2025-10-13",
            suffix="trec",
            content=trec(
                "bm25-tuned",
                [ranked(row) for row in bm25_scores(titled, asked, k1=0.9, b=0.4, stopwords="en")],
            ),
            config=unscoped
            | {
                "model": "BM25, Lucene's variant",
                "k1": 0.9,
                "b": 0.4,
                "stopwords": "English",
                "fields": ["title", "text"],
            },
        ),
        MadeRun(
            name="char-tfidf",
            system="char-tfidf",
            version="1",
            date="2025-11-03",
            suffix="trec",
            content=trec("char-tfidf", [ranked(row) for row in character_scores(titled, asked)]),
            config=unscoped
            | {"model": "TF-IDF of character n-grams, cosine", "ngrams": [3, 5], "fields": ["title", "text"]},
        ),
        MadeRun(
            name="lsa",
            system="lsa",
            version="1",
            date="2025-11-17",
            suffix="trec",
            content=trec("lsa", [ranked(row) for row in lsa_scores(in_document, asked)]),
            config=unscoped
            | {
                "model": "latent semantic analysis",
                "dimensions": LSA_DIMENSIONS,
                "fields": ["document title", "title", "text"],
            },
        ),
        MadeRun(
            name="hybrid-candidates",
            system="hybrid",
            version="2",
            date="2026-01-12",
            stage="candidates",
            suffix="trec",
            content=trec("hybrid-candidates", candidates),
            config=hybrid,
        ),
        MadeRun(
            name="hybrid-context",
            system="hybrid",
            version="2",
            date="2026-01-12",
            stage="context",
            k=RERANKED_DEPTH,
            suffix="jsonl",
            content=context,
            config=hybrid | reranker | packing,
        ),
        # Last, since the run of a system that was imported last is the one that its name stands for.
        MadeRun(
            name="hybrid",
            system="hybrid",
            version="2",
            date="2026-01-12",
            k=RERANKED_DEPTH,
            suffix="trec",
            content=trec("hybrid", best),
            config=hybrid | reranker,
        ),
    ]


def document_titles(folder: Path) -> dict[str, str]:
    """The title of each parent document by its ID, from the head of its file."""
    found = {}
    for path in (folder / "handbook").glob("*.md"):
        title = re.search(r"^title: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert title is not None, f"{path} has no title"
        found[path.stem] = title[1]
    return found


def write_runs(runs: list[MadeRun], folder: Path) -> None:
    """Writes each run, its configuration, and `runs.json`, the list of them all."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for run in runs:
        file, config = f"{run.name}.{run.suffix}", f"{run.name}.config.json"
        write(folder / file, run.content)
        write(folder / config, json.dumps(run.config, ensure_ascii=False, indent=2) + "\n")
        listed.append(
            {
                "run": run.name,
                "system": run.system,
                "version": run.version,
                "date": run.date,
                "stage": run.stage,
                "k": run.k,
                "missing": "empty",  # a TREC file cannot say that nothing was found, as bm25-tuned does once
                "file": file,
                "config": config,
            }
        )
    write(folder / "runs.json", json.dumps(listed, indent=2) + "\n")


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_runs(all_runs(), Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO / "runs")

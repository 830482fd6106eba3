"""From text to the arrays of scoring, and obvious, slow twins of every measure to check the quick ones against."""

import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scoring.classes import NO_GROUPS, Groups, Labels, Rankings, Truth, build_truth, groups
from scoring.matching import match
from scoring.measures import parse_measures
from scoring.scores import Questions, Rules, RunScores, plan_questions, score_graded

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Sequence[str]]


class World(NamedTuple):
    """Ids turned into numbers, and what the labels say."""

    questions: Questions
    chunks: dict[str, int]
    labels: Labels
    classes: Groups
    cuts: Groups
    truth: Truth

    def rankings(self, run: Run) -> Rankings:
        ranked = [
            (self.questions.ids.index(q), [self.number(c) for c in chunks]) for q, chunks in run.items()
        ]
        ends = np.cumsum([0, *(len(chunks) for _, chunks in ranked)])
        flat = [c for _, chunks in ranked for c in chunks]
        return Rankings(
            np.array([q for q, _ in ranked], dtype=np.int64), ends, np.array(flat, dtype=np.int64)
        )

    def number(self, chunk: str) -> int:
        return self.chunks.setdefault(chunk, len(self.chunks))


def world(
    qrels: Qrels,
    *,
    classes: Sequence[Sequence[str]] = (),
    documents: Mapping[str, Sequence[str]] | None = None,
    cuts: Mapping[str, str] | None = None,
    unanswerable: Sequence[str] = (),
    slices: Mapping[str, Sequence[str]] | None = None,
    extra_questions: Sequence[str] = (),
    pooled: Sequence[tuple[str, str]] = (),
) -> World:
    ids = tuple(dict.fromkeys([*qrels, *extra_questions]))
    place = {question: number for number, question in enumerate(ids)}
    chunks: dict[str, int] = {}

    def number(chunk: str) -> int:
        return chunks.setdefault(chunk, len(chunks))

    rows = [(place[q], number(c), grade) for q, known in qrels.items() for c, grade in known.items()]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    labels = Labels(table[:, 0], table[:, 1], table[:, 2])
    grouped = _groups([[number(c) for c in members] for members in classes])
    parents = None
    if documents is not None:
        parents = _groups([[number(c) for c in members] for members in documents.values()])
    unjudged = None
    if pooled:
        unjudged = (
            np.array([place[q] for q, _ in pooled]),
            np.array([number(c) for _, c in pooled]),
        )
    cut_from = sorted((number(cut), number(whole)) for cut, whole in (cuts or {}).items())
    cut = Groups(*np.array(cut_from, dtype=np.int64).reshape(-1, 2).T)
    truth = build_truth(
        labels, questions=len(ids), classes=grouped, documents=parents, cuts=cut, pooled=unjudged
    )
    questions = Questions(
        ids,
        np.array([q not in unanswerable for q in ids], dtype=bool),
        tuple(tuple((slices or {}).get(q, ())) for q in ids),
    )
    return World(questions, chunks, labels, grouped, cut, truth)


def _groups(members: Sequence[Sequence[int]]) -> Groups:
    if not members:
        return NO_GROUPS
    return groups([c for one in members for c in one], [n for n, one in enumerate(members) for _ in one])


def score(known: World, run: Run, measures: Sequence[str], *, common: bool = False, **rules) -> RunScores:
    """Score one run given as text; the rules are those of `Rules`."""
    asked, how, rankings = parse_measures(measures), Rules(**rules), known.rankings(run)
    plan = plan_questions(known.truth, known.questions, asked, how, {"run": rankings.question}, common=common)
    return score_graded(known.truth, plan, match(known.truth, rankings), asked, how)


def by_question(known: World, scores: RunScores, measure: str) -> dict[str, float]:
    (asked,) = parse_measures([measure])
    ids = [known.questions.ids[n] for n in scores.questions]
    return dict(zip(ids, scores.column(asked).tolist(), strict=True))


# The slow twins. Each takes one question's ranking and labels, and does what the definition says.


def stand_for(ranking: Sequence[str], labels: Mapping[str, int], classes: Sequence[Sequence[str]] = ()):
    """Return the grade of each entry (None: unjudged, -1: a class again) and the grade of each unit."""
    unit = {member: f"class {n}" for n, members in enumerate(classes) for member in members}
    grades: dict[str, int] = {}
    for chunk, grade in labels.items():
        name = unit.get(chunk, chunk)
        grades[name] = max(grade, grades.get(name, 0))
    seen, entries = set(), []
    for chunk in ranking:
        name = unit.get(chunk, chunk)
        if name not in grades:
            entries.append(None)
        elif name in seen:
            entries.append(-1)
        else:
            seen.add(name)
            entries.append(grades[name])
    return entries, sorted(grades.values(), reverse=True)


def twin(
    name: str, k: int | None, entries, grades, *, threshold: int = 1, gain: str = "exponential"
) -> float:
    """Return one measure of one question, slowly, from what `stand_for` returns."""
    top = entries if k is None else entries[:k]
    hits = [entry is not None and entry >= threshold for entry in top]
    relevant = sum(grade >= threshold for grade in grades)
    if name == "Recall":
        return sum(hits) / relevant
    if name == "P":
        return sum(hits) / k
    if name == "Success":
        return float(any(hits))
    if name == "RR":
        return next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)
    if name == "AP":
        return sum(sum(hits[:rank]) / rank for rank, hit in enumerate(hits, 1) if hit) / relevant
    if name == "nDCG":
        worth = (lambda g: 2**g - 1) if gain == "exponential" else (lambda g: g)
        got = sum(worth(max(entry or 0, 0)) / math.log2(rank + 1) for rank, entry in enumerate(top, 1))
        ideal = grades if k is None else grades[:k]
        return got / sum(worth(grade) / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    if name == "Judged":
        return sum(entry is not None for entry in top) / len(top) if top else 1.0
    if name == "Bpref":
        return _bpref(hits, top, relevant, len(grades) - relevant)
    raise ValueError(name)


def _bpref(hits, top, relevant: int, rejected: int) -> float:
    total, above = 0.0, 0
    for hit, entry in zip(hits, top, strict=True):
        if hit:
            total += 1 - min(above, relevant) / min(relevant, rejected) if above else 1
        elif entry is not None and entry >= 0:
            above += 1
    return total / relevant


# Reading what is published, in the order that trec_eval sees.


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    known: dict[str, dict[str, int]] = {}
    for line in _lines(path):
        fields = line.split()
        if len(fields) == 3 and fields[0] == "query-id":
            continue
        question, chunk, grade = (fields[0], fields[-2], fields[-1])
        known.setdefault(question, {})[chunk] = int(grade)
    return known


def read_run(path: Path, *, trec_eval_order: bool = True) -> dict[str, list[str]]:
    """Return the rankings; trec_eval breaks ties by document id descending, we keep the rank of the file."""
    entries: dict[str, list[tuple[float, str, int]]] = {}
    for number, line in enumerate(_lines(path)):
        question, _, chunk, _, value, _ = line.split()
        entries.setdefault(question, []).append((float(value), chunk, number))
    ordered = {}
    for question, rows in entries.items():
        if trec_eval_order:
            rows.sort(key=lambda row: row[1], reverse=True)
        rows.sort(key=lambda row: -row[0])
        ordered[question] = [chunk for _, chunk, _ in rows]
    return ordered


def _lines(path: Path) -> list[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [line for line in file if line.strip() and not line.startswith("#")]

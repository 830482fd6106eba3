"""The entries of a run as columns, and the one order they are brought into."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .faults import Findings

Order = Literal["score", "rank"]
Duplicates = Literal["refuse", "keep-first"]

# A rank beyond this and beyond twice the length of its ranking is hardly a rank.
LARGEST_USUAL_RANK = 1_000


@dataclass
class Entries:
    """One row an entry. `question` and `chunk` are positions in `questions` and `vocabulary`.

    `rank` and `score` are NaN where the file has none; `line` is the line an entry stands on.
    """

    questions: pa.Array
    vocabulary: pa.Array
    question: NDArray[np.int32]
    chunk: NDArray[np.int32]
    rank: NDArray[np.float64]
    score: NDArray[np.float64]
    line: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.question)


class EntryBuilder:
    """Collects entries one by one."""

    def __init__(self) -> None:
        self._questions: dict[str, int] = {}
        self._vocabulary: dict[str, int] = {}
        self._question = array("i")
        self._chunk = array("i")
        self._rank = array("d")
        self._score = array("d")
        self._line = array("q")

    def __len__(self) -> int:
        return len(self._question)

    def add(self, question: str, chunk: str, *, rank: float | None, score: float | None, line: int) -> None:
        self._question.append(self._questions.setdefault(question, len(self._questions)))
        self._chunk.append(self._vocabulary.setdefault(chunk, len(self._vocabulary)))
        self._rank.append(np.nan if rank is None else rank)
        self._score.append(np.nan if score is None else score)
        self._line.append(line)

    def entries(self) -> Entries:
        return Entries(
            questions=pa.array(list(self._questions), pa.string()),
            vocabulary=pa.array(list(self._vocabulary), pa.string()),
            question=np.frombuffer(self._question, np.int32) if self._question else np.empty(0, np.int32),
            chunk=np.frombuffer(self._chunk, np.int32) if self._chunk else np.empty(0, np.int32),
            rank=np.array(self._rank, np.float64),
            score=np.array(self._score, np.float64),
            line=np.array(self._line, np.int64),
        )


def join(parts: Sequence[Entries]) -> Entries:
    """Several parts of one file as one, the vocabularies united in order of first appearance."""
    if not parts:
        return EntryBuilder().entries()
    if len(parts) == 1:
        return parts[0]
    questions, question = unite([(part.questions, part.question) for part in parts])
    vocabulary, chunk = unite([(part.vocabulary, part.chunk) for part in parts])
    return Entries(
        questions=questions,
        vocabulary=vocabulary,
        question=question,
        chunk=chunk,
        rank=np.concatenate([part.rank for part in parts]),
        score=np.concatenate([part.score for part in parts]),
        line=np.concatenate([part.line for part in parts]),
    )


def unite(parts: Sequence[tuple[pa.Array, NDArray[np.int32]]]) -> tuple[pa.Array, NDArray[np.int32]]:
    coded = pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pa.array(codes), names) for names, codes in parts]
    )
    united = coded.unify_dictionaries().combine_chunks()
    if isinstance(united, pa.ChunkedArray):
        united = united.chunk(0)
    return united.dictionary, united.indices.to_numpy()


@dataclass
class Arranged:
    """`rows` lists the kept entries question by question in their final order.

    The ranking of the i-th question that has entries is `rows[starts[i]:starts[i + 1]]`; `question` holds
    the position of its question.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    question: NDArray[np.int32]


def arrange(entries: Entries, *, order: Order, duplicates: Duplicates, findings: Findings) -> Arranged:
    """Bring entries into the order the user would have seen.

    By score, highest first; equal scores by rank, lowest first; then by line. With `order="rank"` the rank
    comes first. Without scores the rank decides, without ranks the line. A chunk twice in a ranking is a fault,
    or with `duplicates="keep-first"` only its first place stays.
    """
    rank_missing = np.isnan(entries.rank)
    if order == "rank" and rank_missing.any():
        for row in np.flatnonzero(rank_missing)[:1]:
            findings.faults.add(
                "rank",
                line=int(entries.line[row]),
                expected="a rank on every entry, since the order by rank was asked for",
                count=int(rank_missing.sum()),
            )
    first = -np.nan_to_num(entries.score, nan=0.0)
    second = np.where(rank_missing, 0.0, entries.rank)
    if order == "rank":
        first, second = second, first

    rows = np.arange(len(entries), dtype=np.int64)
    if np.any(np.diff(entries.question) < 0):
        rows = np.argsort(entries.question, kind="stable").astype(np.int64)
    rows = sort_within_questions(rows, entries.question, first, second)
    warn_of_ranks(entries, rows, order, findings)
    rows = without_duplicates(rows, entries, duplicates, findings)
    warn_of_ties(entries, rows, findings)
    question = entries.question[rows]
    changes = np.flatnonzero(np.diff(question)) + 1
    starts = np.concatenate(([0], changes, [len(rows)])) if len(rows) else np.zeros(1, np.int64)
    return Arranged(rows=rows, starts=starts.astype(np.int64), question=question[starts[:-1]])


def sort_within_questions(
    rows: NDArray[np.int64],
    question: NDArray[np.int32],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> NDArray[np.int64]:
    """`rows`, grouped by question, sorted by the two keys within each; only what is out of order is sorted."""
    grouped = question[rows]
    a, b = first[rows], second[rows]
    same = grouped[1:] == grouped[:-1]
    fine = (a[:-1] < a[1:]) | ((a[:-1] == a[1:]) & (b[:-1] <= b[1:]))
    wrong = np.flatnonzero(same & ~fine)
    if not len(wrong):
        return rows
    changes = np.flatnonzero(~same) + 1
    starts = np.concatenate(([0], changes, [len(rows)]))
    rows = rows.copy()
    for segment in np.unique(np.searchsorted(starts, wrong, side="right") - 1):
        part = slice(starts[segment], starts[segment + 1])
        rows[part] = rows[part][np.lexsort((b[part], a[part]))]
    return rows


def without_duplicates(
    rows: NDArray[np.int64], entries: Entries, duplicates: Duplicates, findings: Findings
) -> NDArray[np.int64]:
    """`rows` without the later places of a chunk in one ranking."""
    pair = entries.question[rows].astype(np.int64) * max(1, len(entries.vocabulary)) + entries.chunk[rows]
    in_order = np.sort(pair)
    if not np.any(in_order[1:] == in_order[:-1]):
        return rows
    by_pair = np.argsort(pair, kind="stable")  # stable: the first place of a pair comes first
    sorted_pair = pair[by_pair]
    later = np.flatnonzero(sorted_pair[1:] == sorted_pair[:-1]) + 1
    starts = np.flatnonzero(np.concatenate(([True], sorted_pair[1:] != sorted_pair[:-1])))
    kept = starts[np.searchsorted(starts, later, side="right") - 1]
    for at, first_at in zip(by_pair[later], by_pair[kept], strict=True):
        row, first_row = rows[at], rows[first_at]
        chunk = entries.vocabulary[int(entries.chunk[row])].as_py()
        name = entries.questions[int(entries.question[row])].as_py()
        if duplicates == "keep-first":
            collector, kind, expected = findings.warnings, "duplicates-dropped", "kept: line"
        else:
            collector, kind, expected = (
                findings.faults,
                "duplicate-chunk",
                "each chunk once a ranking (an option keeps the first place); it is also on line",
            )
        if not collector.has_room(kind):
            collector.add(kind, count=len(later) - collector.count(kind))
            break
        collector.add(
            kind,
            line=int(entries.line[row]),
            field=f"question {name}",
            value=chunk,
            expected=f"{expected} {int(entries.line[first_row])}",
        )
    keep = np.ones(len(rows), bool)
    keep[by_pair[later]] = False
    return rows[keep]


def warn_of_ranks(entries: Entries, rows: NDArray[np.int64], order: Order, findings: Findings) -> None:
    question, rank, score = entries.question[rows], entries.rank[rows], entries.score[rows]
    same = question[1:] == question[:-1]
    if order == "score":
        against = same & (rank[1:] < rank[:-1]) & (score[1:] < score[:-1])
        says = "by score this entry comes later than one of rank {:g}"
    else:
        against = same & (score[1:] > score[:-1]) & (rank[1:] > rank[:-1])
        says = "by rank this entry comes later than one of rank {:g} with a lower score"
    places = np.flatnonzero(against)
    if len(places):
        questions = len(np.unique(question[places]))
        for at in places[:20]:
            findings.warnings.add(
                "rank-contradicts-score",
                line=int(entries.line[rows[at + 1]]),
                field=f"question {entries.questions[int(question[at])].as_py()}",
                value=f"rank {rank[at + 1]:g}, score {score[at + 1]:g}",
                expected=f"{says.format(rank[at])}; the {order} was followed, on {questions} questions in all",
            )
        if len(places) > 20:
            findings.warnings.add("rank-contradicts-score", count=len(places) - 20)

    length = np.bincount(question, minlength=len(entries.questions))[question] if len(rows) else np.empty(0)
    with np.errstate(invalid="ignore"):
        odd = (rank < 0) | (rank != np.floor(rank)) | (rank > np.maximum(LARGEST_USUAL_RANK, 2 * length))
    places = np.flatnonzero(odd & ~np.isnan(rank))
    for at in places[:20]:
        findings.warnings.add(
            "rank-suspicious",
            line=int(entries.line[rows[at]]),
            field="rank",
            value=f"{rank[at]:g}",
            expected="a small whole number; a space inside an ID shifts the columns",
        )
    if len(places) > 20:
        findings.warnings.add("rank-suspicious", count=len(places) - 20)


def warn_of_ties(entries: Entries, rows: NDArray[np.int64], findings: Findings) -> None:
    question, score = entries.question[rows], entries.score[rows]
    equal = (question[1:] == question[:-1]) & (score[1:] == score[:-1])
    if not equal.any():
        return
    tied = np.zeros(len(rows), bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    count = int(tied.sum())
    questions = len(np.unique(question[tied]))
    findings.warnings.add(
        "ties",
        line=int(entries.line[rows[np.argmax(tied)]]),
        field="score",
        value=f"{count} of {len(rows)} scores tied on {questions} of {len(np.unique(question))} questions",
        expected="within a tie the order comes from the rank column, then from the order of the lines",
        count=count,
    )

"""The demo's full ground truth: reads relevance.txt, writes qrels.txt.

`relevance.txt` lists what is relevant; every other chunk was found irrelevant (grade 0). `qrels.txt` holds a line for
each relevant pair and for each pair that a run of the demo has within its first 20.

    python -m demo.ground_truth
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parent
DEPTH = 20

Record = dict[str, Any]


@dataclass(frozen=True)
class Relevance:
    """A grade of 1 or more, and the IDs of the question's required facts that the chunk supports."""

    grade: int
    facts: tuple[str, ...] = ()


def read_jsonl(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_relevance(path: Path = DEMO / "relevance.txt") -> dict[str, dict[str, Relevance]]:
    """By question, by chunk: what is relevant. A question without an answer has an empty entry."""
    found: dict[str, dict[str, Relevance]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        first, *rest = line.split()
        if not rest:
            question = first
            assert question not in found, f"{question} stands twice in {path}"
            found[question] = {}
        else:
            chunk, *facts = rest
            assert chunk not in found[question], f"{chunk} stands twice under {question} in {path}"
            found[question][chunk] = Relevance(int(first), tuple(f"{question}.{fact}" for fact in facts))
    return found


def read_rankings(path: Path) -> dict[str, list[str]]:
    """A run file of the demo (TREC or JSONL): by question the chunk IDs in their order."""
    rankings: dict[str, list[str]] = {}
    if path.suffix == ".jsonl":
        return {record["qid"]: [result["id"] for result in record["results"]] for record in read_jsonl(path)}
    for line in path.read_text(encoding="utf-8").splitlines():
        question, _, chunk, *_ = line.split()
        rankings.setdefault(question, []).append(chunk)
    return rankings


def run_files(folder: Path = DEMO / "runs") -> list[Path]:
    """The run files in the order of `runs.json`: the oldest first."""
    return [folder / run["file"] for run in json.loads((folder / "runs.json").read_text(encoding="utf-8"))]


def qrels_lines() -> list[str]:
    """The lines of qrels.txt, sorted by question and chunk."""
    relevance = read_relevance()
    grades = {(question, chunk): r.grade for question, row in relevance.items() for chunk, r in row.items()}
    for path in run_files():
        for question, chunks in read_rankings(path).items():
            for chunk in chunks[:DEPTH]:
                grades.setdefault((question, chunk), 0)
    return [f"{question} 0 {chunk} {grade}\n" for (question, chunk), grade in sorted(grades.items())]


if __name__ == "__main__":
    (DEMO / "qrels.txt").write_text("".join(qrels_lines()), encoding="utf-8", newline="\n")

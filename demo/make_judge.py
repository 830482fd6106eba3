"""Writes what an outside judge says: a rule that counts shared words, run twice, of each pair in the old pool.

    python -m demo.make_judge

The rule is a stand-in for a language model: mostly right, too generous where a passage only uses the question's words,
and not always of the same mind (the second time it counts a word stem as it falls). It is there to be compared with
people.
"""

import random
import re
from pathlib import Path

from demo.ground_truth import DEMO, read_jsonl
from demo.story import pool_labels

FILES = [DEMO / "judge-1.qrels", DEMO / "judge-2.qrels"]
CHANGES_ITS_MIND = 0.06


def words(text: str) -> set[str]:
    """The longer words of a text, cut to their first five letters."""
    return {word[:5] for word in re.findall(r"[^\W\d_]{4,}", text.casefold())}


def grade(question: str, chunk: str, truth: int, draw: random.Random) -> int:
    """The true grade where the rule is lucky; else by the share of the question's words that the chunk has."""
    asked = words(question)
    share = len(asked & words(chunk)) / max(1, len(asked))
    by_words = 0 if share < 0.5 else 1 if share < 0.75 else 2
    return truth if draw.random() < 0.75 else by_words


def grades() -> list[dict[tuple[str, str], int]]:
    """What the rule says each time, by (question, chunk)."""
    questions = {record["id"]: record["text"] for record in read_jsonl(DEMO / "questions.jsonl")}
    chunks = {record["id"]: record["text"] for record in read_jsonl(DEMO / "chunks.jsonl")}
    first, second = {}, {}
    for (question, chunk), truth in sorted(pool_labels().items()):
        draw = random.Random(f"judge {question} {chunk}")
        said = grade(questions[question], chunks[chunk], truth, draw)
        first[question, chunk] = said
        other = max(0, said - 1) if said else 1
        second[question, chunk] = other if draw.random() < CHANGES_ITS_MIND else said
    return [first, second]


def write(path: Path, said: dict[tuple[str, str], int]) -> None:
    lines = [f"{question} 0 {chunk} {grade}\n" for (question, chunk), grade in said.items()]
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for path, said in zip(FILES, grades(), strict=True):
        write(path, said)

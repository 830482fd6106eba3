"""The demo's data keep the promises of demo/README.md."""

import datetime
import json
import re
import unicodedata

import pytest

from demo import make_judge
from demo.ground_truth import DEMO, qrels_lines, read_jsonl, read_rankings, read_relevance, run_files
from demo.make_chunks import all_chunks

CHUNKS = {chunk["id"]: chunk for chunk in read_jsonl(DEMO / "chunks.jsonl")}
QUESTIONS = {question["id"]: question for question in read_jsonl(DEMO / "questions.jsonl")}
VERDICTS = read_jsonl(DEMO / "pair-verdicts.jsonl")
RELEVANCE = read_relevance()


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _plain(text: str) -> str:
    """The text without case, punctuation and extra space."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def test_counts():
    assert len(CHUNKS) == 198
    assert len(QUESTIONS) == 60
    assert sum(not question.get("answerable", True) for question in QUESTIONS.values()) == 5
    assert {question["split"] for question in QUESTIONS.values()} == {"dev", "holdout"}


def test_ids_are_unique():
    assert len(read_jsonl(DEMO / "chunks.jsonl")) == len(CHUNKS)
    assert len(read_jsonl(DEMO / "questions.jsonl")) == len(QUESTIONS)


def test_the_committed_chunks_are_those_of_the_handbook():
    assert all_chunks() == list(CHUNKS.values())


@pytest.mark.parametrize("chunk", CHUNKS.values(), ids=lambda chunk: chunk["id"])
def test_a_chunk_is_its_span_of_the_parent(chunk):
    parent = (DEMO / "handbook" / f"{chunk['doc_id']}.md").read_text(encoding="utf-8")
    assert parent[chunk["start"] : chunk["end"]] == chunk["text"]


def test_lengths_vary():
    words = sorted(len(chunk["text"].split()) for chunk in CHUNKS.values())
    assert words[0] < 15
    assert sum(count > 150 for count in words) >= 6
    assert max(len(chunk["text"]) for chunk in CHUNKS.values()) > 10_000


def test_odd_texts_are_there():
    assert "<script>" in CHUNKS["app#08"]["text"]
    assert "| part | name |" in CHUNKS["parts#02"]["text"]
    assert any(line.startswith("- ") for line in CHUNKS["tide#03"]["text"].splitlines())
    letters = CHUNKS["languages#01"]["text"]
    assert {unicodedata.bidirectional(letter) for letter in letters} >= {"L", "R", "AL"}
    assert any(unicodedata.combining(letter) for letter in letters)
    assert unicodedata.normalize("NFC", letters) != letters


def test_some_chunks_are_for_some_eyes_only():
    scopes = {chunk.get("scope") for chunk in CHUNKS.values()}
    assert scopes == {None, "staff", "installer"}
    assert {question.get("scope") for question in QUESTIONS.values()} == scopes


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("returns-2023", "returns-2025"),
        ("share-2024", "share-2025"),
        ("warranty-2022", "warranty-2025"),
    ],
)
def test_an_edition_ends_the_day_before_the_next_begins(older, newer):
    ends = {chunk["effective_to"] for chunk in CHUNKS.values() if chunk["doc_id"] == older}
    begins = {chunk["effective_from"] for chunk in CHUNKS.values() if chunk["doc_id"] == newer}
    (end,), (begin,) = ends, begins
    assert _day(end) + datetime.timedelta(days=1) == _day(begin)
    assert not any("effective_to" in chunk for chunk in CHUNKS.values() if chunk["doc_id"] == newer)


def test_a_group_lies_in_one_split():
    splits: dict[str, set[str]] = {}
    for question in QUESTIONS.values():
        if "group" in question:
            splits.setdefault(question["group"], set()).add(question["split"])
    assert len(splits) == 4
    assert all(len(found) == 1 for found in splits.values())


def test_every_slice_has_several_questions():
    counts: dict[str, int] = {}
    for question in QUESTIONS.values():
        for name in question["slices"]:
            counts[name] = counts.get(name, 0) + 1
    assert min(counts.values()) >= 2
    assert counts["unanswerable"] == 5
    assert {"exact-identifier", "multi-source", "policy-version", "paraphrase"} <= set(counts)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda question: question["id"])
def test_ground_truth_of_a_question(question):
    relevant = RELEVANCE[question["id"]]
    assert set(relevant) <= set(CHUNKS)
    assert {entry.grade for entry in relevant.values()} <= {1, 2, 3}
    if question.get("answerable", True):
        assert max(entry.grade for entry in relevant.values()) == 3
    else:
        assert not relevant
    facts = {fact["id"] for fact in question.get("facts", [])}
    supported = {fact for entry in relevant.values() for fact in entry.facts}
    assert supported == facts, "each required fact is supported by some chunk, and no other is named"


def test_relevance_knows_every_question_and_no_other():
    assert list(RELEVANCE) == list(QUESTIONS)


def test_a_chunk_in_force_and_allowed_answers_every_answerable_question():
    for name, relevant in RELEVANCE.items():
        question = QUESTIONS[name]
        day = question.get("effective_date", "2025-10-01")
        best = [
            chunk
            for chunk, entry in relevant.items()
            if entry.grade == 3
            and CHUNKS[chunk].get("effective_from", day) <= day <= CHUNKS[chunk].get("effective_to", day)
            and CHUNKS[chunk].get("scope") in (None, question.get("scope"))
        ]
        assert bool(best) == question.get("answerable", True), name


def test_copies_have_the_same_grades():
    for verdict in VERDICTS:
        if verdict["verdict"] == "same":
            for name, relevant in RELEVANCE.items():
                grades = [relevant[verdict[side]].grade if verdict[side] in relevant else 0 for side in SIDES]
                assert grades[0] == grades[1], f"{name}: {verdict['first']} and {verdict['second']}"


SIDES = ("first", "second")


def test_copies_are_copies():
    same = [verdict for verdict in VERDICTS if verdict["verdict"] == "same"]
    texts = [[CHUNKS[verdict[side]]["text"] for side in SIDES] for verdict in same]
    assert len(same) == 9
    assert sum(first == second for first, second in texts) == 3
    equal_but_for_form = [
        verdict["second"]
        for verdict, (first, second) in zip(same, texts, strict=True)
        if first != second and _plain(first) == _plain(second)
    ]
    assert equal_but_for_form == ["faq#05", "faq#06"]


def test_one_thing_decides_between_near_duplicates():
    by_pair = {(verdict["first"], verdict["second"]): verdict["verdict"] for verdict in VERDICTS}
    for first, second in [("error-codes#05", "error-codes#06"), ("install#02", "install#03")]:
        assert by_pair[first, second] == "different"
        words = [set(_plain(CHUNKS[chunk]["text"]).split()) for chunk in (first, second)]
        assert 0.8 < len(words[0] & words[1]) / len(words[0] | words[1]) < 1


def test_an_older_edition_with_the_same_words_is_not_a_copy():
    identical = [
        (verdict["first"], verdict["second"])
        for verdict in VERDICTS
        if verdict["verdict"] == "first-newer"
        and CHUNKS[verdict["first"]]["text"] == CHUNKS[verdict["second"]]["text"]
    ]
    assert identical == [("returns-2025#05", "returns-2023#05"), ("warranty-2025#04", "warranty-2022#04")]


def test_qrels_are_those_of_the_ground_truth_and_the_runs():
    assert (DEMO / "qrels.txt").read_text(encoding="utf-8") == "".join(qrels_lines())


def test_the_outside_judges_files_are_those_of_its_rule(tmp_path):
    for file, said in zip(make_judge.FILES, make_judge.grades(), strict=True):
        make_judge.write(tmp_path / file.name, said)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_qrels_hold_every_pair_of_the_first_twenty_and_zeros():
    qrels = {}
    for line in (DEMO / "qrels.txt").read_text(encoding="utf-8").splitlines():
        question, _, chunk, grade = line.split()
        qrels[question, chunk] = int(grade)
    for path in run_files():
        for question, chunks in read_rankings(path).items():
            assert all((question, chunk) in qrels for chunk in chunks[:20])
    assert set(qrels.values()) == {0, 1, 2, 3}
    assert qrels["q31", "install#03"] == 0, "the other model's clearance does not answer"


def test_files_are_plain_text_with_line_feeds():
    for path in [*DEMO.glob("*.jsonl"), *DEMO.glob("*.txt"), *(DEMO / "runs").iterdir()]:
        data = path.read_bytes()
        assert b"\r" not in data
        assert data.endswith(b"\n")
        if path.suffix == ".jsonl":
            assert all(isinstance(json.loads(line), dict) for line in data.splitlines())

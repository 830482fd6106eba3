"""The formats of each kind of import, in one table that pages, commands and the documentation show."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["questions", "chunks", "run", "qrels", "verdicts", "judge"]


class Format(NamedTuple):
    name: str
    description: str
    example: str


FORMATS: dict[Kind, tuple[Format, ...]] = {
    "questions": (
        Format(
            "jsonl",
            "One JSON object a line: _id (or id, qid), text (or query, question); optional narrative, slices, "
            "split, answerable, group, scope, effective_date, facts.",
            '{"id": "q1", "text": "How long do refunds take?", "slices": ["billing"], "split": "dev"}',
        ),
        Format(
            "beir",
            "BEIR queries.jsonl.",
            '{"_id": "q1", "text": "How long do refunds take?", "metadata": {}}',
        ),
        Format("tsv", "ID, tab, text. Quotes are ordinary characters.", "q1\tHow long do refunds take?"),
        Format(
            "csv",
            "Comma-separated with a header line; quoting as in RFC 4180. Without an ID column IDs are made from the "
            "text.",
            'id,text\nq1,"Refunds, how long do they take?"',
        ),
        Format(
            "trec",
            "TREC topics as TREC writes them, tags unclosed.",
            "<top>\n<num> Number: 301\n<title> refund time\n<desc> Description:\nHow long do refunds take?\n</top>",
        ),
        Format(
            "trec-xml",
            "TREC topics in XML.",
            '<topics><topic number="1"><query>refund time</query></topic></topics>',
        ),
    ),
    "chunks": (
        Format(
            "jsonl",
            "One JSON object a line: _id (or id), text; optional title, metadata, doc_id, url, revision, start, end, "
            "effective_from, effective_to, scope.",
            '{"id": "c1", "text": "Refunds take 14 days.", "doc_id": "refunds"}',
        ),
        Format(
            "beir", "BEIR corpus.jsonl.", '{"_id": "c1", "title": "Refunds", "text": "Refunds take 14 days."}'
        ),
        Format("tsv", "ID, tab, text; the text may hold more tabs.", "c1\tRefunds take 14 days."),
        Format("tsv-title", "ID, tab, title, tab, text.", "c1\tRefunds\tRefunds take 14 days."),
        Format(
            "csv",
            "Comma-separated with a header line; quoting as in RFC 4180.",
            "id,text\nc1,Refunds take 14 days.",
        ),
    ),
    "run": (
        Format(
            "trec",
            "Six columns split at any run of spaces and tabs: question, Q0, chunk, rank, score, tag.",
            "q1 Q0 c1 1 12.5 bm25",
        ),
        Format(
            "jsonl",
            "One ranking a line; results may be empty, a score may be left out (then the list's order counts).",
            '{"qid": "q1", "results": [{"id": "c1", "score": 12.5}]}',
        ),
        Format("json", "One object of objects: question, chunk, score.", '{"q1": {"c1": 12.5, "c2": 11.0}}'),
        Format(
            "msmarco",
            "Three columns: question, chunk, rank. Never guessed: name this format to use it.",
            "q1\tc1\t1",
        ),
        Format(
            "csv",
            "Comma-separated with a header line that names question, chunk and score or rank (or both).",
            "qid,docid,rank,score\nq1,c1,1,12.5",
        ),
    ),
    "qrels": (
        Format("trec", "Four columns: question, ignored, chunk, grade.", "q1 0 c1 2"),
        Format(
            "beir",
            "Tab-separated with the header query-id, corpus-id, score.",
            "query-id\tcorpus-id\tscore\nq1\tc1\t2",
        ),
        Format(
            "json",
            "Label JSON as Fairpool writes it: a list of records.",
            '[{"id": "q1", "grades": {"c1": 2}}]',
        ),
        Format(
            "jsonl",
            "Label JSONL as Fairpool writes it, one question a line; or one pair a line: question, chunk, grade.",
            '{"id": "q1", "grades": {"c1": 2}}',
        ),
        Format(
            "csv",
            "Comma-separated with a header line that names question, chunk and grade.",
            "question,chunk,grade\nq1,c1,2",
        ),
    ),
    "verdicts": (
        Format(
            "jsonl",
            "The remainder file with its answers: a grade, or cannot_judge with the reason; note and seconds are "
            "optional. A line with neither stays open.",
            '{"question_id": "q1", "chunk_id": "c1", "grade": 2, "note": ""}',
        ),
    ),
}

# What an outside judge said comes in the forms of labels.
FORMATS["judge"] = FORMATS["qrels"]


def format_names(kind: Kind) -> list[str]:
    return [known.name for known in FORMATS[kind]]

"""The names under which the columns of CSV, TSV and the keys of JSON records are known."""

from __future__ import annotations

from collections.abc import Sequence

# our name -> the names it goes by in files, the first is the one we write
Columns = dict[str, tuple[str, ...]]

QUESTION_NAMES = ("qid", "query_id", "query-id", "question_id", "question-id", "topic")
CHUNK_NAMES = (
    "docid",
    "doc_id",
    "chunk_id",
    "chunk-id",
    "corpus-id",
    "corpus_id",
    "docno",
    "pid",
    "passage_id",
)

QUESTION_COLUMNS: Columns = {
    "id": ("id", "_id", *QUESTION_NAMES),
    "text": ("text", "query", "question", "title"),
    "narrative": ("narrative",),
    "slices": ("slices", "slice"),
    "split": ("split",),
    "answerable": ("answerable",),
    "group": ("group",),
    "scope": ("scope",),
    "effective_date": ("effective_date",),
    "facts": ("facts",),
    "metadata": ("metadata",),
}
CHUNK_COLUMNS: Columns = {
    "id": ("id", "_id", "chunk_id", "docid", "docno", "pid", "passage_id"),
    "text": ("text", "contents", "content", "passage", "body"),
    "title": ("title",),
    "metadata": ("metadata",),
    "doc_id": ("doc_id", "parent", "parent_id"),
    "url": ("url",),
    "revision": ("revision",),
    "start": ("start",),
    "end": ("end",),
    "effective_from": ("effective_from",),
    "effective_to": ("effective_to",),
    "scope": ("scope",),
}
RUN_COLUMNS: Columns = {
    "question": (*QUESTION_NAMES, "question", "query"),
    "chunk": (*CHUNK_NAMES, "chunk", "id"),
    "rank": ("rank", "position"),
    "score": ("score", "sim", "similarity"),
    "tag": ("tag", "system", "run", "run_id"),
}
QRELS_COLUMNS: Columns = {
    "question": (*QUESTION_NAMES, "question", "query"),
    "chunk": (*CHUNK_NAMES, "chunk", "id"),
    "grade": ("grade", "score", "label", "relevance", "rel", "rating"),
    "from_model": ("from_model",),
}

COLUMNS: dict[str, Columns] = {
    "questions": QUESTION_COLUMNS,
    "chunks": CHUNK_COLUMNS,
    "run": RUN_COLUMNS,
    "qrels": QRELS_COLUMNS,
}

# without these a header is not taken for one
NEEDED: dict[str, tuple[str, ...]] = {
    "questions": ("text",),
    "chunks": ("id", "text"),
    "run": ("question", "chunk"),
    "qrels": ("question", "chunk", "grade"),
}


def locate(header: Sequence[str], columns: Columns) -> tuple[dict[str, int], list[str]]:
    """(our name -> position in the header, the columns that are not known).

    Names are compared without regard to case and outer blanks. The earlier alias wins where two are there.
    """
    cleaned = [name.strip().lower() for name in header]
    positions: dict[str, int] = {}
    for ours, aliases in columns.items():
        for alias in aliases:
            if alias in cleaned and cleaned.index(alias) not in positions.values():
                positions[ours] = cleaned.index(alias)
                break
    unknown = [name for at, name in enumerate(header) if at not in positions.values()]
    return positions, unknown


def is_header(fields: Sequence[str], kind: str) -> bool:
    """Whether these fields are the header of this kind of file rather than a record."""
    if kind not in COLUMNS:
        return False
    positions, _unknown = locate(fields, COLUMNS[kind])
    return all(name in positions for name in NEEDED[kind])


def columns_found(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def names_of(columns: Columns, name: str) -> str:
    return " or ".join(columns[name])

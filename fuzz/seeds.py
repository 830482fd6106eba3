"""Where the fuzzer begins: small files of every form, and the tokens they are made of."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator

import pyarrow as pa

from pooling.formats import FORMATS, REMAINDER_KEYS
from pooling.formats.catalogue import Kind
from pooling.formats.columns import COLUMNS
from pooling.formats.topics import TAGS

KINDS: dict[str, Kind] = {
    "questions": "questions",
    "chunks": "chunks",
    "run": "run",
    "qrels": "qrels",
    "known-answers": "qrels",
    "verdicts": "verdicts",
}
MORE: dict[str, tuple[str, ...]] = {
    "questions": (
        '{"_id": "q1", "query": "a", "slices": ["x"], "split": "dev", "group": "g", "effective_date": "2026-01-02", '
        '"facts": [{"id": "f1", "text": "b"}], "answerable": false, "metadata": {"n": [1, {"m": 2.5}]}}\r\n'
        '{"id": 7, "text": "b", "narrative": "c", "scope": "s", "split": "holdout", "group": "g"}\n',
        "qid,question,slices,facts,split,answerable\n"
        'q1,"a, ""b""\nc",x;y,"[{""id"": ""f"", ""text"": ""t""}]",dev,no\n',
        "<top>\n<head> x\n<num> Number: 1 </num>\n<title> Topic: a\n"
        "<desc> Description:\nb\n<narr> Narrative:\nc\n</top>\n",
        '<?xml version="1.0"?>\n<topics><topic number="1"><query>a</query><narrative>b</narrative></topic></topics>',
        "id\ttext\nq1\ta\tb\n\nq1\ta\tb\n",
    ),
    "chunks": (
        '{"_id": "c1", "title": "t", "text": "a", "metadata": {"doc_id": "d", "url": "u"}, "start": 0, "end": 5, '
        '"effective_from": "2026-01-01", "effective_to": "2026-02-01", "revision": 2}\n',
        'id,title,text,start,end,metadata\nc1,t,"a\nb",1,2,"{""k"": 1}"\n',
        "c1\tt\ta\nc2\tt\tb\n",
        "c1\ta\nc2\tb\tc\n",
    ),
    "run": (
        "# comment\nq1 Q0 c1 1 2.5 s\nq1\tQ0  c2 2 2.5 s\r\n\nq2 Q0 c1 1 -1e-3 s\n",
        "q1 Q0 c1 1 0.5 s\nq1 Q0 c1 2 0.4 s\nq2 Q0 c#1 3 1 s\nq1 Q0 ä:b/c 1 .5 s\n",
        '{"qid": "q1", "results": [{"id": "c1", "score": 1, "text": "a", "truncated": true}, '
        '{"id": 7, "score": 0.5}]}\n'
        '{"qid": "q2", "results": [], "abstained": true}\n{"qid": "q3", "results": ["c1", "c2"]}\n',
        '{"q1": {"c1": 1, "c2": 0.5},\n "q2": {}}',
        "q1 c1 1\nq1 c2 2\n",
        "query_id,docno,rank,score,run\nq1,c1,1,2.5,s\nq1,c2,2,,s\n",
    ),
    "qrels": (
        "q1 0 c1 2\nq1 0 c2 0\nq2 0 c1 -1\nq1 model c3 1.0\n",
        "query-id\tcorpus-id\tscore\nq1\tc1\t2\nq1\tc1\t2\n",
        '[\n{"id": "q1", "question": "a", "grades": {"c1": 2, "c2": 0}, "model_ids": ["c2"]},\n'
        '{"id": "q2", "grades": {}}\n]',
        '{"labels": [{"qid": 7, "grades": {"c1": 1.0}}], "release": 1}',
        '{"question": "q1", "chunk": "c1", "grade": 3}\n{"question": "q1", "chunk": "c2", "grade": "1"}\n',
        "question,chunk,grade,from_model\nq1,c1,2,no\nq1,c2,1,yes\n",
    ),
    "known-answers": ("q1 c1 2\nq1 c2 0\n", "q1 0 c1 2\n", "question,chunk,grade\nq1,c1,1\n"),
    "verdicts": (
        '{"question_id": "q1", "question": "a", "chunk_id": "c1", "text": "b", "revision": "1", "grade": null, '
        '"cannot_judge": "", "note": "", "title": "t"}\n'
        '{"question_id": "q1", "chunk_id": "c2", "grade": 2, "note": "n", "seconds": 1.5}\n'
        '{"question_id": "q1", "chunk_id": 3, "grade": null, "cannot_judge": "text-broken"}\n',
    ),
    "document": (
        '{"model": "bm25", "k1": 0.9, "nested": {"a": [1, 2.5, null, true, "\\u00e9"]}}',
        '[{"grade": 0, "name": "no", "definition": "n"}, {"grade": 1, "name": "yes", "definition": "y"}]',
    ),
    "hints": ("007\n7", "a&amp;b\nc", "1.5E+07\n15000000", "01-Feb\n1-2", "A%20b", "ﬁ"),
}
# split at blanks; what holds blanks or is no plain text stands below
PLAIN_TOKENS = """
    q1 c1 Q0 " "" \\u0000 \\ud800 \\u0041 null true -1 0 1e5 1e999 -0 NaN Infinity 9223372036854775808 2147483648 .5
    5. +1 1.0 0001-01-01 2024-W01-1 [ ] { } {} [] results grades abstained truncated seconds chunk question records
    labels item model_ids <![CDATA[ <top> </top> &#x41; &amp; &lt; <topics> <topic number= __MACOSX/ ../ .DS_Store
    ä Ã¤ é 𝟙 ²
"""
TOKENS = (
    *PLAIN_TOKENS.split(),
    *("\t", "\n", "\r\n", "# ", ": ", ", ", "<!DOCTYPE a [", '<?xml version="1.0" encoding="utf-16"?>'),
    *("query-id\tcorpus-id\tscore\n", "\ufeff", "\x00", "\x85", "\u2028", "\u00a0", "\x1c", "e\u0301"),
)


def seeds(reader: str) -> Iterator[bytes]:
    """Inputs for a property: option bytes, then a file."""
    if reader == "packed":
        yield from packed_seeds()
        return
    contents = [text.encode() for text in MORE[reader]]
    if reader not in KINDS or reader == "known-answers":
        yield from contents
        return
    known = FORMATS[KINDS[reader]]
    for content in contents:
        yield bytes(5) + content  # the format is guessed
    for number, form in enumerate(known, 1):
        yield bytes([number, 0, 0, 0, 0]) + form.example.encode()
        yield bytes([number, 1, 1, 1, 1]) + form.example.encode()


def packed_seeds() -> Iterator[bytes]:
    """One small run in every packing, and zips of each method and with what does not belong in one."""
    content = b"q1 Q0 c1 1 2.5 s\nq1 Q0 c2 2 2.0 s\n"
    zstd = pa.compress(content, codec="zstd", asbytes=True)
    packings = [
        gzip.compress(content, mtime=0),
        zstd,
        gzip.compress(content[:20], mtime=0) + gzip.compress(content[20:]),
    ]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packings.append(zipped({"run.txt": content}, method))
    packings.append(
        zipped({"läufe/run.txt": content, "__MACOSX/._run.txt": b"x", "läufe/": b""}, zipfile.ZIP_STORED)
    )
    packings.append(zipped({"../run.txt": content}, zipfile.ZIP_STORED))
    packings.append(gzip.compress(gzip.compress(content)))
    for packing in packings:
        yield bytes(2) + packing


def zipped(files: dict[str, bytes], method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def tokens() -> list[bytes]:
    """What the fuzzer may put into an input as a whole."""
    names = {name for columns in COLUMNS.values() for aliases in columns.values() for name in aliases}
    names |= {tag for tags in TAGS.values() for tag in tags} | set(REMAINDER_KEYS)
    return sorted({token.encode() for token in (*TOKENS, *names, *(f'"{name}": ' for name in names))})

"""TREC runs (six columns) and MS MARCO runs (three columns).

Blocks in which every line has exactly the expected form are read column by column; everything else goes
through the careful reader, which alone knows the rules and words every fault. Both give the same entries.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from .columns import columns_found
from .entries import Entries, EntryBuilder, join
from .faults import Findings
from .opening import BOM, Source
from .text import ID_CHARACTERS, block_lines, word_is_good

COLUMN_NAMES = ("question", "q0", "chunk", "rank", "score", "tag")
# everything but white space and control characters
PRINTABLE = bytes([*range(33, 127), *range(128, 256)])
ONE_LINE = b"     \n"
# blocks whose IDs are kept as text before each is stored once
PARTS_AT_ONCE = 16
# below this the columnar reader does not pay
SMALL_BLOCK = 16_384

# each digit can be matched in one way only: a field of a million digits and a letter is refused at once
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
BLANKS = re.compile("[ \t]+")
CODED = pa.dictionary(pa.int32(), pa.string())
# the columns that are read, Q0 is not
COLUMN_TYPES = {
    "question": CODED,
    "chunk": pa.string(),
    "rank": pa.float64(),
    "score": pa.float64(),
    "tag": CODED,
}

Tags = dict[str, int]  # tag -> the first line that has it


class Part(NamedTuple):
    """Some entries of a file in the order of its lines; each piece of the questions has a vocabulary of its own."""

    questions: list[pa.DictionaryArray]
    chunks: list[pa.StringArray]
    rank: NDArray[np.float64]
    score: NDArray[np.float64]
    line: NDArray[np.int64]


def read_trec(source: Source, findings: Findings, *, small_block: int = SMALL_BLOCK) -> tuple[Entries, Tags]:
    """All entries of a six-column run, and its tags."""
    coded: list[Entries] = []
    parts: list[Part] = []
    tags: Tags = {}
    number, offset = 1, 0
    for block in source.blocks():
        part = columnar(block, number, tags) if len(block) >= small_block else None
        parts.append(part or careful(block, number, offset, tags, findings))
        number += block.count(b"\n")
        offset += len(block)
        if len(parts) == PARTS_AT_ONCE:
            coded.append(encode(parts))
            parts = []
    if parts:
        coded.append(encode(parts))
    return join(coded), tags


def encode(parts: list[Part]) -> Entries:
    """The parts as one, with every ID stored once."""
    questions, question = vocabulary_of(
        pa.chunked_array([piece for part in parts for piece in part.questions]).unify_dictionaries()
    )
    vocabulary, chunk = vocabulary_of(
        pa.chunked_array([piece for part in parts for piece in part.chunks]).dictionary_encode()
    )
    return Entries(
        questions=questions,
        vocabulary=vocabulary,
        question=question,
        chunk=chunk,
        rank=np.concatenate([part.rank for part in parts]),
        score=np.concatenate([part.score for part in parts]),
        line=np.concatenate([part.line for part in parts]),
    )


def vocabulary_of(coded: pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.int32]]:
    """The values that all pieces share, and for each row the position of its value."""
    if not coded.num_chunks:  # not one good line
        return pa.array([], pa.string()), np.empty(0, np.int32)
    codes = [piece.indices.to_numpy() for piece in coded.chunks]
    return coded.chunk(0).dictionary, np.concatenate(codes)


def columnar(block: bytes, first_line: int, tags: Tags) -> Part | None:
    """The entries of a block whose every line has the plain form, else None."""
    skeleton = block.translate(None, PRINTABLE)
    # two spaces side by side count as one: five columns with a doubled space are not six
    if not is_regular(skeleton) or b"  " in block:
        block = tidied(block, skeleton)
        skeleton = block.translate(None, PRINTABLE)
        if not block or not is_regular(skeleton):
            return None
    lines = len(skeleton) // len(ONE_LINE) + (not skeleton.endswith(b"\n"))
    if block.startswith(BOM):  # the CSV reader would drop it; here it belongs to an ID
        return None
    try:
        table = csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(column_names=COLUMN_NAMES, block_size=2**20),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False, escape_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=[*COLUMN_TYPES],
                column_types=COLUMN_TYPES,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != lines:
        return None
    questions, chunks, tag_pieces = (table.column(name).chunks for name in ("question", "chunk", "tag"))
    rank, score = table.column("rank").to_numpy(), table.column("score").to_numpy()
    is_ascii = block.isascii()
    if not is_ascii and not is_utf8(block):  # the column that is not read may be what is not
        return None
    texts = [*chunks, *(piece.dictionary for piece in (*questions, *tag_pieces))]
    comment = any(pc.any(pc.starts_with(piece.dictionary, "#")).as_py() for piece in questions)
    if comment or not all(ids_are_good(ids, is_ascii) for ids in texts):
        return None
    if not np.isfinite(rank).all() or not np.isfinite(score).all():
        return None
    note_tags(tags, tag_pieces, first_line)
    line = np.arange(first_line, first_line + lines, dtype=np.int64)
    return Part(questions, chunks, rank, score, line)


def is_utf8(block: bytes) -> bool:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def note_tags(tags: Tags, pieces: list[pa.DictionaryArray], first_line: int) -> None:
    """Add tags that are new, with the first line of each."""
    for piece in pieces:
        for code, name in enumerate(piece.dictionary.to_pylist()):
            if name not in tags:
                tags[name] = first_line + int(np.argmax(piece.indices.to_numpy() == code))
        first_line += len(piece)


def is_regular(skeleton: bytes) -> bool:
    """Whether what is left of a block without its printable bytes is five single spaces a line."""
    whole, rest = divmod(len(skeleton), len(ONE_LINE))
    return skeleton == ONE_LINE * whole + ONE_LINE[:rest] and rest in (0, len(ONE_LINE) - 1)


def tidied(block: bytes, skeleton: bytes) -> bytes:
    """The block with each run of spaces and tabs as one space and LF line ends, where that is all it needs."""
    if skeleton.translate(None, b" \t\r\n"):
        return b""
    block = block.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def ids_are_good(ids: pa.StringArray, is_ascii: bool) -> bool:
    """Whether the columnar reader may take these IDs: it leaves the rare ones to the careful reader."""
    sizes = pc.min_max(pc.binary_length(ids)).as_py()
    if not sizes["min"] or sizes["max"] > ID_CHARACTERS:
        return False
    # control characters and white space of ASCII have been seen in the skeleton already
    return is_ascii or not pc.any(pc.match_substring_regex(ids, r"[\p{Cc}\p{Z}]")).as_py()


def careful(block: bytes, first_line: int, offset: int, tags: Tags, findings: Findings) -> Part:
    """The entries of a block line by line; what is wrong becomes a fault with its line."""
    questions: list[str] = []
    chunks: list[str] = []
    ranks, scores, numbers = array("d"), array("d"), array("q")
    seen: set[str] = set()  # IDs and tags known to be good
    for line, fields in fields_of_lines(block, first_line, offset, findings):
        if len(fields) != 6:
            findings.faults.add(
                "columns",
                line=line,
                field=columns_found(len(fields)),
                value=" ".join(fields),
                expected=six_columns(len(fields)),
            )
            continue
        question, _q0, chunk, rank_text, score_text, tag = fields
        good = True
        for field, value in (("question", question), ("chunk", chunk), ("tag", tag)):
            if value not in seen:
                if word_is_good(value, line=line, field=field, findings=findings):
                    seen.add(value)
                else:
                    good = False
        rank = number(rank_text, "rank", line, findings)
        score = number(score_text, "score", line, findings)
        if not good or rank is None or score is None:
            continue
        tags.setdefault(tag, line)
        questions.append(question)
        chunks.append(chunk)
        ranks.append(rank)
        scores.append(score)
        numbers.append(line)
    return Part(
        [pa.array(questions, pa.string()).dictionary_encode()],
        [pa.array(chunks, pa.string())],
        np.array(ranks, np.float64),
        np.array(scores, np.float64),
        np.array(numbers, np.int64),
    )


def six_columns(found: int) -> str:
    expected = "six columns: question, Q0, chunk, rank, score, tag"
    if found > 6:
        return f"{expected}; more than six nearly always means a space inside an ID or tag"
    if found == 4:
        return f"{expected}; four columns are qrels, which are imported as labels"
    if found == 3:
        return f"{expected}; question, chunk and rank alone are the format msmarco"
    return expected


def fields_of_lines(
    block: bytes, first_line: int, offset: int, findings: Findings
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is neither blank nor a comment. Only spaces and tabs separate."""
    for line, text in block_lines(block, first_line, offset, findings):
        if text.startswith("#"):
            continue
        stripped = text.strip(" \t")
        if stripped:
            yield line, BLANKS.split(stripped)


def number(text: str, field: str, line: int, findings: Findings) -> float | None:
    """A finite number in plain or scientific notation, or None after a fault of the kind `field`."""
    if NUMBER.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    hint = "; a space inside an ID shifts the columns" if field == "rank" else ""
    findings.faults.add(field, line=line, field=field, value=text, expected=f"a finite number{hint}")
    return None


def read_msmarco(source: Source, findings: Findings) -> tuple[Entries, Tags]:
    """All entries of a three-column run: question, chunk, rank."""
    builder = EntryBuilder()
    number_of_line, offset = 1, 0
    for block in source.blocks():
        for line, fields in fields_of_lines(block, number_of_line, offset, findings):
            if len(fields) != 3:
                findings.faults.add(
                    "columns",
                    line=line,
                    field=columns_found(len(fields)),
                    value=" ".join(fields),
                    expected="three columns: question, chunk, rank",
                )
                continue
            question, chunk, rank_text = fields
            good = [
                word_is_good(question, line=line, field="question", findings=findings),
                word_is_good(chunk, line=line, field="chunk", findings=findings),
            ]
            rank = number(rank_text, "rank", line, findings)
            if all(good) and rank is not None:
                builder.add(question, chunk, rank=rank, score=None, line=line)
        number_of_line += block.count(b"\n")
        offset += len(block)
    return builder.entries(), {}

"""The rankings of a run on their way into the database: their hash and their rows."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from pooling.formats import RankingRecord, RunFile
from pooling.models import Run
from pooling.pgcopy import ArrayColumn, bigint_field, binary_copy, write_rows

NULL_FIELD = struct.pack("!i", -1)


def content_hash(file: RunFile, questions: dict[int, RankingRecord]) -> str:
    """SHA-256 over the ordered rankings: question IDs in the order of their bytes, each with its chunk IDs.

    Neither scores nor the IDs of database rows are in it, so that it is the same in every eval set.
    """
    rankings = sorted(questions.values(), key=lambda ranking: ranking.question.encode())
    digest = hashlib.sha256()
    for ranking in rankings:
        digest.update(f"{ranking.question}\n{len(ranking.chunks)} {int(bool(ranking.abstained))}\n".encode())
    order = np.concatenate([ranking.chunks for ranking in rankings]) if rankings else np.empty(0, np.int32)
    ids = file.vocabulary_array.take(pa.array(order, pa.int32())).cast(pa.large_string())
    _validity, offsets, text = ids.buffers()
    if len(ids):
        lengths = np.diff(np.frombuffer(offsets, np.int64, len(ids) + 1))
        digest.update(lengths.astype("<u4").tobytes())
        digest.update(text)
    return digest.hexdigest()


def write_rankings(
    run: Run, file: RunFile, questions: dict[int, RankingRecord], chunk_ids: npt.NDArray[np.int32]
) -> None:
    """COPY the rankings, a row a question."""
    rankings = list(questions.values())
    empty = [np.empty(0, np.int32)]
    positions = np.concatenate([ranking.chunks for ranking in rankings] or empty)
    scores = np.concatenate([scores_of(ranking) for ranking in rankings] or [np.empty(0)])
    chunks, score_column = ArrayColumn(chunk_ids[positions], "int4"), ArrayColumn(scores, "float8")
    run_field = bigint_field(run.pk)

    def rows() -> Iterator[tuple[bytes, ...]]:
        start = 0
        for question, ranking in questions.items():
            stop = start + len(ranking.chunks)
            yield (
                run_field,
                bigint_field(question),
                chunks.field(start, stop),
                NULL_FIELD if ranking.scores is None else score_column.field(start, stop),
                boolean_field(ranking.abstained),
                passages_field(ranking),
            )
            start = stop

    columns = ("run_id", "question_id", "chunk_ids", "scores", "abstained", "passages")
    with binary_copy("pooling_ranking", columns) as copy:
        write_rows(copy, rows())


def scores_of(ranking: RankingRecord) -> npt.NDArray[np.float64]:
    return np.zeros(len(ranking.chunks)) if ranking.scores is None else ranking.scores


def boolean_field(value: bool | None) -> bytes:
    return NULL_FIELD if value is None else struct.pack("!i?", 1, value)


def passages_field(ranking: RankingRecord) -> bytes:
    """The passages as jsonb (in COPY: a version byte, then the text), null where the run gave no texts."""
    if ranking.passages is None:
        return NULL_FIELD
    document = [None if passage is None else passage._asdict() for passage in ranking.passages]
    text = orjson.dumps(document)
    return struct.pack("!iB", len(text) + 1, 1) + text

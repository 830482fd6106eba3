"""Rows of integers and number arrays, in and out of Postgres by binary COPY, without a Python object for each number.

The format is that of the Postgres manual, "COPY: Binary Format" and "array_send": two bytes of column count, then for
each column its length in four bytes and its bytes, all big-endian; an array is five four-byte numbers (dimensions,
null flag, element type, length, lower bound; only the first three when empty), then length and bytes of each element.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection
from psycopg import Copy

_FILE_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
_TRAILER = struct.pack("!h", -1)
NULL_FIELD = struct.pack("!i", -1)
_ARRAY_HEADER = struct.Struct("!iiiii")
_EMPTY_ARRAY_BYTES = 12

# What stands before the array in a row (tag int4, key int8, values any[]).
_HEAD = np.dtype(
    [("columns", ">i2"), ("l1", ">i4"), ("tag", ">i4"), ("l2", ">i4"), ("key", ">i8"), ("l3", ">i4")]
)
_BEFORE_VALUES = _HEAD.itemsize + _ARRAY_HEADER.size

_ELEMENTS = {"int2": (21, ">i2"), "int4": (23, ">i4"), "int8": (20, ">i8"), "float8": (701, ">f8")}


def _element(kind: str) -> np.dtype[Any]:
    return np.dtype([("length", ">i4"), ("value", _ELEMENTS[kind][1])])


@dataclass(frozen=True)
class TaggedArrays:
    """Rows of a tag, a key and an array; `values` are the arrays end to end, `lengths` theirs."""

    tag: npt.NDArray[np.int64]
    key: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    values: npt.NDArray[Any]

    def spread(self, by_row: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A number of each row, repeated for each of its values."""
        return np.repeat(by_row, self.lengths)


def read_tagged_arrays(
    query: str,
    parameters: Sequence[Any] | Mapping[str, Any],
    *,
    element: str = "int4",
    by_key: bool = False,
) -> TaggedArrays:
    """The rows `(tag int4, key int8, values element[])` of a SELECT; rows whose array is empty or null are left out.

    They come by tag, then key; with `by_key` by key, then tag.
    """
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        # The driver's own cursor: the one that Django puts around it to log queries takes no parameters here.
        cursor.cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT BINARY)", parameters) as copy,
    ):
        rows = [bytes(row) for row in copy]  # the protocol sends each row as one message
    rows[0] = rows[0][len(_FILE_HEADER) :]
    longest_without_values = _HEAD.itemsize + _EMPTY_ARRAY_BYTES
    rows = [row for row in rows if len(row) > longest_without_values]
    dtype = _element(element)
    heads = np.frombuffer(b"".join([row[: _HEAD.itemsize] for row in rows]), dtype=_HEAD)
    order = np.lexsort((heads["tag"], heads["key"]) if by_key else (heads["key"], heads["tag"]))
    rows = [rows[i] for i in order.tolist()]
    heads = heads[order]
    lengths = (np.fromiter(map(len, rows), np.int64, len(rows)) - _BEFORE_VALUES) // dtype.itemsize
    packed = np.frombuffer(b"".join([row[_BEFORE_VALUES:] for row in rows]), dtype=dtype)
    return TaggedArrays(
        tag=heads["tag"].astype(np.int64),
        key=heads["key"].astype(np.int64),
        lengths=lengths,
        values=packed["value"].astype(packed["value"].dtype.newbyteorder("=")),
    )


class ArrayColumn:
    """A column of arrays that are slices of one long array; encoded once."""

    def __init__(self, values: npt.ArrayLike, element: str) -> None:
        numbers = np.asarray(values)
        dtype = _element(element)
        packed = np.empty(len(numbers), dtype=dtype)
        packed["length"] = dtype.itemsize - 4
        packed["value"] = numbers
        self._bytes = memoryview(packed.tobytes())
        self._size = dtype.itemsize
        self._oid = _ELEMENTS[element][0]

    def field(self, start: int, stop: int) -> bytes:
        """The array of the values from `start` to before `stop`, as a row holds it."""
        count = stop - start
        if not count:
            return struct.pack("!iiii", _EMPTY_ARRAY_BYTES, 0, 0, self._oid)
        header = _ARRAY_HEADER.pack(1, 0, self._oid, count, 1)
        values = self._bytes[start * self._size : stop * self._size]
        return struct.pack("!i", len(header) + len(values)) + header + values


def bigint_field(value: int) -> bytes:
    return struct.pack("!iq", 8, value)


@contextmanager
def binary_copy(table: str, columns: Sequence[str]) -> Iterator[Copy]:
    """COPY into a table of ours; write rows with `write_rows`. Until it ends, the connection can do nothing else."""
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(_FILE_HEADER)
        yield copy
        copy.write(_TRAILER)


def write_rows(copy: Copy, rows: Iterable[Sequence[bytes]]) -> None:
    """Write rows of encoded fields (`bigint_field`, `ArrayColumn.field`, `NULL_FIELD`)."""
    for row in rows:
        copy.write(struct.pack("!h", len(row)) + b"".join(row))

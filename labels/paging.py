"""Rows of a statement of our own, read only for the page that is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class PagedRows(Sequence[T], Generic[T]):
    """What a Paginator needs: `length` rows, of which `read(offset, limit)` gives some."""

    def __init__(self, length: int, read: Callable[[int, int], Sequence[T]]) -> None:
        self.length = length
        self.read = read

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...

    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            start, stop, _ = at.indices(self.length)
            return self.read(start, max(0, stop - start))
        return self.read(range(self.length)[at], 1)[0]

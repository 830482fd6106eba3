"""What ratings are: an array of items x raters, and how far apart its grades are. Pure arithmetic, no Django."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Weights = Literal["identity", "linear", "quadratic", "ordinal"]


def as_table(ratings: ArrayLike) -> Array:
    """The ratings as numbers, items x raters, NaN where there is none."""
    table = np.array(ratings, dtype=float)
    if not table.size:
        return np.empty((0, 0))
    if table.ndim != 2:
        raise ValueError(f"Ratings are an array of items x raters, not of {table.ndim} dimensions.")
    return table


def rated_twice(ratings: ArrayLike) -> Array:
    """The ratings of the items that have at least two."""
    table = as_table(ratings)
    return table[(~np.isnan(table)).sum(axis=1) >= 2]


def packed(ratings: ArrayLike) -> Array:
    """Each item's ratings, lowest first, in as few columns as hold them; who gave which is lost."""
    table = as_table(ratings)
    most = int((~np.isnan(table)).sum(axis=1).max(initial=0))
    return np.sort(table, axis=1)[:, :most]  # NaN sorts last


def both_rated(first: ArrayLike, second: ArrayLike, grades: Sequence[int]) -> Array:
    """Two raters' ratings of the items that both rated, as places in `grades`: items x 2."""
    columns = [np.array(column, dtype=float) for column in (first, second)]
    codes = as_codes(np.column_stack(columns), grades).reshape(-1, 2)
    return codes[(codes >= 0).all(axis=1)]


def as_codes(ratings: ArrayLike, grades: Sequence[int]) -> Array:
    """The ratings as places in `grades`, -1 where there is none: items x raters of whole numbers."""
    if len(grades) < 2:
        raise ValueError("A scale has at least two grades.")
    table = as_table(ratings)
    codes = np.full(table.shape, -1)
    for place, grade in enumerate(grades):
        codes[table == grade] = place
    strange = table[(codes < 0) & ~np.isnan(table)]
    if len(strange):
        raise ValueError(f"The rating {strange[0]:g} is not one of the grades {list(grades)}.")
    return codes


def distinct(rows: Array) -> tuple[Array, Array]:
    """The distinct rows, in order, and how often each is there: several times as fast as np.unique over rows."""
    rows = rows[np.lexsort(rows.T[::-1])]
    first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
    return rows[first], np.diff(np.append(first, len(rows)))


def distances(size: int) -> Array:
    places = np.arange(size)
    return np.abs(places[:, None] - places[None, :])


def weight_matrix(weights: Weights | ArrayLike, size: int) -> Array:
    """How far each two grades agree, from 0 to 1, and 1 on the diagonal: a matrix of grades x grades."""
    if not isinstance(weights, str):
        matrix = np.array(weights, dtype=float)
        if matrix.shape != (size, size):
            raise ValueError(
                f"Weights for {size} grades are a matrix of {size} x {size}, not {matrix.shape}."
            )
        return matrix
    far = distances(size)
    if weights == "identity":
        return np.eye(size)
    if weights == "linear":
        return np.asarray(1 - far / (size - 1))
    if weights == "quadratic":
        return np.asarray(1 - (far / (size - 1)) ** 2)
    if weights == "ordinal":
        # By how many twos of grades lie between the two, themselves included (Gwet 2014).
        return np.asarray(1 - (far + 1) * far / (size * (size - 1)))
    raise ValueError(f"There are no weights {weights!r}.")


def in_words(weights: Weights | ArrayLike) -> str:
    """The weights as they stand behind the name of a coefficient; nothing where each grade agrees with itself alone."""
    if not isinstance(weights, str):
        return ", own weights"
    return "" if weights == "identity" else f", {weights} weights"

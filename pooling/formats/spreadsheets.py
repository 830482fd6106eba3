"""Text cells of CSV that a spreadsheet would run as formulas: written with an apostrophe in front, and read without."""

from __future__ import annotations

# Excel takes the wide ones for the same.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def defused(text: str) -> str:
    """The text, with an apostrophe in front if a spreadsheet would run it, or if it looks as one that was defused."""
    return "'" + text if text.lstrip("'").startswith(FORMULA_STARTS) else text


def as_it_was(cell: str) -> str:
    """The text that `defused` made this cell of."""
    return cell[1:] if cell.startswith("'") and defused(cell) != cell else cell

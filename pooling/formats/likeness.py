"""Why an ID is not known though it looks familiar: the spellings under which it may be meant.

IDs are compared byte for byte. These spellings are only for hints in reports: the import tells that an ID is known
otherwise written, and never takes one for the other.
"""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import quote, unquote

SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]\+?(\d{1,3})", re.ASCII)
SCIENTIFIC_ID = re.compile(r"(\d+)(?:\.\d+)?[eE]\+?(\d{1,3})", re.ASCII)
DAY_MONTH = re.compile(
    r"(\d{1,2})-(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*", re.IGNORECASE | re.ASCII
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MOST_ZEROS = 12


def spellings(unknown: str) -> dict[str, str]:
    """Other spellings of an ID -> in what they differ, likeliest first. The ID itself is not among them."""
    found: dict[str, str] = {}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        found.setdefault(unicodedata.normalize(form, unknown), "normalisation")
    for text in (unknown, *list(found)):
        found.setdefault(html.unescape(text), "escaping")
        found.setdefault(html.escape(text, quote=False), "escaping")
        found.setdefault(html.escape(text), "escaping")
        found.setdefault(unquote(text), "escaping")
        found.setdefault(quote(text, safe=""), "escaping")
        found.setdefault(quote(text), "escaping")
    found.setdefault(unknown.strip(), "blanks")
    found.setdefault(unknown.lower(), "case")
    found.setdefault(unknown.upper(), "case")
    if unknown.isascii() and unknown.isdigit():
        found.setdefault(unknown.lstrip("0") or "0", "leading zeros")
        for zeros in range(1, MOST_ZEROS):
            found.setdefault("0" * zeros + unknown, "leading zeros")
    for name in dates(unknown):
        found.setdefault(name, "what a spreadsheet takes for a date")
    found.pop(unknown, None)
    return {text: why for text, why in found.items() if text and "\x00" not in text}


def dates(unknown: str) -> list[str]:
    """IDs such as 1-2 and 2/1 that a spreadsheet shows as 01-Feb."""
    match = DAY_MONTH.fullmatch(unknown)
    if not match:
        return []
    day, month = int(match.group(1)), MONTHS.index(match.group(2).lower()) + 1
    names = []
    for first, second in ((day, month), (month, day)):
        for mark in "-/.":
            names += [f"{first}{mark}{second}", f"{first:02}{mark}{second:02}"]
    return list(dict.fromkeys(names))


def is_scientific(unknown: str) -> bool:
    """Whether the ID looks as if a spreadsheet had taken it for a number and shown it in scientific notation."""
    return bool(SCIENTIFIC.fullmatch(unknown)) and ("." in unknown or "," in unknown or "+" in unknown)


def shown_by_spreadsheet(known: str, unknown: str) -> bool:
    """Whether a spreadsheet would show the known ID as the unknown one: 73928e03 as 7.39E+07."""
    shown = SCIENTIFIC.fullmatch(unknown)
    if not shown or len(known) > 40:
        return False
    exact = SCIENTIFIC_ID.fullmatch(known)
    if not (exact or (known.isascii() and known.isdigit())):
        return False
    value = float(known)
    if value in (0.0, float("inf")):
        return False
    decimals = len(shown.group(2) or "")
    return f"{value:.{decimals}E}" == f"{float(unknown.replace(',', '.')):.{decimals}E}"

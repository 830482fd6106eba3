"""From bytes to lines of text, and what may stand in an ID or a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .faults import Findings
from .opening import Source

ID_CHARACTERS = 512

# Unicode category Cc; written out so that one search tells
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f]")
# of any alphabet: many readers of TREC files split at all of it
WHITE_SPACE = re.compile(r"\s")

# UTF-8 bytes read as windows-1252 and written as UTF-8 again: an accented capital A, or a circumflexed a
# and a euro sign, followed by what the second byte of a UTF-8 character turns into.
DECODED_TWICE = re.compile("[ÂÃ][\u0080-\u00bfŒœŠšŸŽžƒˆ˜–—‘’‚“”„†‡•…‰‹›€™]|â€[\u0080-\u00bfœ˜“”™¦]")

CODE_PAGES = ("cp1252", "cp1250", "cp1251", "latin-1")


def lines(source: Source, findings: Findings, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1, blank ones included.

    Lines end at LF or CRLF. A line that is not UTF-8 or holds a NUL becomes a fault and is left out.
    """
    number, offset = 1, 0
    for block in source.blocks():
        yield from block_lines(block, number, offset, findings, keep_ends=keep_ends)
        number += block.count(b"\n")
        offset += len(block)


def block_lines(
    block: bytes, first_number: int, offset: int, findings: Findings, *, keep_ends: bool = False
) -> Iterator[tuple[int, str]]:
    """The lines of one block; `offset` is the byte position of the block in the content."""
    decoded: Iterable[str | None]
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        decoded = decoded_lines(block.split(b"\n"), first_number, offset, findings)
    else:
        decoded = text.split("\n")
    last = first_number + block.count(b"\n")
    for number, piece in enumerate(decoded, first_number):
        if piece is None or (number == last and not piece):
            continue
        if not keep_ends:
            yield number, piece.removesuffix("\r")
        else:
            yield number, piece if number == last else piece + "\n"


def decoded_lines(
    raws: list[bytes], first_number: int, offset: int, findings: Findings
) -> Iterator[str | None]:
    for number, raw in enumerate(raws, first_number):
        yield decode_line(raw, number, offset, findings)
        offset += len(raw) + 1


def decode_line(raw: bytes, number: int, offset: int, findings: Findings) -> str | None:
    """The line as text, or None after a fault. `offset` is the byte position of its start in the content."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if findings.faults.has_room("encoding"):
            findings.faults.add(
                "encoding",
                line=number,
                field=f"byte {offset + error.start} (byte {error.start} of the line)",
                value=around(raw, error.start).decode("utf-8", "replace"),
                expected=other_readings(around(raw, error.start)),
            )
        else:
            findings.faults.add("encoding")
        return None
    if "\x00" in text:
        position = raw.index(b"\x00")
        findings.faults.add(
            "nul",
            line=number,
            field=f"byte {offset + position} (byte {position} of the line)",
            value=text[:200],
            expected="text without NUL characters",
        )
        return None
    return text


def around(raw: bytes, position: int) -> bytes:
    return raw[max(0, position - 30) : position + 40].strip()


def other_readings(raw: bytes) -> str:
    """What would be right, with the readings of the likeliest code pages to choose from."""
    readings: dict[str, str] = {}
    for page in CODE_PAGES:
        try:
            reading = raw.decode(page)
        except UnicodeDecodeError:
            continue
        if not CONTROL_CHARACTERS.search(reading.replace("\t", " ")) and reading not in readings.values():
            readings[page] = reading
        if len(readings) == 2:
            break
    if not readings:
        return "UTF-8"
    shown = "; ".join(f"read as {page}: {reading!r}" for page, reading in readings.items())
    return f"UTF-8; save the file again as UTF-8 if one of these is right: {shown}"


def id_is_good(value: str, *, line: int | None, field: str, findings: Findings) -> bool:
    """Whether the value may be an ID; a fault is added when not. IDs are otherwise opaque and kept exactly."""
    if not value:
        findings.faults.add("id-empty", line=line, field=field, expected="an ID of 1 to 512 characters")
        return False
    if len(value) > ID_CHARACTERS:
        findings.faults.add(
            "id-length",
            line=line,
            field=field,
            value=value,
            expected=f"at most {ID_CHARACTERS} characters, found {len(value)}",
        )
        return False
    control = CONTROL_CHARACTERS.search(value)
    if control:
        findings.faults.add(
            "control-character",
            line=line,
            field=field,
            value=repr(value),
            expected=f"no control characters, found U+{ord(control.group()):04X} at position {control.start()}",
        )
        return False
    return True


def word_is_good(value: str, *, line: int | None, field: str, findings: Findings) -> bool:
    """As `id_is_good`, where white space separates the fields: then an ID holds none, whatever it was split at."""
    if not id_is_good(value, line=line, field=field, findings=findings):
        return False
    space = WHITE_SPACE.search(value)
    if space:
        findings.faults.add(
            "id-white-space",
            line=line,
            field=field,
            value=repr(value),
            expected=f"no white space, found U+{ord(space.group()):04X} at position {space.start()}; "
            "JSON and CSV carry such IDs",
        )
    return space is None


def warn_if_decoded_twice(text: str, *, line: int | None, field: str, findings: Findings) -> None:
    found = DECODED_TWICE.search(text)
    if not found:
        return
    start = max(0, found.start() - 20)
    piece = text[start : found.end() + 30]
    try:
        meant = piece.encode("cp1252").decode("utf-8", "replace")
    except UnicodeEncodeError:
        meant = ""
    findings.warnings.add(
        "mojibake",
        line=line,
        field=field,
        value=piece,
        expected=f"perhaps {meant!r}" if meant else "text that was decoded once",
    )

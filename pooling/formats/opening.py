"""Opening a file that came from outside: plain, gzip, zstd or zip, told by content and never by name.

Content is read as a stream in blocks of whole lines. The unpacked size is limited while it is read, so a
small file cannot fill the memory or the disk.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa

BLOCK_BYTES = 8 * 2**20
HEAD_BYTES = 64 * 2**10

BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

# What the unpacking libraries raise on damaged input; a ValueError is, for instance, a name in a zip that is not UTF-8.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    struct.error,
    pa.ArrowException,
)
DIRECTORY_BYTES_AN_ENTRY = 1024

# done bytes, total bytes of the file as it lies on the disk
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Limits:
    unpacked_bytes: int = 8 * 2**30
    archive_entries: int = 1_000
    line_bytes: int = 64 * 2**20
    block_bytes: int = BLOCK_BYTES  # how much is read at a time


class Unreadable(Exception):
    """The file as a whole cannot be read. Carries what a fault needs."""

    def __init__(self, kind: str, *, field: str = "", value: str = "", expected: str = "") -> None:
        super().__init__(f"{kind}: {field} {value} {expected}")
        self.kind = kind
        self.field = field
        self.value = value
        self.expected = expected


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Source:
    """A file from outside, to be read from its start as often as needed.

    `packing` is "plain", "gzip", "zstd" or "zip"; `member` the name of the file taken from an archive;
    `skipped` the archive's entries that are not data. `digest` is the SHA-256 of the unpacked content in
    hexadecimal, known once `blocks()` has been read to the end. Every method may raise `Unreadable`.
    """

    def __init__(
        self, path: str | Path, *, limits: Limits | None = None, progress: Progress | None = None
    ) -> None:
        self.path = Path(path)
        self.limits = limits or Limits()
        self.progress = progress
        self.packing = "plain"
        self.member: str | None = None
        self.skipped: list[str] = []
        self.digest: str | None = None
        try:
            self.size = self.path.stat().st_size
        except OSError as error:
            raise Unreadable(
                "unreadable", field=self.path.name, value=error.strerror or "", expected="a readable file"
            ) from error

    @property
    def name(self) -> str:
        """What to call the content: the archive's member, else the file. A label only, never a path."""
        return self.member or self.path.name

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """The first bytes of the unpacked content, without the byte order mark."""
        with ExitStack() as stack, unreadable_errors():
            stream, _position = self._open(stack)
            head = read_fully(stream, size)
        refuse_foreign_content(head)
        return head.removeprefix(BOM)

    def blocks(self) -> Iterator[bytes]:
        """The unpacked content in blocks that end at a line feed (the last one as it comes)."""
        digest = hashlib.sha256()
        total = 0
        rest = b""
        with ExitStack() as stack, unreadable_errors():
            stream, position = self._open(stack)
            while piece := read_fully(stream, max(self.limits.block_bytes, len(BOM))):
                digest.update(piece)
                if total == 0:
                    refuse_foreign_content(piece)
                    piece = piece.removeprefix(BOM)
                    total = 1  # so that a file of nothing but a byte order mark is not looked at twice
                total += len(piece)
                if total > self.limits.unpacked_bytes:
                    raise Unreadable(
                        "unpacked-size",
                        field=self.name,
                        value=f"more than {self.limits.unpacked_bytes:,} bytes",
                        expected=f"at most {self.limits.unpacked_bytes:,} bytes when unpacked",
                    )
                if self.progress:
                    self.progress(min(position(), self.size), self.size)
                end = piece.rfind(b"\n") + 1
                if end == 0:
                    rest += piece
                    if len(rest) > self.limits.line_bytes:
                        raise Unreadable(
                            "line-length",
                            field=self.name,
                            value=rest[:200].decode("utf-8", "replace"),
                            expected=f"lines of at most {self.limits.line_bytes:,} bytes",
                        )
                    continue
                yield rest + piece[:end] if rest else piece[:end]
                rest = piece[end:]
        if rest:
            yield rest
        self.digest = digest.hexdigest()

    def _open(self, stack: ExitStack) -> tuple[Readable, Callable[[], int]]:
        raw = stack.enter_context(self.path.open("rb"))
        start = raw.read(4)
        raw.seek(0)
        if start.startswith(GZIP_MAGIC):
            self.packing = "gzip"
            return stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb")), raw.tell
        if start == ZSTD_MAGIC:
            self.packing = "zstd"
            return ZstdStream(raw), raw.tell
        if start in ZIP_MAGICS:
            self.packing = "zip"
            self._refuse_large_directory(raw)
            archive = stack.enter_context(zipfile.ZipFile(raw))
            member = self._single_member(archive)
            self.member = member.filename
            return stack.enter_context(archive.open(member)), raw.tell
        return raw, raw.tell

    def _refuse_large_directory(self, raw: IO[bytes]) -> None:
        """zipfile keeps the whole directory in memory, so its size is looked at before."""
        end = zipfile._EndRecData(raw)  # type: ignore[attr-defined]  # as zipfile itself finds it, or None
        most = self.limits.archive_entries * DIRECTORY_BYTES_AN_ENTRY
        if end is not None and end[zipfile._ECD_SIZE] > most:  # type: ignore[attr-defined]
            raise Unreadable(
                "archive",
                field="archive",
                value=f"a directory of {end[zipfile._ECD_SIZE]:,} bytes",  # type: ignore[attr-defined]
                expected=f"one file of data (a directory of at most {most:,} bytes)",
            )
        raw.seek(0)

    def _single_member(self, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
        entries = archive.infolist()
        if len(entries) > self.limits.archive_entries:
            raise Unreadable(
                "archive",
                field="archive",
                value=f"{len(entries):,} entries",
                expected=f"one file of data (at most {self.limits.archive_entries:,} entries)",
            )
        for entry in entries:
            if leaves_the_folder(entry.orig_filename) or leaves_the_folder(entry.filename):
                raise Unreadable(
                    "archive-name",
                    field="archive",
                    value=entry.orig_filename,
                    expected="names inside the archive's own folder; nothing was unpacked",
                )
        self.skipped = [entry.filename for entry in entries if is_junk(entry)]
        members = [entry for entry in entries if not is_junk(entry)]
        if len(members) != 1:
            names = ", ".join(entry.filename for entry in members[:5]) or "none"
            raise Unreadable(
                "archive",
                field="archive",
                value=names,
                expected=f"exactly one file of data inside, found {len(members)}",
            )
        member = members[0]
        if member.flag_bits & 0x1:
            raise Unreadable(
                "archive",
                field="archive",
                value=member.filename,
                expected="an archive without a password",
            )
        if member.file_size > self.limits.unpacked_bytes:
            raise Unreadable(
                "unpacked-size",
                field=member.filename,
                value=f"{member.file_size:,} bytes",
                expected=f"at most {self.limits.unpacked_bytes:,} bytes when unpacked",
            )
        return member


class ZstdStream:
    """Bounded reads from a zstd file; unlike the plain library reader it notices a file cut short."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def read(self, size: int, /) -> bytes:
        return self._stream.read(size)


class unreadable_errors:
    """Turns what the unpacking libraries raise on damaged input into `Unreadable`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DAMAGED):
            raise Unreadable(
                "compression", value=str(error), expected="a whole gzip, zstd or zip file"
            ) from error
        if isinstance(error, NotImplementedError):  # zipfile: a compression method it does not know
            raise Unreadable("archive", value=str(error), expected="an ordinary zip file") from error


def leaves_the_folder(name: str) -> bool:
    """Whether a name inside an archive points outside of the folder it would be unpacked into, or is none at all."""
    plain = name.replace("\\", "/")
    drive = len(plain) > 1 and plain[1] == ":" and plain[0].isalpha()
    return not name or plain.startswith("/") or drive or ".." in plain.split("/") or "\x00" in name


def is_junk(entry: zipfile.ZipInfo) -> bool:
    """Folders, and what operating systems leave in archives beside the data."""
    parts = entry.filename.split("/")
    return (
        entry.is_dir()
        or "__MACOSX" in parts
        or parts[-1].startswith("._")
        or parts[-1] in {".DS_Store", "Thumbs.db", "desktop.ini"}
    )


def refuse_foreign_content(head: bytes) -> None:
    """Say plainly what some common wrong files are, instead of reporting faults line by line."""
    if head.startswith(UTF16_MARKS):
        raise Unreadable(
            "encoding", field="byte 0", value="UTF-16", expected="UTF-8; save the file again as UTF-8"
        )
    if head.startswith((GZIP_MAGIC, ZSTD_MAGIC, *ZIP_MAGICS)):
        raise Unreadable("compression", value="compressed twice", expected="one layer of gzip, zstd or zip")
    if head[257:262] == b"ustar":
        raise Unreadable(
            "archive", value="a tar archive", expected="the file itself, or a zip with that one file"
        )
    if head.startswith(b"PAR1"):
        raise Unreadable("unreadable", value="a Parquet file", expected="a text format")
    if is_binary(head[:HEAD_BYTES]):
        raise Unreadable("encoding", value="a file that is no text", expected="a text format, in UTF-8")


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is an image or the like: it holds NUL and is not UTF-8."""
    if b"\x00" not in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the head may end inside a character
    except UnicodeDecodeError:
        return True
    return False


def read_fully(stream: Readable, size: int) -> bytes:
    """`size` bytes unless the stream ends before: unpacking streams may answer with less."""
    first = stream.read(size)
    if len(first) == size or not first:
        return first
    pieces = [first]
    missing = size - len(first)
    while missing and (piece := stream.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


class LineStream:
    """The blocks of a source as a file that gives at most one line a read.

    A streaming parser that reads through it has seen exactly `line` lines when it reports an event, and `text` is
    the last of them.
    """

    def __init__(self, source: Source) -> None:
        self._pieces = (piece for block in source.blocks() for piece in block.splitlines(keepends=True))
        self._rest = b""
        self._ended = True
        self.line = 0
        self.text = b""

    def read(self, size: int = -1, /) -> bytes:
        if size == 0:
            return b""
        if not self._rest:
            self.text = self._rest = next(self._pieces, b"")
            if self._rest and self._ended:
                self.line += 1
            self._ended = self._rest.endswith(b"\n")
        if size < 0:
            size = len(self._rest)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece

"""Opening files: packing told by content, limits, archives, encodings."""

import gzip
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pooling.formats import ChunkFile, Limits, Source, Unreadable, read_questions, read_run

RUN = b"q1 Q0 c1 1 2.0 s\nq1 Q0 c2 2 1.0 s\n"


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)  # the same bytes always: they are in the names of tests


def zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def write(tmp_path: Path):
    def write(content: bytes | str, name: str = "input.any") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    ("packing", "content"),
    [
        ("plain", RUN),
        ("gzip", gzipped(RUN)),
        ("gzip", gzipped(RUN[:17]) + gzipped(RUN[17:])),
        ("zstd", pa.compress(RUN, "zstd", asbytes=True)),
        ("zip", zipped({"runs/bm25.txt": RUN})),
        ("plain", b"\xef\xbb\xbf" + RUN),
        ("plain", RUN.replace(b"\n", b"\r\n")),
        ("plain", RUN.rstrip()),
    ],
)
def test_packing_is_told_by_content(write, packing, content):
    run = read_run(write(content, "named-anything.csv"))
    assert run.findings.faults.as_json() == []
    assert run.sniff.packing == packing
    assert [[run.vocabulary[at] for at in ranking.chunks] for ranking in run.rankings] == [["c1", "c2"]]


def test_digest_is_that_of_the_content_whatever_the_packing(write):
    assert read_run(write(RUN)).digest == read_run(write(gzipped(RUN))).digest
    assert read_run(write(RUN)).digest != read_run(write(RUN + b"\n")).digest


def test_archive_junk_is_skipped_and_listed(write):
    content = zipped(
        {"BM25/run.txt": RUN, "__MACOSX/BM25/._run.txt": b"\0\5", "BM25/.DS_Store": b"\0", "BM25/._x": b"1"}
    )
    run = read_run(write(content))
    assert run.read == 2
    assert run.sniff.member == "BM25/run.txt"
    assert sorted(run.sniff.skipped) == ["BM25/.DS_Store", "BM25/._x", "__MACOSX/BM25/._run.txt"]


@pytest.mark.parametrize("name", ["../../outside.txt", "/abs.txt", "a/../../b.txt", "C:\\x.txt", "..\\x.txt"])
def test_names_that_leave_the_folder_are_refused(write, name):
    run = read_run(write(zipped({name: b"x", "ok/run.txt": RUN})))
    assert run.findings.faults.kinds() == ["archive-name"]
    assert run.findings.faults.examples("archive-name")[0].value == name
    assert run.rankings == []


def test_a_name_of_no_character_is_refused(write):
    content = bytearray(zipped({"x": RUN}))
    entry = content.index(
        b"PK\x01\x02"
    )  # the directory's entry: lengths of name and extra field from its byte 28 on
    content[entry + 28 : entry + 32] = b"\0\0\1\0"
    assert read_run(write(bytes(content))).findings.faults.kinds() == ["archive-name"]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_byte_order_mark_is_none_of_the_content_however_small_the_blocks(write, size):
    run = read_run(write(b"\xef\xbb\xbf" + RUN), limits=replace(Limits(), block_bytes=size))
    assert run.rankings[0].question == "q1"


@pytest.mark.parametrize(
    ("entries", "kind"), [({}, "archive"), ({"a": RUN, "b": RUN}, "archive"), ({".DS_Store": b""}, "archive")]
)
def test_archive_must_hold_one_file(write, entries, kind):
    assert read_run(write(zipped(entries))).findings.faults.kinds() == [kind]


def test_the_directory_of_an_archive_is_not_read_before_its_size_is_known(write):
    content = zipped({"run.txt": RUN, **{f"._{n:0>200}": b"" for n in range(9)}})
    faults = read_run(write(content), limits=Limits(archive_entries=2)).findings.faults
    assert faults.kinds() == ["archive"]
    assert "a directory of" in faults.examples("archive")[0].value


def test_archive_with_too_many_entries(write):
    content = zipped({f"._{n}": b"" for n in range(20)} | {"run.txt": RUN})
    assert read_run(write(content), limits=Limits(archive_entries=10)).findings.faults.kinds() == ["archive"]


@pytest.mark.parametrize(
    "content",
    [
        gzipped(b"0" * 1_000_000),
        pa.compress(b"0" * 1_000_000, "zstd", asbytes=True),
        zipped({"run.txt": b"0" * 1_000_000}),
        b"q1 Q0 c1 1 2.0 s\n" * 60_000,
    ],
)
def test_unpacked_size_is_limited(write, content):
    run = read_run(write(content), limits=Limits(unpacked_bytes=500_000))
    assert "unpacked-size" in run.findings.faults.kinds()


@pytest.mark.parametrize(
    "content",
    [
        gzipped(RUN)[:-9],
        gzipped(RUN)[:12],
        b"\x1f\x8b nonsense",
        pa.compress(RUN * 1000, "zstd", asbytes=True)[:-3],
        b"\x28\xb5\x2f\xfd nonsense",
        zipped({"a.txt": RUN})[:-30],
        b"PK\x03\x04 nonsense",
        zipped({"ä.txt": RUN}).replace("ä".encode(), b"\xa4\xc3"),  # its name is marked as UTF-8
        zipped({"a.txt": RUN * 9}, zipfile.ZIP_LZMA).replace(b"\x09\x04\x05\x00", b"\x09\x04\x05\x00\xff"),
        gzipped(gzipped(RUN)),
    ],
)
def test_damaged_files_are_a_fault(write, content):
    run = read_run(write(content))
    assert run.findings.faults.kinds() == ["compression"]
    assert run.rankings == []


def test_missing_file():
    assert read_run("/nowhere/at/all").findings.faults.kinds() == ["unreadable"]
    with pytest.raises(Unreadable):
        Source("/nowhere/at/all")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf16_is_said_plainly(write, mark):
    questions = read_questions(write(mark + "q1\ttext".encode("utf-16-le")))
    assert questions.findings.faults.kinds() == ["encoding"]
    assert questions.findings.faults.examples("encoding")[0].value == "UTF-16"


def test_wrong_code_page_names_place_and_both_readings(write):
    content = b"id,text\nq1,\xd6ffnungszeiten f\xfcr B\xfcrger \x96 \x80 5\nq2,plain\n"
    questions = read_questions(write(content))
    (example,) = questions.findings.faults.examples("encoding")
    assert example.line == 2
    assert example.field.startswith("byte 11 ")
    assert content[11:12] == b"\xd6"
    assert "cp1252: 'q1,Öffnungszeiten für Bürger – € 5'" in example.expected
    assert "�" in example.value


def test_every_bad_line_is_counted_and_few_are_shown(write):
    questions = read_questions(write(b"q1\tgood\n" + b"q2\t\xff\n" * 50))
    assert questions.findings.faults.count("encoding") == 50
    assert [example.line for example in questions.findings.faults.examples("encoding")] == list(range(2, 22))


def test_nul_is_a_fault_with_its_place(write):
    questions = read_questions(write(b"q1\tgood\nq2\tb\x00d\n"))
    (example,) = questions.findings.faults.examples("nul")
    assert (example.line, example.field) == (2, "byte 12 (byte 4 of the line)")


def test_text_decoded_twice_is_taken_with_a_hint(write):
    questions = read_questions(write("id,text\nq1,cafÃ© and tea\n"))
    assert questions.records[0].text == "cafÃ© and tea"
    assert not questions.findings.faults
    assert "'café and tea'" in questions.findings.warnings.examples("mojibake")[0].expected


def test_accents_alone_are_no_sign_of_decoding_twice(write):
    questions = read_questions(write("q1\tÖffnungszeiten, Ângela, São Paulo, Ã la carte\n"))
    assert questions.findings.warnings.kinds() == []


def test_a_line_over_the_limit_is_refused_without_being_held(write):
    chunks = ChunkFile(write(b"c1\t" + b"x" * 20_000_000), limits=Limits(line_bytes=1_000_000))
    assert list(chunks) == []
    assert chunks.findings.faults.kinds() == ["line-length"]


def test_progress_goes_by_the_bytes_of_the_file(write):
    seen = []
    path = write(gzipped(RUN * 1000))
    read_run(path, duplicates="keep-first", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_blocks_end_with_lines_and_make_the_whole(write):
    content = b"".join(b"line %d\n" % n for n in range(5000)) + b"last"
    source = Source(write(content), limits=Limits(block_bytes=1000))
    blocks = list(source.blocks())
    assert b"".join(blocks) == content
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_an_image_is_one_fault(write):
    image = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\n\xff\nplain text\n"
    for read in (read_run, read_questions):
        faults = read(write(image)).findings.faults
        assert (faults.kinds(), faults.count()) == (["encoding"], 1)

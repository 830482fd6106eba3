"""Cuts the handbook into chunks: reads handbook/*.md, writes chunks.jsonl.

A file of the handbook is one parent document: a head of `key: value` lines between two `---` lines, then sections
that begin with `## NN Title`. Each section is one chunk. Its ID is `<file name>#NN`, and `start`/`end` count the
characters of the parent file (head included), so that `parent[start:end]` is the chunk's text.

    python -m demo.make_chunks
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

DEMO = Path(__file__).resolve().parent
HEADING = re.compile(r"^## (?P<number>\d\d) (?P<title>.+)\n", re.MULTILINE)
PASSED_ON = ("url", "effective_from", "effective_to", "scope")


def document_head(text: str) -> dict[str, str]:
    """The `key: value` lines between the first two `---` lines of a handbook file."""
    _, head, _ = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines())


def chunks_of(path: Path) -> Iterator[dict[str, str | int]]:
    """The chunks of one parent document, in its order, as records of the chunk format."""
    text = path.read_text(encoding="utf-8")
    head = document_head(text)
    headings = list(HEADING.finditer(text))
    ends = [following.start() for following in headings[1:]] + [len(text)]
    for heading, section_end in zip(headings, ends, strict=True):
        start = heading.end()
        end = start + len(text[start:section_end].rstrip())
        record: dict[str, str | int] = {
            "id": f"{path.stem}#{heading['number']}",
            "title": heading["title"],
            "text": text[start:end],
            "doc_id": path.stem,
            "start": start,
            "end": end,
        }
        record |= {key: head[key] for key in PASSED_ON if key in head}
        yield record


def all_chunks() -> list[dict[str, str | int]]:
    """Every chunk of the handbook, documents in the order of their names."""
    return [chunk for path in sorted((DEMO / "handbook").glob("*.md")) for chunk in chunks_of(path)]


def main() -> None:
    lines = [json.dumps(chunk, ensure_ascii=False) + "\n" for chunk in all_chunks()]
    (DEMO / "chunks.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

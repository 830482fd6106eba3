"""TREC topic files: the SGML-like form whose tags stay open, and XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from .faults import Findings
from .opening import LineStream, Source, Unreadable
from .records import Raw
from .text import lines

TOPIC_NAMES = ("top", "topic")
# the field of a question -> the tags it stands in
TAGS = {
    "id": ("num", "number", "id", "qid"),
    "title": ("title", "query", "question", "text"),
    "desc": ("desc", "description"),
    "narr": ("narr", "narrative", "background"),
}
FIELD_OF = {tag: name for name, tags in TAGS.items() for tag in tags}
# older topics have more fields; each ends the one before it
OTHER_TAGS = ("dom", "smry", "con", "fac", "nat", "def", "head", "tie", "time", "date")
TAG = re.compile(rf"<(/?)({'|'.join(('top', *FIELD_OF, *OTHER_TAGS))})(?:\s[^<>]*)?>", re.IGNORECASE)
# what TREC writes before the content of a field
LABELS = {
    "id": re.compile(r"\s*(?:Number|Topic)\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*Topic\s*:", re.IGNORECASE),
    "desc": re.compile(r"\s*Description\s*:", re.IGNORECASE),
    "narr": re.compile(r"\s*Narrative\s*:", re.IGNORECASE),
}
DEEPEST_XML = 50
TOPIC_CHARACTERS = 4_000_000


def topic_records(source: Source, findings: Findings, *, xml: bool) -> Iterator[Raw]:
    """Each topic under the names of a question's fields: id, text, narrative."""
    return xml_topics(source, findings) if xml else sgml_topics(source, findings)


def sgml_topics(source: Source, findings: Findings) -> Iterator[Raw]:
    start: int | None = None
    parts: dict[str, list[str]] = {}
    current: str | None = None
    size = 0

    def finished() -> Iterator[Raw]:
        if start is not None:
            yield raw_topic(start, {name: "\n".join(pieces) for name, pieces in parts.items()})

    for number, text in lines(source, findings):
        position = 0
        for tag in TAG.finditer(text):
            closing, name = tag.group(1), tag.group(2).lower()
            if current is not None:
                parts[current].append(text[position : tag.start()])
            elif text[position : tag.start()].strip():
                outside(findings, number, text, start)
            position = tag.end()
            if name == "top":
                yield from finished()
                start, parts, current, size = (None if closing else number), {}, None, 0
            elif closing:
                current = None
            elif start is None:
                outside(findings, number, text, start)
            else:
                current = FIELD_OF.get(name, "other")
                parts.setdefault(current, [])
        tail = text[position:]
        if current is not None:
            size += len(tail) + 1
            if size > TOPIC_CHARACTERS:
                findings.faults.add(
                    "topic",
                    line=start,
                    value=tail,
                    expected=f"topics of at most {TOPIC_CHARACTERS:,} characters",
                )
                return
            parts[current].append(tail)
        elif tail.strip():
            outside(findings, number, text, start)
    yield from finished()


def outside(findings: Findings, number: int, text: str, start: int | None) -> None:
    expected = "text inside a field such as <title>" if start else "text inside <top> … </top>"
    findings.faults.add("topic", line=number, value=text, expected=expected)


def raw_topic(line: int, parts: dict[str, str]) -> Raw:
    """Title is the question's text; description and narrative together are its narrative.

    Without a title the description is the text.
    """
    cleaned: dict[str, str] = {}
    for name, text in parts.items():
        label = LABELS.get(name)
        if label:
            text = label.sub("", text, count=1)
        cleaned[name] = text.strip()
    title, description = cleaned.get("title", ""), cleaned.get("desc", "")
    fields: dict[str, Any] = {"text": " ".join((title or description).split())}
    if "id" in cleaned:
        fields["id"] = cleaned["id"]
    narrative = [description if title else "", cleaned.get("narr", "")]
    fields["narrative"] = "\n\n".join(part for part in narrative if part)
    return Raw(line, fields)


class TopicStream(LineStream):
    """Lines of XML. `kept` counts the bytes since the tree was last pruned; too many of them are refused."""

    kept = 0

    def read(self, size: int = -1, /) -> bytes:
        piece = super().read(size)
        self.kept += len(piece)
        if self.kept > TOPIC_CHARACTERS:
            raise Unreadable(
                "topic",
                field=f"line {self.line}",
                value=f"more than {TOPIC_CHARACTERS:,} bytes without a topic's end",
                expected=f"topics of at most {TOPIC_CHARACTERS:,} bytes",
            )
        return piece


def xml_topics(source: Source, findings: Findings) -> Iterator[Raw]:
    """Elements called topic, top or (right under the root) query; entities and document types are refused."""
    stream = TopicStream(source)
    depth = 0
    started: list[tuple[Element, int]] = []
    try:
        for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
            if event == "start":
                depth += 1
                started.append((element, stream.line))
                if depth > DEEPEST_XML:
                    findings.faults.add(
                        "topic",
                        line=stream.line,
                        value=element.tag,
                        expected=f"XML at most {DEEPEST_XML} deep",
                    )
                    return
                continue
            depth -= 1
            _element, line = started.pop()
            if is_topic(element, depth):
                yield raw_topic(line, parts_of_xml(element))
            elif any(is_topic(around, at) for at, (around, _line) in enumerate(started)):
                continue  # a part of a topic: kept until that ends
            if started:
                started[-1][0].remove(element)  # so that the tree does not grow with the file
            stream.kept = 0
    except ParseError as error:
        line = error.position[0] if error.position else stream.line
        findings.faults.add("topic", line=line, value=str(error), expected="well-formed XML")
    except DefusedXmlException as error:
        findings.faults.add(
            "topic", line=stream.line, value=type(error).__name__, expected="XML without DTD and entities"
        )
    except (ValueError, LookupError) as error:  # an encoding that the parser does not have
        findings.faults.add("topic", line=stream.line, value=str(error), expected="XML in UTF-8")


def is_topic(element: Element, depth: int) -> bool:
    name = str(element.tag).lower()
    return name in TOPIC_NAMES or (name == "query" and depth == 1)


def parts_of_xml(element: Element) -> dict[str, str]:
    parts: dict[str, str] = {}
    for name, tags in TAGS.items():
        for attribute, value in element.attrib.items():
            if name == "id" and attribute.lower() in tags:
                parts[name] = value
    for child in element:
        field = FIELD_OF.get(str(child.tag).lower())
        if field and field not in parts:
            parts[field] = "".join(child.itertext())
    if "title" not in parts and "desc" not in parts:
        parts["title"] = element.text or ""
    return parts

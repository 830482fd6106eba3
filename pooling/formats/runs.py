"""Runs: what one system returned, from any of the formats to ordered rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .cut_passages import CutPassage, CutPassages
from .entries import Duplicates, Entries, Order, arrange
from .faults import Findings
from .opening import Limits, Progress, Source, Unreadable
from .run_json import JsonRun, Passage, read_csv_run, read_jsonl, read_nested
from .sniffing import Sniff, sniff
from .trec import Tags, read_msmarco, read_trec


@dataclass
class RankingRecord:
    """One question's chunks in their order.

    `chunks` are positions in the run's vocabulary (int32). `scores` (float64) are as long, or None where the
    file has none. An empty ranking has no chunks. `passages`, where the run carries texts, is as long as
    `chunks`; a passage that was cut stands in `chunks` in its chunk's place. `line` is where the ranking starts
    in the file.
    """

    question: str
    chunks: NDArray[np.int32]
    scores: NDArray[np.float64] | None
    line: int | None = None
    abstained: bool | None = None  # None: the file reports no abstention at all
    passages: list[Passage | None] | None = None


@dataclass
class RunFile:
    """What was read. Without faults, `rankings` holds every question of the file once, in file order.

    `read` counts the entries of the file; `dropped` those that were left out as duplicates; `tags` are the run
    tags in order of appearance; `digest` is the SHA-256 of the unpacked content. The last positions of the vocabulary
    are those of `cut_passages`.
    """

    sniff: Sniff | None = None
    rankings: list[RankingRecord] = field(default_factory=list)
    vocabulary_array: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    cut_passages: list[CutPassage] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    read: int = 0
    dropped: int = 0
    tags: list[str] = field(default_factory=list)
    digest: str | None = None

    @cached_property
    def vocabulary(self) -> list[str]:
        """The IDs of all chunks and cut passages of the run, each once."""
        ids: list[str] = self.vocabulary_array.to_pylist()
        return ids

    @cached_property
    def chunks(self) -> list[str]:
        """The IDs of all chunks of the run, each once: the vocabulary without the cut passages."""
        return self.vocabulary[: len(self.vocabulary) - len(self.cut_passages)]


def read_run(
    path: str | Path,
    *,
    format: str | None = None,
    order: Order = "score",
    duplicates: Duplicates = "refuse",
    several_tags: bool = False,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> RunFile:
    """Read a run. Never raises on content: whatever is wrong stands in `findings`.

    `order` and `duplicates` are as in `entries.arrange`. More than one tag is a fault, or with `several_tags`
    (the system was named by hand) a warning.
    """
    result = RunFile()
    findings = result.findings
    try:
        source = Source(path, limits=limits, progress=progress)
        result.sniff = sniff(source, "run", format)
        entries, tags, extra = read_entries(source, result.sniff.format, findings)
        result.digest = source.digest
    except Unreadable as error:
        findings.faults.add(error.kind, field=error.field, value=error.value, expected=error.expected)
        return result
    except pa.ArrowException as error:  # for instance more text in IDs than one array can hold
        findings.faults.add("unreadable", value=str(error), expected="a run with fewer different IDs")
        return result
    result.read = len(entries)
    result.tags = list(tags)
    check_tags(tags, several_tags, findings)
    if not len(entries) and not extra.lines and not findings.faults:
        findings.faults.add("empty-file", expected="at least one result line")
    arranged = arrange(entries, order=order, duplicates=duplicates, findings=findings)
    result.dropped = len(entries) - len(arranged.rows)
    if not findings.faults:
        cut = CutPassages(entries.vocabulary.to_pylist() if extra.passages else [])
        names: list[str] = entries.questions.to_pylist()
        chunks, scores = entries.chunk[arranged.rows], entries.score[arranged.rows]
        bounds = arranged.starts.tolist()
        found: dict[str, RankingRecord] = {}
        for at, code in enumerate(arranged.question.tolist()):
            start, end = bounds[at], bounds[at + 1]
            rows = arranged.rows[start:end]
            ranking = RankingRecord(
                question=names[code],
                chunks=chunks[start:end],
                scores=None if np.isnan(scores[start]) else scores[start:end],
                line=int(entries.line[rows[0]]),
            )
            if extra.passages:
                passages = [extra.passages.get(row) for row in rows.tolist()]
                ranking.passages = passages if any(passages) else None
                ranking.chunks = cut.name(ranking.question, ranking.chunks, passages)
            found[ranking.question] = ranking
        result.rankings = with_empty_rankings(found, extra)
        result.vocabulary_array, result.cut_passages = entries.vocabulary, cut.found
        if cut.found:
            cut_ids = pa.array([passage.id for passage in cut.found], entries.vocabulary.type)
            result.vocabulary_array = pa.concat_arrays([entries.vocabulary, cut_ids])
        for question, name in cut.twice:
            findings.faults.add(
                "duplicate-chunk",
                line=found[question].line,
                field=f"question {question}",
                value=name,
                expected="each text once a ranking; this is the ID of a passage that was cut in it",
            )
        for question, count in cut.textless.items():
            findings.warnings.add(
                "cut-without-text",
                line=found[question].line,
                field=f"question {question}",
                expected="the text of each truncated result, as it was packed",
                count=count,
            )
    return result


def read_entries(source: Source, format: str, findings: Findings) -> tuple[Entries, Tags, JsonRun]:
    if format == "trec":
        entries, tags = read_trec(source, findings)
        return entries, tags, JsonRun()
    if format == "msmarco":
        entries, tags = read_msmarco(source, findings)
        return entries, tags, JsonRun()
    read = {"jsonl": read_jsonl, "json": read_nested, "csv": read_csv_run}[format]
    run = read(source, findings)
    return run.builder.entries(), run.tags, run


def check_tags(tags: Tags, several_tags: bool, findings: Findings) -> None:
    if len(tags) < 2:
        return
    first = next(iter(tags))
    collector = findings.warnings if several_tags else findings.faults
    for tag, line in list(tags.items())[1:]:
        expected = f"one tag a file, {first!r} is on line {tags[first]}"
        collector.add(
            "several-tags",
            line=line,
            field="tag",
            value=tag,
            expected=expected
            if several_tags
            else f"{expected}; or name the system, and the tags do not matter",
        )


def with_empty_rankings(found: dict[str, RankingRecord], extra: JsonRun) -> list[RankingRecord]:
    """The rankings in file order, with those that the file says are empty."""
    if not extra.lines:
        return list(found.values())
    rankings = []
    for question, line in extra.lines.items():
        ranking = found.get(question) or RankingRecord(
            question, np.empty(0, np.int32), np.empty(0, np.float64), line
        )
        ranking.abstained = question in extra.abstained if extra.reports_abstention else None
        rankings.append(ranking)
    return rankings

"""Every file a release can become: its name, what it is for, and the writer that streams it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evalsets.errors import BadInput
from labels.exports.beir import beir_zip
from labels.exports.classes import class_file
from labels.exports.label_json import label_json, label_jsonl
from labels.exports.questions import question_jsonl
from labels.exports.tables import cannot_judge_csv, judgment_csv, judgment_parquet, label_csv, label_parquet
from labels.exports.trec import propagated_qrels, qrels
from labels.models import Release


@dataclass(frozen=True)
class ExportFormat:
    """A kind of file. `stream` yields its bytes; BadInput before the first says that it cannot be written."""

    name: str
    title: str
    purpose: str
    ending: str
    content_type: str
    stream: Callable[[Release], Iterator[bytes]]

    def file_name(self, release: Release) -> str:
        """Such as `handbook-r3-qrels.txt`; a release with labels of outside judges says so in every name."""
        marked = "-with-models" if release.judges else ""
        return f"{release.evalset.slug}-r{release.number}{marked}-{self.ending}"

    def etag(self, release: Release) -> str:
        """The same for the same bytes: content and number of the release, the format, and the code that writes it."""
        return f'"{release.content_hash[:32]}-{release.number}-{self.name}-{code_digest()}"'


@cache
def code_digest() -> str:
    """Eight digits that are others once the writers are: a newer version may give a file another column."""
    code = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(code).hexdigest()[:8]


TEXT, CSV = "text/plain; charset=utf-8", "text/csv; charset=utf-8"

FORMATS = {
    item.name: item
    for item in (
        ExportFormat(
            "qrels",
            "qrels (TREC)",
            "For trec_eval, ir_measures, ranx and most other tools: one label a line, grade 0 included. "
            "Chunks that nobody judged are not in it.",
            "qrels.txt",
            TEXT,
            qrels,
        ),
        ExportFormat(
            "label-json",
            "Label JSON",
            "For your own scoring code: one record a question with its relevant and its judged chunks, classes and "
            "the pool they come from. The unjudged rate can be computed from this file alone.",
            "labels.json",
            "application/json",
            label_json,
        ),
        ExportFormat(
            "label-jsonl",
            "Label JSONL",
            "The same records, one a line, for large sets.",
            "labels.jsonl",
            "application/jsonl",
            label_jsonl,
        ),
        ExportFormat(
            "questions",
            "Questions (JSONL)",
            "The questions as they were released; their IDs are those of the qrels.",
            "questions.jsonl",
            "application/jsonl",
            question_jsonl,
        ),
        ExportFormat(
            "classes",
            "Classes",
            "Chunks with the same content: class ID, member ID, start of the text, separated by tabs.",
            "classes.tsv",
            "text/tab-separated-values; charset=utf-8",
            class_file,
        ),
        ExportFormat(
            "qrels-propagated",
            "qrels, grades propagated to classes",
            "For tools that know nothing of classes: every member of a class has the class's grade, "
            "judged or not. Not what people said of each chunk.",
            "qrels-propagated.txt",
            TEXT,
            propagated_qrels,
        ),
        ExportFormat(
            "beir",
            "BEIR folder (zip)",
            "For BEIR, MTEB and training code: questions, labels, and the texts of the labelled chunks as judged. "
            "Retrieve from your whole corpus, not from this one.",
            "beir.zip",
            "application/zip",
            beir_zip,
        ),
        ExportFormat(
            "csv",
            "Labels (CSV)",
            "For spreadsheets: the final label of each pair and what it settled by. Texts that look like formulas "
            "have an apostrophe in front.",
            "labels.csv",
            CSV,
            label_csv,
        ),
        ExportFormat(
            "parquet",
            "Labels (Parquet)",
            "For notebooks: the columns of the CSV with exact texts.",
            "labels.parquet",
            "application/vnd.apache.parquet",
            label_parquet,
        ),
        ExportFormat(
            "judgments",
            "Judgments (CSV)",
            "For audit and agreement studies: every assessor's every judgment, one row each, replaced ones and "
            "skips too. Not labels: several rows may speak of one pair.",
            "judgments.csv",
            CSV,
            judgment_csv,
        ),
        ExportFormat(
            "judgments-parquet",
            "Judgments (Parquet)",
            "For notebooks: the columns of the judgments' CSV with exact texts.",
            "judgments.parquet",
            "application/vnd.apache.parquet",
            judgment_parquet,
        ),
        ExportFormat(
            "cannot-judge",
            "Not labelled (CSV)",
            "The pairs that were skipped, could not be judged or stayed contested, with the reasons. "
            "None of them is in the qrels.",
            "cannot-judge.csv",
            CSV,
            cannot_judge_csv,
        ),
    )
}


def export_format(name: str) -> ExportFormat:
    """The format of that name; BadInput with the known ones where there is none."""
    if name not in FORMATS:
        raise BadInput(f"There is no format {name!r}. Known: {', '.join(FORMATS)}.")
    return FORMATS[name]

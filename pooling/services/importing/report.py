"""The report of an import, in the shape that `--json` prints and the page shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from evalsets.errors import BadInput
from evalsets.models import EvalSet, ImportedFile, User
from evalsets.progress import Progress
from pooling.formats import Findings, Limits, Sniff
from pooling.formats import Progress as BytesRead

SAMPLE_RECORDS = 5
# examples of a kind on a terminal; the JSON has all that were kept
FAULTS_SHOWN = 20
WARNINGS_SHOWN = 5


@dataclass
class ImportReport:
    """What an import found and what it did.

    `read` counts the records of the file. `new`, `unchanged` and `revised` count what they came to in the eval set;
    for runs these are rankings, for labels pairs. `details` holds what only this kind of import has to say.
    `written` is false for a check, for a file with faults, and where nothing was new.
    """

    kind: str
    file_name: str
    check: bool
    options: dict[str, Any]
    sniff: Sniff | None = None
    sha256: str | None = None
    read: int = 0
    new: int = 0
    unchanged: int = 0
    revised: int = 0
    findings: Findings = field(default_factory=Findings)
    sample: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    written: bool = False

    def has_faults(self) -> bool:
        return bool(self.findings.faults)

    def as_json(self) -> dict[str, Any]:
        sniffed = self.sniff.as_json() if self.sniff else {"format": None}
        return {
            "kind": self.kind,
            "file": self.file_name,
            "sha256": self.sha256,
            **sniffed,
            "sample": self.sample,
            "options": self.options,
            "check": self.check,
            "read": self.read,
            "new": self.new,
            "unchanged": self.unchanged,
            "revised": self.revised,
            **self.details,
            "warnings": self.findings.warnings.as_json(),
            "faults": self.findings.faults.as_json(),
            "written": self.written,
        }


def configured_limits() -> Limits:
    return Limits(unpacked_bytes=settings.DECOMPRESSED_LIMIT)


def begin_report(
    *, kind: str, source: str | Path, file_name: str | None, check: bool, options: dict[str, Any]
) -> ImportReport:
    """A report that knows its file and the options that were given."""
    name = (file_name or Path(source).name)[:255]
    given = {key: value for key, value in options.items() if value not in (None, "", {}, False)}
    return ImportReport(kind=kind, file_name=name, check=check, options=given)


def finish(report: ImportReport) -> ImportReport:
    """The report of an import that wrote nothing: given back by a check, raised as BadInput where it has faults."""
    if report.has_faults() and not report.check:
        raise BadInput(report_text(report.as_json()), report=report.as_json())
    return report


def note_earlier_import(report: ImportReport, evalset: EvalSet) -> None:
    """Say so where a file of the same content was imported before."""
    earlier = (
        ImportedFile.objects.filter(evalset=evalset, kind=report.kind, sha256=report.sha256 or "")
        .select_related("created_by")
        .first()
    )
    if earlier:
        report.details["imported_before"] = {
            "file": earlier.name,
            "at": earlier.created_at.isoformat(),
            "by": str(earlier.created_by) if earlier.created_by else None,
        }


def record_file(report: ImportReport, *, evalset: EvalSet, by: User | None) -> ImportedFile:
    """Write down the file with its report. Call it as the last step, when `report` is complete."""
    return ImportedFile.objects.create(
        evalset=evalset,
        kind=report.kind,
        name=report.file_name,
        sha256=report.sha256 or "",
        options=report.options,
        report={
            key: value for key, value in report.as_json().items() if key not in ("sample", "first_lines")
        },
        created_by=by,
    )


def reading(progress: Progress) -> BytesRead:
    """The progress of a reader, in bytes of the file."""

    def read(done: int, total: int) -> None:
        progress(done, total, "reading")

    return read


def report_text(document: dict[str, Any]) -> str:
    """The report (as `ImportReport.as_json` gives it) for people on a terminal."""
    lines = [headline(document)]
    if document.get("why"):
        lines.append(f"Taken for {document['kind']} in format {document['format']}: {document['why']}.")
    if document.get("skipped"):
        lines.append(f"Skipped in the archive: {', '.join(document['skipped'])}.")
    if document.get("imported_before"):
        earlier = document["imported_before"]
        lines.append(f"The same content was imported before, as {earlier['file']} on {earlier['at'][:16]}.")
    for title, entries, shown in (
        ("Fault", document["faults"], FAULTS_SHOWN),
        ("Warning", document["warnings"], WARNINGS_SHOWN),
    ):
        for entry in entries:
            times = "once" if entry["count"] == 1 else f"{entry['count']:,} times"
            lines += ["", f"{title}: {entry['kind']}, {times}. {entry['meaning']}"]
            lines += [f"  {example_text(example)}" for example in entry["examples"][:shown]]
            if len(entry["examples"]) > shown:
                lines.append("  …")
    return "\n".join(lines)


def headline(document: dict[str, Any]) -> str:
    counts = (
        f"{document['read']:,} read: {document['new']:,} new, {document['unchanged']:,} unchanged, "
        f"{document['revised']:,} revised"
    )
    if document["faults"]:
        return f"{document['file']} cannot be imported; nothing was written. {document['read']:,} read."
    if document["check"]:
        return f"{document['file']} can be imported; nothing was written. {counts}."
    if not document["written"]:
        return f"{document['file']}: nothing was new, nothing was written. {counts}."
    return f"{document['file']} was imported. {counts}."


def example_text(example: dict[str, Any]) -> str:
    place = f"line {example['line']}: " if example["line"] else ""
    parts = [part for part in (example["field"], repr(example["value"]) if example["value"] else "") if part]
    expected = f" (right: {example['expected']})" if example["expected"] else ""
    return f"{place}{' '.join(parts)}{expected}"

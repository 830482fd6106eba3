from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from django.db import transaction
from django.utils import timezone

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Question, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from pooling.formats import RankingRecord, RunFile, read_run
from pooling.models import Run, System
from pooling.pgcopy import read_tagged_arrays
from pooling.services.importing.cut_passages import write_cut_passages
from pooling.services.importing.rankings import content_hash, write_rankings
from pooling.services.importing.report import (
    SAMPLE_RECORDS,
    ImportReport,
    begin_report,
    configured_limits,
    finish,
    note_earlier_import,
    reading,
    record_file,
)
from pooling.services.importing.staging import (
    copy_ids,
    execute,
    lock_evalset,
    make_table,
    refresh_statistics,
)
from pooling.services.importing.unknown import (
    report_no_overlap,
    report_unknown_questions,
    warn_of_chunks_without_text,
)

NAME_CHARACTERS = 200
MISSING_LISTED = 1_000
UNKNOWN_LISTED = 20_000


@transaction.atomic
def import_run(
    *,
    evalset: EvalSet,
    source: str | Path,
    by: User | None,
    format: str | None = None,
    system: str | None = None,
    run: str | None = None,
    stage: str | None = None,
    k: int | None = None,
    version: str | None = None,
    date: datetime.date | str | None = None,
    config: dict[str, Any] | None = None,
    order: Literal["score", "rank"] | None = None,
    duplicates: Literal["keep-first"] | None = None,
    unknown_questions: Literal["skip"] | None = None,
    missing: Literal["empty"] | None = None,
    file_name: str | None = None,
    check: bool = False,
    progress: Progress = silent,
) -> ImportReport:
    """Bring in what one system returned for all questions once.

    - `system`: its system's name; else the file's tag, else the file's name. `run`: the run's name; else the system's,
      with a number behind it where that is taken.
    - `order`, `duplicates`, `unknown_questions`, `missing`: as in the documentation of run files; recorded in the
      run's provenance. `date`: the day the system ran, today unless given (a date, or YYYY-MM-DD).
    - The same rankings of the same system at the same stage are the same run, unless `run` names another.

    Counts in the report are rankings. Raises BadInput with the report where the file has faults; with `check` the
    report is given back instead.
    """
    stage = stage or Run.Stage.RERANKED
    options = {
        "format": format,
        "system": system,
        "run": run,
        "stage": stage,
        "k": k,
        "version": version,
        "date": str(date) if date else None,
        "config": config,
        "order": order,
        "duplicates": duplicates,
        "unknown_questions": unknown_questions,
        "missing": missing,
    }
    check_options(stage=stage, k=k, date=date, config=config)
    report = begin_report(kind="run", source=source, file_name=file_name, check=check, options=options)
    file = read_run(
        source,
        format=format or None,
        order=order or "score",
        duplicates=duplicates or "refuse",
        several_tags=bool(system),
        limits=configured_limits(),
        progress=reading(progress),
    )
    report.sniff, report.sha256, report.read, report.findings = (
        file.sniff,
        file.digest,
        file.read,
        file.findings,
    )
    report.sample = sample(file)
    if report.has_faults():
        return finish(report)
    lock_evalset(evalset)
    note_earlier_import(report, evalset)
    progress(0, None, "comparing")
    questions = match_questions(
        report, evalset, file, skip=unknown_questions == "skip", declare_empty=missing == "empty"
    )
    chunk_ids = match_chunks(report, evalset, file)
    warn_of_lengths(report, file, k)
    name = system or (file.tags[0] if file.tags else Path(report.file_name).name.split(".")[0])
    draft = Run(
        evalset=evalset,
        name=run or "",
        stage=stage,
        k=k,
        version=version or "",
        date=as_date(date) or timezone.localdate(),
        config=config or {},
        content_hash=content_hash(file, questions),
        created_by=by,
    )
    there = settle_names(report, draft, system=name, system_was_named=bool(system), tags=file.tags)
    report.details |= {"system": name, "run": draft.name, "content_hash": draft.content_hash}
    if there is not None:
        report.unchanged = len(questions)
        report.details["run"] = there.name
    else:
        report.new = len(questions)
    if check or report.has_faults() or there is not None:
        return finish(report)
    draft.system, _ = System.objects.get_or_create(evalset=evalset, name=name)
    draft.provenance = {
        "file": report.file_name,
        "sha256": report.sha256,
        "format": file.sniff.format if file.sniff else None,
        "tags": file.tags,
        "entries": file.read,
        "order": order or "score",
        "duplicates": duplicates or "refuse",
        "duplicates_dropped": file.dropped,
        "unknown_questions": unknown_questions or "refuse",
        "questions_skipped": report.details["questions_skipped"],
        "missing": missing or "missing",
        "questions_declared_empty": report.details["questions_missing"] if missing == "empty" else 0,
    }
    draft.warnings = report.findings.warnings.as_json()
    draft.save()
    if not chunk_ids.all():
        add_chunks(evalset, [file.vocabulary[at] for at in np.flatnonzero(chunk_ids == 0).tolist()])
        chunk_ids, _has_text = resolve_chunks(evalset)
    if file.cut_passages:
        chunk_ids = np.concatenate([chunk_ids, write_cut_passages(evalset, file.cut_passages, chunk_ids)])
    progress(0, len(questions), "writing")
    write_rankings(draft, file, questions, chunk_ids)
    report.written = True
    imported = record_file(report, evalset=evalset, by=by)
    record_event(
        evalset=evalset,
        by=by,
        verb="run-imported",
        summary=f"Run {draft.name} of system {name} was imported from {report.file_name}.",
        details={"file": imported.pk, "run": draft.pk, "rankings": report.new, "entries": file.read},
    )
    return report


def check_options(*, stage: str, k: int | None, date: datetime.date | str | None, config: object) -> None:
    if stage not in Run.Stage.values:
        raise BadInput(f"The stage is {stage!r}; it is one of {', '.join(Run.Stage.values)}.")
    if k is not None and k < 1:
        raise BadInput(f"k is {k}; it is how many chunks were asked for, 1 or more.")
    if config is not None and not isinstance(config, dict):
        raise BadInput("The configuration is a JSON object with names and values.")
    as_date(date)


def as_date(date: datetime.date | str | None) -> datetime.date | None:
    if not isinstance(date, str):
        return date
    try:
        return datetime.date.fromisoformat(date) if date else None
    except ValueError:
        raise BadInput(f"The date is {date!r}; write it as YYYY-MM-DD.") from None


def sample(file: RunFile) -> list[dict[str, Any]]:
    return [
        {
            "question": ranking.question,
            "length": len(ranking.chunks),
            "first": [file.vocabulary_array[at].as_py() for at in ranking.chunks[:3].tolist()],
        }
        for ranking in file.rankings[:SAMPLE_RECORDS]
    ]


def match_questions(
    report: ImportReport, evalset: EvalSet, file: RunFile, *, skip: bool, declare_empty: bool
) -> dict[int, RankingRecord]:
    """Question.id -> its ranking, in file order; then, where they are declared empty, the missing questions."""
    findings = report.findings
    known = dict(
        Question.objects.filter(evalset=evalset).order_by("external_id").values_list("external_id", "pk")
    )
    unknown = [(ranking.question, ranking.line) for ranking in file.rankings if ranking.question not in known]
    if not known:
        findings.faults.add("no-questions", expected="import the questions first")
    elif len(unknown) == len(file.rankings):
        report_no_overlap(findings, evalset, "question", [name for name, _line in unknown])
    elif unknown:
        report_unknown_questions(findings, evalset, unknown, skip=skip)
    matched = {known[ranking.question]: ranking for ranking in file.rankings if ranking.question in known}
    missing = [name for name, pk in known.items() if pk not in matched]
    for name in missing:
        if declare_empty:
            findings.warnings.add("questions-declared-empty", field="question", value=name)
            matched[known[name]] = RankingRecord(name, np.empty(0, np.int32), None)
        else:
            findings.warnings.add(
                "questions-missing",
                field="question",
                value=name,
                expected="a ranking, or declare missing ones empty",
            )
    for name, ranking in (
        (ranking.question, ranking) for ranking in file.rankings if not len(ranking.chunks)
    ):
        findings.warnings.add("questions-empty", line=ranking.line, field="question", value=name)
    report.details |= {
        "questions_skipped": len(unknown),
        "questions_missing": len(missing),
        "missing": missing[:MISSING_LISTED],
        "abstained": sum(bool(ranking.abstained) for ranking in file.rankings),
    }
    return matched


def match_chunks(report: ImportReport, evalset: EvalSet, file: RunFile) -> npt.NDArray[np.int32]:
    """By position in the file's chunks, Chunk.id; 0 for a chunk that the eval set does not have."""
    make_table("import_vocabulary", 'position int GENERATED ALWAYS AS IDENTITY, external_id text COLLATE "C"')
    chunks = file.chunks
    copy_ids("import_vocabulary", "external_id", chunks)
    chunk_ids, has_text = resolve_chunks(evalset)
    total, with_text = len(chunks), int(has_text.sum())
    unknown = [chunks[at] for at in np.flatnonzero(chunk_ids == 0)[:UNKNOWN_LISTED].tolist()]
    if total and not chunk_ids.any() and evalset.chunks.whole().filter(has_text=True).exists():
        report_no_overlap(report.findings, evalset, "chunk", unknown)
    else:
        warn_of_chunks_without_text(report.findings, evalset, unknown, total - with_text, total)
    report.details |= {
        "chunks": total,
        "chunks_unknown": int((chunk_ids == 0).sum()),
        "chunks_without_text": total - with_text,
        "cut_passages": len(file.cut_passages),
    }
    return chunk_ids


def resolve_chunks(evalset: EvalSet) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """By position in the vocabulary, Chunk.id (0: none) and whether the chunk has a text.

    Looked up one by one through the index: a join's plan would hang on how many rows the planner expects.
    """
    found = read_tagged_arrays(
        """
        SELECT 0::int4, 0::int8, array_agg(coalesce(
            (SELECT CASE WHEN c.has_text THEN c.id ELSE -c.id END
             FROM evalsets_chunk c WHERE c.evalset_id = %s AND c.external_id = v.external_id), 0)
            ORDER BY v.position)
        FROM import_vocabulary v
        """,
        [evalset.pk],
    )
    signed = found.values.astype(np.int32)
    return np.abs(signed), signed > 0


def add_chunks(evalset: EvalSet, unknown: Sequence[str]) -> None:
    """Chunks that are known by their ID alone from now on."""
    make_table("import_unknown", 'position int GENERATED ALWAYS AS IDENTITY, external_id text COLLATE "C"')
    copy_ids("import_unknown", "external_id", unknown)
    execute(
        """
        INSERT INTO evalsets_chunk (evalset_id, external_id)
        SELECT %s, external_id FROM import_unknown ORDER BY position ON CONFLICT DO NOTHING
        """,
        [evalset.pk],
    )
    refresh_statistics("evalsets_chunk")


def warn_of_lengths(report: ImportReport, file: RunFile, k: int | None) -> None:
    longest = max((len(ranking.chunks) for ranking in file.rankings), default=0)
    report.details["longest"] = longest
    longer = sum(len(ranking.chunks) > k for ranking in file.rankings) if k else 0
    if longer:
        report.findings.warnings.add(
            "more-than-k",
            value=f"up to {longest:,} chunks",
            expected=f"at most {k:,}, the k that was given",
            count=longer,
        )


def settle_names(
    report: ImportReport, draft: Run, *, system: str, system_was_named: bool, tags: Sequence[str]
) -> Run | None:
    """Give the draft its name; the run that it is already, where there is one. Adds faults and notices."""
    findings = report.findings
    for kind, name in (("system-name", system), ("run-name", draft.name or system)):
        if not name or len(name) > NAME_CHARACTERS:
            findings.faults.add(kind, value=name, expected=f"1 to {NAME_CHARACTERS} characters; give a name")
            return None
    runs = Run.objects.filter(evalset=draft.evalset)
    same = runs.filter(content_hash=draft.content_hash, stage=draft.stage, system__name=system)
    if draft.name:
        named = runs.filter(name=draft.name).select_related("system").first()
        if named is not None:
            if (named.content_hash, named.stage, named.system.name) == (
                draft.content_hash,
                draft.stage,
                system,
            ):
                return named
            findings.faults.add(
                "run-name",
                value=draft.name,
                expected=f"a name that no run has yet; it is that of a run of {named.system.name} of {named.date}",
            )
            return None
    elif (first := same.order_by("pk").first()) is not None:
        return first
    else:
        draft.name = free_name(draft.evalset, system)
    others = runs.filter(system__name=system, stage=draft.stage)
    if not system_was_named and tags and (other := others.first()) is not None:
        findings.warnings.add(
            "tag-shared",
            field="tag",
            value=tags[0],
            expected=f"run {other.name} of system {system} has it too; if this is another system, name it",
        )
    twin = runs.filter(content_hash=draft.content_hash).exclude(system__name=system).first()
    if twin is not None:
        findings.warnings.add(
            "identical-run", value=twin.name, expected="another ranking on at least one question"
        )
    return None


def free_name(evalset: EvalSet, system: str) -> str:
    """The system's name, with the first free number behind it where that is taken."""
    start = system[: NAME_CHARACTERS - 7]
    taken = set(Run.objects.filter(evalset=evalset, name__startswith=start).values_list("name", flat=True))
    if system not in taken:
        return system
    return next(name for number in range(2, len(taken) + 3) if (name := f"{start}-{number}") not in taken)

"""IDs of a file that the eval set does not have: what to say of them, and what they may have meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from django.db.models import QuerySet

from evalsets.models import Chunk, EvalSet, Question
from pooling.formats import Findings
from pooling.formats.likeness import is_scientific, shown_by_spreadsheet, spellings

What = Literal["question", "chunk"]

# Hints are looked for on so many unknown IDs; more would say the same.
HINTED = 200
# So many known IDs are looked through for what a spreadsheet may have shown in scientific notation.
NUMBERS_LOOKED_AT = 100_000
SHORTEST_PREFIX = 4


class Hint(NamedTuple):
    known: str
    why: str


def find_hints(evalset: EvalSet, what: What, unknown: Sequence[str]) -> dict[str, Hint]:
    """Unknown ID -> the known one it resembles, for those of the first `HINTED` that resemble one."""
    some = list(dict.fromkeys(unknown))[:HINTED]
    known = known_ids(evalset, what)
    candidates = {name: spellings(name) for name in some}
    every = {spelling for found in candidates.values() for spelling in found}
    there = set(known.filter(external_id__in=every).values_list("external_id", flat=True))
    hints: dict[str, Hint] = {}
    numbers: list[str] | None = None
    for name in some:
        for spelling, why in candidates[name].items():
            if spelling in there:
                hints[name] = Hint(spelling, why)
                break
        if name in hints:
            continue
        if is_scientific(name):
            if numbers is None:
                pattern = r"^[0-9]+(\.[0-9]+)?([eE][+]?[0-9]+)?$"
                numbers = list(
                    known.filter(external_id__regex=pattern).values_list("external_id", flat=True)[
                        :NUMBERS_LOOKED_AT
                    ]
                )
            shown = next((number for number in numbers if shown_by_spreadsheet(number, name)), None)
            if shown is not None:
                hints[name] = Hint(shown, "what a spreadsheet takes for a number")
        elif len(name) >= SHORTEST_PREFIX:
            # by the index on the IDs' bytes: what lies between the prefix and its last possible continuation
            longer = known.filter(external_id__gt=name, external_id__lt=name + "\U0010ffff").order_by(
                "external_id"
            )
            continued = longer.values_list("external_id", flat=True).first()
            if continued is not None:
                hints[name] = Hint(continued, "the end: it is cut off")
    return hints


def known_ids(evalset: EvalSet, what: What) -> QuerySet[Question] | QuerySet[Chunk]:
    if what == "question":
        return Question.objects.filter(evalset=evalset)
    return Chunk.objects.filter(evalset=evalset)


def report_no_overlap(findings: Findings, evalset: EvalSet, what: What, unknown: Sequence[str]) -> None:
    """A fault: not one ID of the file is known. Three examples of each side."""
    known = known_ids(evalset, what).order_by("external_id").values_list("external_id", flat=True)[:3]
    hints = find_hints(evalset, what, unknown)
    findings.faults.add(
        f"no-{what}-overlap",
        field=f"{what} IDs",
        value=", ".join(unknown[:3]),
        expected=f"IDs of the eval set, such as {', '.join(known)}{summary(hints, unknown)}",
        count=len(unknown),
    )


def summary(hints: dict[str, Hint], unknown: Sequence[str]) -> str:
    """What the hints come to, in words; empty where there is none."""
    if not hints:
        return ""
    looked_at = min(len(dict.fromkeys(unknown)), HINTED)
    reasons = ", ".join(dict.fromkeys(hint.why for hint in hints.values()))
    pairs = "; ".join(f"{name} may be {hint.known}" for name, hint in list(hints.items())[:3])
    return f". {len(hints)} of {looked_at} unknown IDs differ from known ones only in {reasons}: {pairs}"


def report_unknown_questions(
    findings: Findings, evalset: EvalSet, unknown: Sequence[tuple[str, int | None]], *, skip: bool
) -> None:
    """Questions of the file that the eval set does not have, with the line of each: a fault, or skipped."""
    hints = find_hints(evalset, "question", [name for name, _line in unknown])
    collector = findings.warnings if skip else findings.faults
    for name, line in unknown:
        expected = "a question of the eval set"
        if name in hints:
            expected += f"; {hints[name].known} differs only in {hints[name].why}"
        if not skip:
            expected += "; or skip unknown questions"
        collector.add(
            "questions-skipped" if skip else "unknown-question",
            line=line,
            field="question",
            value=name,
            expected=expected,
        )


def warn_of_chunks_without_text(
    findings: Findings, evalset: EvalSet, unknown: Sequence[str], waiting: int, total: int
) -> None:
    """Chunks of the file whose text is not there: `unknown` ones are new to the eval set, `waiting` counts all."""
    if not waiting:
        return
    hints = find_hints(evalset, "chunk", unknown)
    findings.warnings.add(
        "chunks-without-text",
        field="chunk IDs",
        value=", ".join(unknown[:3]),
        expected=f"{total - waiting:,} of {total:,} chunks have a text; the others wait until theirs is imported"
        + summary(hints, unknown),
        count=waiting,
    )
    for name, hint in hints.items():
        findings.warnings.add(
            "chunk-known-otherwise",
            field="chunk",
            value=name,
            expected=f"{hint.known} differs only in {hint.why}",
        )

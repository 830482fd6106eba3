"""The shapes in which scores are printed, stored and returned: everything that goes out carries its unjudged rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scoring.classes import IntArray
from scoring.facts import Coverage, abstention, mean_coverage, unanswerable_slice
from scoring.measures import Measure
from scoring.policies import UnjudgedError
from scoring.reading import Known, LoadedRun
from scoring.scores import RunScores


def run_document(
    known: Known,
    loaded: LoadedRun,
    scores: RunScores,
    coverage: Sequence[Coverage],
    facts_depth: int | None,
    considered: IntArray | None,
) -> dict[str, Any]:
    """What `score --json` says of one run on the considered questions (None: all)."""
    ids = known.questions.ids
    rates = {depth: counts.rates.tolist() for depth, counts in scores.unjudged.items()}
    place = {int(number): at for at, number in enumerate(scores.ranked)}
    return {
        "run": loaded.run.name,
        "system": loaded.run.system.name,
        "stage": loaded.run.stage,
        "n": len(scores.questions),
        "skipped": [
            {
                "question": ids[one.question],
                "why": one.why,
                **({"unjudged": _at(rates, place[one.question])} if one.question in place else {}),
            }
            for one in scores.skipped
        ],
        "unjudged": {depth: counts.rate for depth, counts in scores.unjudged.items()},
        "unjudged_scored": scores.unjudged_scored,
        "unjudged_by_depth": scores.curve.tolist(),
        "returned": {depth: int(counts.returned.sum()) for depth, counts in scores.unjudged.items()},
        "inadmissible": {depth: int(counts.sum()) for depth, counts in scores.inadmissible.items()},
        "measures": {m.name: _number(mean) for m, mean in zip(scores.measures, scores.means, strict=True)},
        "residuals": {name: _mean(values.tolist()) for name, values in scores.residuals.items()},
        "unanswerable": _unanswerable(known, loaded, considered),
        "facts": _facts(coverage, facts_depth),
        "unknown_questions": loaded.unknown,
        "questions": _questions(known, scores, rates, place, {one.question: one for one in coverage}),
    }


def _questions(
    known: Known,
    scores: RunScores,
    rates: dict[str, list[float]],
    place: dict[int, int],
    coverage: dict[int, Coverage],
) -> list[dict[str, Any]]:
    names = [measure.name for measure in scores.measures]
    inadmissible = {depth: counts.tolist() for depth, counts in scores.inadmissible.items()}
    any_inadmissible = any(any(counts) for counts in inadmissible.values())
    rows = []
    for number, values in zip(scores.questions.tolist(), scores.values.tolist(), strict=True):
        at = place[number]
        row: dict[str, Any] = {
            "id": known.questions.ids[number],
            "unjudged": _at(rates, at),
            "measures": dict(zip(names, values, strict=True)),
        }
        if any_inadmissible:
            row["inadmissible"] = {depth: counts[at] for depth, counts in inadmissible.items()}
        if number in coverage:
            row["facts"] = {
                "supported": len(coverage[number].supported),
                "required": coverage[number].required,
            }
        rows.append(row)
    return rows


def _at(rates: dict[str, list[float]], place: int) -> dict[str, float]:
    return {depth: values[place] for depth, values in rates.items()}


def _unanswerable(known: Known, loaded: LoadedRun, considered: IntArray | None) -> dict[str, Any]:
    """The slice of unanswerable questions, and abstention where the run reports it (else null)."""
    answerable = known.questions.answerable.tolist()
    asked = range(len(answerable)) if considered is None else set(considered.tolist())
    abstained = {number: said for number, said in loaded.abstained.items() if number in asked}
    returned = unanswerable_slice(answerable, loaded.rankings, only=asked)
    document: dict[str, Any] = {
        "n": returned.n,
        "returned_nothing": returned.returned_nothing,
        "mean_returned": returned.mean_returned,
        "abstention": None,
    }
    if abstained:
        counts = abstention(answerable, abstained)
        document["abstention"] = {**counts._asdict(), "rate": counts.rate, "wrong_rate": counts.wrong_rate}
    return document


def _facts(coverage: Sequence[Coverage], depth: int | None) -> dict[str, Any] | None:
    """Required-fact coverage with its denominator; null where no ranked question requires a fact."""
    if not coverage:
        return None
    return {
        "n": len(coverage),
        "k": "all" if depth is None else depth,
        "mean": mean_coverage(coverage),
        "supported": sum(len(one.supported) for one in coverage),
        "required": sum(one.required for one in coverage),
    }


def deepest(measures: Sequence[Measure]) -> int | None:
    """The deepest cut-off; None where a measure looks at the whole ranking."""
    cutoffs = [measure.k for measure in measures]
    return None if None in cutoffs else max(k for k in cutoffs if k is not None)


def strict_report(error: UnjudgedError, run: str, known: Known, chunk_ids: dict[int, str]) -> dict[str, Any]:
    """The unjudged chunks that the strict policy found, by their IDs."""
    return {
        "error": f"{error} in run “{run}”",
        "unjudged": [
            {"question": known.questions.ids[one.question], "chunk": chunk_ids[one.chunk], "rank": one.rank}
            for one in error.entries
        ],
    }


def _number(value: float) -> float | None:
    """A float, or None where there was nothing to average: JSON has no NaN."""
    return None if math.isnan(value) else float(value)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

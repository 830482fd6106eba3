"""Longer looks at a release: is its pool reusable, and where does a system lose its evidence? Kept once computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from evalsets.errors import BadInput
from evalsets.models import Chunk, User
from evalsets.progress import Progress, silent
from labels.models import Release
from pooling.models import Run
from scoring.classes import BoolArray, Rankings
from scoring.matching import match
from scoring.models import Analysis, Unit
from scoring.reading import read_known, read_run
from scoring.reusability import LeftOut, System, leave_out, returned_within
from scoring.scores import CODE_VERSION, Rules
from scoring.services.scoring import Asked, covered_facts, digest, plan_for
from scoring.stages import FATES, STAGES, StageRun, funnel, per_question, trace


def analyse_reusability(
    *,
    release: Release,
    runs: Sequence[Run],
    asked: Asked,
    by: User | None = None,
    progress: Progress = silent,
) -> Analysis:
    """Leave out each system, and each family of systems, of the runs; by the one measure of `asked`.

    BadInput for several measures, fewer than two runs, two runs of one system, missing rankings.
    """
    if len(asked.measures) > 1:
        raise BadInput("Name one measure here.")
    if len(runs) < 2:
        raise BadInput("Leaving a system out needs the runs of at least two systems.")
    if len({run.system_id for run in runs}) != len(runs):
        raise BadInput("Choose one run of each system: two runs of one system stand for each other.")
    measure = asked.measures[0]
    depths = _pooled_depths(release)
    pooled = list(Run.objects.filter(pk__in=depths).select_related("system").order_by("pk"))
    families = _families([*runs, *pooled])
    known = read_known(release)
    key = digest(
        "reusability",
        release.content_hash,
        [[run.pk, run.content_hash] for run in runs],
        [[run.pk, run.content_hash] for run in pooled],
        families,
        [measure.name, list(asked.rules), asked.unit, asked.split, asked.common],
        known.digest,
        CODE_VERSION,
    )
    found = Analysis.objects.filter(key=key).first()
    if found is not None:
        return found
    plan = plan_for(known, known.truth(), runs, asked)
    steps = len(runs) + len(pooled) + 1
    systems: dict[str, System] = {}
    rankings: dict[int, Rankings] = {}
    for done, run in enumerate(runs):
        progress(done, steps, f"Reading {run.name}")
        loaded = read_run(run, known)
        systems[run.system.name] = System(loaded.rankings, loaded.inadmissible, loaded.truncated)
        rankings[run.pk] = loaded.rankings
    contributed: dict[str, BoolArray] = {}
    for done, run in enumerate(pooled, start=len(runs)):
        progress(done, steps, f"Looking for what {run.name} contributed")
        ranked = rankings[run.pk] if run.pk in rankings else read_run(run, known).rankings
        flags = returned_within(known.labels, ranked, depths[run.pk])
        contributed[run.system.name] = flags | contributed.get(run.system.name, False)
    progress(steps - 1, steps, "Leaving systems out")
    deepest = _deepest_by_system(pooled, depths)
    rows = leave_out(
        known.labels,
        systems,
        contributed,
        plan,
        measure,
        asked.rules,
        questions=len(known.questions.ids),
        families=families,
        classes=known.classes,
        inadmissible=known.inadmissible,
        cuts=known.cuts,
        by_model=known.arrays.by_model,
    )
    document = {
        "measure": measure.name,
        "threshold": asked.rules.threshold,
        "gain": asked.rules.gain,
        "n": len(plan.scored),
        "systems": [_left_out(row, deepest.get(row.system)) for row in rows],
    }
    title = f"{measure.name} of {len(runs)} systems, each left out, on release {release.number}"
    return _keep(release, Analysis.Kind.REUSABILITY, key, title, document, by)


def _pooled_depths(release: Release) -> dict[int, int]:
    """How deep each run was pooled for the release, at most, by Run.id."""
    depths: dict[int, int] = {}
    for item in release.provenance["runs"]:
        if item["pooled"]:
            depths[item["run_id"]] = max(item["k"], depths.get(item["run_id"], 0))
    return depths


def _deepest_by_system(pooled: Sequence[Run], depths: dict[int, int]) -> dict[str, int]:
    deepest: dict[str, int] = {}
    for run in pooled:
        deepest[run.system.name] = max(depths[run.pk], deepest.get(run.system.name, 0))
    return deepest


def _families(runs: Sequence[Run]) -> list[list[str]]:
    """The names of related systems, of those families that have several."""
    members: dict[str, set[str]] = {}
    for run in runs:
        if run.system.family:
            members.setdefault(run.system.family, set()).add(run.system.name)
    return sorted(sorted(systems) for systems in members.values() if len(systems) > 1)


def _left_out(row: LeftOut, pooled_to: int | None) -> dict[str, Any]:
    return {**row._asdict(), "family": list(row.family), "pooled_to": pooled_to}


def analyse_stages(*, release: Release, runs: Sequence[Run], by: User | None = None) -> Analysis:
    """Trace every relevant class through one system's runs, one for each stage.

    Each run hands on what it was asked for (`Run.k`), or its whole ranking. BadInput for fewer than two
    stages, two runs of one stage or of different systems.
    """
    if len({run.system_id for run in runs}) != 1:
        raise BadInput("The stages must be runs of one system.")
    if len({run.stage for run in runs}) != len(runs) or len(runs) < 2:
        raise BadInput("Choose one run for each of at least two stages.")
    ordered = sorted(runs, key=lambda run: STAGES.index(run.stage))
    known = read_known(release)
    key = digest(
        "stages",
        release.content_hash,
        [[run.pk, run.content_hash, run.k] for run in ordered],
        known.digest,
        CODE_VERSION,
    )
    found = Analysis.objects.filter(key=key).first()
    if found is not None:
        return found
    asked = Asked((), Rules(threshold=release.threshold), Unit.CHUNK, "", common=True)
    truth = known.truth()
    plan = plan_for(known, truth, ordered, asked)
    loaded = [read_run(run, known) for run in ordered]
    staged = [
        StageRun(
            stage=run.stage,  # type: ignore[arg-type]
            graded=match(truth, one.rankings, one.inadmissible, one.truncated),
            k=run.k,
            truncated=None if one.truncated is None else one.truncated.tolist(),
        )
        for run, one in zip(ordered, loaded, strict=True)
    ]
    lost = trace(truth, plan.scored.tolist(), staged, threshold=release.threshold)
    steps = funnel(lost, staged)
    names = dict(Chunk.objects.filter(pk__in={one.unit for one in lost}).values_list("pk", "external_id"))
    ids = known.questions.ids
    coverage = covered_facts(known, loaded[-1], None)
    document = {
        "system": ordered[0].system.name,
        "runs": [{"run": run.name, "stage": run.stage, "k": run.k} for run in ordered],
        "threshold": release.threshold,
        "n": len(plan.scored),
        "relevant": steps.relevant,
        "left": [{"stage": stage, "left": left} for stage, left in steps.left],
        "fates": {fate: sum(one.fate == fate for one in lost) for fate in FATES},
        "questions": [
            {"id": ids[question], "fates": counts} for question, counts in per_question(lost).items()
        ],
        "lost": [
            {"question": ids[one.question], "chunk": names[one.unit], "grade": one.grade, "fate": one.fate}
            for one in lost
            if one.fate != "kept"
        ],
        "facts": {
            "n": len(coverage),
            "supported": sum(len(one.supported) for one in coverage),
            "required": sum(one.required for one in coverage),
            "mean": sum(one.share for one in coverage) / len(coverage) if coverage else None,
        },
    }
    title = (
        f"{ordered[0].system.name} from {ordered[0].stage} to {ordered[-1].stage} on release {release.number}"
    )
    return _keep(release, Analysis.Kind.STAGES, key, title, document, by)


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """What `reusability --json` and `stages --json` print."""
    return {
        "release": analysis.release.number,
        "hash": analysis.release.content_hash,
        "title": analysis.title,
        **analysis.document,
        **(_ranks_moved(analysis.document) if analysis.kind == Analysis.Kind.REUSABILITY else {}),
        "page": analysis.get_absolute_url(),
    }


def _ranks_moved(document: dict[str, Any]) -> dict[str, Any]:
    """The lowest Kendall's tau between the orders with and without a system, and how many change their rank."""
    rows = document["systems"]
    return {
        "lowest_tau": min((row["tau"] for row in rows), default=1.0),
        "moved": sum(row["rank_before"] != row["rank_after"] for row in rows),
    }


@transaction.atomic
def _keep(
    release: Release, kind: str, key: str, title: str, document: dict[str, Any], by: User | None
) -> Analysis:
    analysis, _ = Analysis.objects.get_or_create(
        key=key,
        defaults={
            "evalset": release.evalset,
            "release": release,
            "kind": kind,
            "title": title,
            "document": document | release.of_models,
            "created_by": by,
        },
    )
    return analysis

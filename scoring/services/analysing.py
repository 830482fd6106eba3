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
from scoring.classes import BoolArray, Rankings, match
from scoring.models import Analysis, Unit
from scoring.reading import read_known, read_run
from scoring.reusability import Inadmissible, LeftOut, leave_out
from scoring.scores import CODE_VERSION, Rules
from scoring.services.comparing import pool_membership
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
    """Leave out each system, and each family of systems, of the runs; by the first measure of `asked`.

    BadInput for fewer than two runs, two runs of one system, missing rankings.
    """
    systems = [run.system.name for run in runs]
    if len(runs) < 2:
        raise BadInput("Leaving a system out needs the runs of at least two systems.")
    if len(set(systems)) != len(systems):
        raise BadInput("Choose one run of each system: two runs of one system stand for each other.")
    measure = asked.measures[0]
    families = _families(runs)
    key = digest(
        "reusability",
        release.content_hash,
        [[run.pk, run.content_hash, run.system.family] for run in runs],
        [measure.name, list(asked.rules), asked.unit, asked.split, asked.common],
        CODE_VERSION,
    )
    found = Analysis.objects.filter(key=key).first()
    if found is not None:
        return found
    known = read_known(release)
    rankings: dict[str, Rankings] = {}
    entries: dict[str, BoolArray | None] = {}
    for done, run in enumerate(runs):
        progress(done, 2 * len(runs), f"Reading {run.name}")
        loaded = read_run(run, known)
        rankings[run.system.name], entries[run.system.name] = loaded.rankings, loaded.inadmissible
    plan = plan_for(known, known.truth(), runs, asked)
    depths = {run.system.name: pool_membership(release, run).depth or 0 for run in runs}
    progress(len(runs), 2 * len(runs), "Leaving systems out")
    rows = leave_out(
        known.labels,
        rankings,
        depths,
        plan,
        measure,
        asked.rules,
        questions=len(known.questions.ids),
        families=families,
        classes=known.classes,
        inadmissible=None if (flags := known.inadmissible_labels()) is None else Inadmissible(flags, entries),
    )
    document = {
        "measure": measure.name,
        "threshold": asked.rules.threshold,
        "gain": asked.rules.gain,
        "n": len(plan.scored),
        "systems": [_left_out(row, depths[row.system]) for row in rows],
    }
    title = f"{measure.name} of {len(runs)} systems, each left out, on release {release.number}"
    return _keep(release, Analysis.Kind.REUSABILITY, key, title, document, by)


def _families(runs: Sequence[Run]) -> list[list[str]]:
    members: dict[str, list[str]] = {}
    for run in runs:
        if run.system.family:
            members.setdefault(run.system.family, []).append(run.system.name)
    return [systems for systems in members.values() if len(systems) > 1]


def _left_out(row: LeftOut, pooled_to: int) -> dict[str, Any]:
    return {**row._asdict(), "family": list(row.family), "pooled_to": pooled_to or None}


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
    key = digest(
        "stages", release.content_hash, [[run.pk, run.content_hash, run.k] for run in ordered], CODE_VERSION
    )
    found = Analysis.objects.filter(key=key).first()
    if found is not None:
        return found
    known = read_known(release)
    asked = Asked((), Rules(threshold=release.threshold), Unit.CHUNK, "", common=True)
    truth = known.truth()
    plan = plan_for(known, truth, ordered, asked)
    loaded = [read_run(run, known) for run in ordered]
    staged = [
        StageRun(
            stage=run.stage,  # type: ignore[arg-type]
            graded=match(truth, one.rankings, one.inadmissible),
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

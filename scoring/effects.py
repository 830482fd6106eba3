"""What the change from one release to another did to the scores of the runs that were scored on both."""

from __future__ import annotations

from typing import Any, NamedTuple

from labels.differences import changed_pairs, difference_of
from labels.models import Release
from pooling.models import Run
from scoring.models import ScoreResult, rate_beside


class MeasureChange(NamedTuple):
    """A measure on both releases, never without its unjudged rates. A mean is None where nothing could be scored."""

    measure: str
    before: float | None
    after: float | None
    unjudged_before: float
    unjudged_after: float

    @property
    def change(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before


class Effect(NamedTuple):
    """A run scored on both releases under the same policy, unit and split; by which threshold and gain each says."""

    run: Run
    before: ScoreResult
    after: ScoreResult
    measures: list[MeasureChange]

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.name,
            "policy": self.before.policy,
            "unit": self.before.unit,
            "split": self.before.split or None,
            "measures": {
                item.measure: {
                    "from": item.before,
                    "to": item.after,
                    "unjudged": {"from": item.unjudged_before, "to": item.unjudged_after},
                }
                for item in self.measures
            },
        }


class Effects(NamedTuple):
    """The effects by run, and the runs that were scored on the earlier release alone."""

    scored: list[Effect]
    not_scored: list[Run]


def effects_on_scores(before: Release, after: Release) -> Effects:
    """How stored scores differ between the releases. Nothing is computed: a run counts once it was scored on both."""
    old, new = _latest(before), _latest(after)
    scored = []
    for key in sorted(old.keys() & new.keys(), key=lambda key: (old[key].run.name, *map(str, key))):
        shared = [name for name in old[key].measures if name in new[key].measures]
        if shared:
            changes = [_change(name, old[key].averages, new[key].averages) for name in shared]
            scored.append(Effect(old[key].run, old[key], new[key], changes))
    on_both = {effect.run.pk for effect in scored}
    missing = {result.run_id: result.run for result in old.values() if result.run_id not in on_both}
    return Effects(scored, sorted(missing.values(), key=lambda run: run.name))


def _latest(release: Release) -> dict[tuple[Any, ...], ScoreResult]:
    """The latest result of each run under each set of rules that a person chooses."""
    results = ScoreResult.objects.filter(release=release).without_questions()
    results = results.select_related("run").order_by("created_at", "id")
    return {
        (item.run_id, item.policy, item.unit, item.split, item.count_inadmissible): item for item in results
    }


def _change(name: str, old: dict[str, Any], new: dict[str, Any]) -> MeasureChange:
    return MeasureChange(
        name, old["measures"][name], new["measures"][name], rate_beside(old, name), rate_beside(new, name)
    )


def difference_document(before: Release, after: Release) -> dict[str, Any]:
    """The whole of `diff_releases --json`: what differs between two releases, and what that did to stored scores."""
    found = difference_of(before, after)
    effects = effects_on_scores(before, after)
    return {
        "from": {"release": before.number, "hash": before.content_hash, **before.of_models},
        "to": {"release": after.number, "hash": after.content_hash, **after.of_models},
        "added": found.counts.added,
        "removed": found.counts.removed,
        "regraded": [
            {"from": old, "to": new, "count": count}
            for (old, new), count in sorted(found.counts.regraded.items())
        ],
        "of_models": {
            name: getattr(found.counts, name)
            for name in ("models_added", "models_removed", "judged", "unjudged", "same_grade")
        },
        "pairs": [
            {
                "question": pair.question,
                "chunk": pair.chunk,
                "from": pair.before,
                "to": pair.after,
                "from_model": bool(pair.model_before),
                "to_model": bool(pair.model_after),
            }
            for pair in changed_pairs(before, after)
        ],
        "questions": {
            "added": found.questions_added,
            "removed": found.questions_removed,
            "changed": found.questions_changed,
        },
        "classes": {"joined": found.joined, "split": found.split},
        "settings": {name: {"from": old, "to": new} for name, (old, new) in found.settings.items()},
        "scores": [effect.as_json() for effect in effects.scored],
        "not_scored_on_both": [run.name for run in effects.not_scored],
    }

"""Is the pool reusable? Leave one system (or a family of systems) out and see what its absence would have
cost it.

Source of the experiment: Zobel, "How reliable are the results of large-scale information retrieval
experiments?", SIGIR 1998, and Buckley et al., "Bias and the limits of pooling for large collections",
Information Retrieval 2007.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scoring.classes import (
    NO_GROUPS,
    BoolArray,
    Groups,
    Inadmissible,
    IntArray,
    Labels,
    Rankings,
    Truth,
    build_truth,
)
from scoring.matching import match, select
from scoring.measures import Measure
from scoring.policies import count_unjudged
from scoring.scores import Plan, Rules, score_run


class System(NamedTuple):
    """A system's rankings, with one flag an entry (None: nowhere) for what is no evidence or was cut."""

    rankings: Rankings
    inadmissible: BoolArray | None = None
    truncated: BoolArray | None = None


class LeftOut(NamedTuple):
    """What happens to a system (or each of a family) when the labels that only it contributed are taken away.

    ``removed`` counts the relevant labels that only the family contributed. The unjudged rates are those at the
    measure's depth over the scored questions. Ranks count from 1, the best;
    equal scores share the better rank. ``tau`` is Kendall's tau-b between the orders of all the systems
    before and after.
    """

    system: str
    family: tuple[str, ...]
    removed: int
    score_before: float
    score_after: float
    unjudged_before: float
    unjudged_after: float
    rank_before: int
    rank_after: int
    tau: float


def leave_out(
    labels: Labels,
    systems: Mapping[str, System],
    contributed: Mapping[str, BoolArray],
    plan: Plan,
    measure: Measure,
    rules: Rules,
    *,
    questions: int,
    families: Sequence[Sequence[str]] = (),
    classes: Groups = NO_GROUPS,
    cuts: Groups = NO_GROUPS,
    inadmissible: Inadmissible | None = None,
    by_model: BoolArray | None = None,
) -> list[LeftOut]:
    """Return one `LeftOut` for each of ``systems``, with its family; one in no family is left out by itself.

    ``contributed`` has one flag a label for each system that was pooled, scored here or not (see `returned_within`).
    ``by_model`` marks labels that no person gave.
    Only relevant labels are removed, and the questions of the plan stay the same: one that loses its last relevant
    label scores 0 for every system.
    """
    grouped = {name for family in families for name in family}
    parts = [tuple(family) for family in families] + [(name,) for name in systems if name not in grouped]

    def scores(keep: BoolArray) -> dict[str, _Score]:
        return _scores(
            labels, keep, systems, plan, measure, rules, questions, classes, cuts, inadmissible, by_model
        )

    before = scores(np.ones(len(labels.grade), dtype=bool))
    threshold = measure.rel or rules.threshold
    result = []
    for family in parts:
        others = _any([contributed[name] for name in contributed if name not in family], len(labels.grade))
        own = _any([contributed[name] for name in family if name in contributed], len(labels.grade))
        only = own & ~others & (labels.grade >= threshold)
        after = scores(~only) if only.any() else before
        tau = kendall_tau([before[name].mean for name in systems], [after[name].mean for name in systems])
        result += [
            LeftOut(
                system=name,
                family=family,
                removed=int(only.sum()),
                score_before=before[name].mean,
                score_after=after[name].mean,
                unjudged_before=before[name].unjudged,
                unjudged_after=after[name].unjudged,
                rank_before=_rank(before, name),
                rank_after=_rank(after, name),
                tau=tau,
            )
            for name in family
            if name in systems
        ]
    return result


def returned_within(labels: Labels, run: Rankings, depth: int) -> BoolArray:
    """Return, for each label, whether the run returns its chunk within the depth, and so contributed it."""
    rank = np.arange(len(run.chunk)) - np.repeat(run.start[:-1], run.lengths)
    top = rank < depth
    stride = int(max(run.chunk.max(initial=0), labels.chunk.max(initial=0))) + 1
    returned = (np.repeat(run.question, run.lengths) * stride + run.chunk)[top]
    return np.isin(labels.question * stride + labels.chunk, returned)


def _any(flags: Sequence[BoolArray], length: int) -> BoolArray:
    result = np.zeros(length, dtype=bool)
    for each in flags:
        result |= each
    return result


class _Score(NamedTuple):
    """A mean over the plan's questions, and the unjudged rate over the same."""

    mean: float
    unjudged: float


def _scores(
    labels: Labels,
    keep: BoolArray,
    systems: Mapping[str, System],
    plan: Plan,
    measure: Measure,
    rules: Rules,
    questions: int,
    classes: Groups,
    cuts: Groups,
    inadmissible: Inadmissible | None,
    by_model: BoolArray | None,
) -> dict[str, _Score]:
    """Return each system's score on the plan's questions, with only the labels that are kept."""
    kept = Labels(labels.question[keep], labels.chunk[keep], labels.grade[keep])
    truth = build_truth(
        kept,
        questions=questions,
        classes=classes,
        cuts=cuts,
        inadmissible=inadmissible,
        by_model=None if by_model is None else by_model[keep],
    )
    relevant = truth.rows_with_relevant(measure.rel or rules.threshold)
    still = Plan(plan.scored[relevant[plan.scored]], ())
    total = max(1, len(plan.scored))
    scored = {}
    for name, system in systems.items():
        run = score_run(
            truth,
            still,
            system.rankings,
            [measure],
            rules,
            inadmissible=system.inadmissible,
            truncated=system.truncated,
        )
        scored[name] = _Score(float(run.values.sum()) / total, _unjudged(truth, plan, system, measure))
    return scored


def _unjudged(truth: Truth, plan: Plan, system: System, measure: Measure) -> float:
    """Return the unjudged rate at the measure's depth, also over questions that have lost their last label."""
    graded = match(truth, system.rankings, system.inadmissible, system.truncated)
    rows = np.flatnonzero(np.isin(graded.question, plan.scored))
    return count_unjudged(select(graded, rows), measure.k).rate


def _rank(scores: Mapping[str, _Score], name: str) -> int:
    return 1 + sum(one.mean > scores[name].mean for one in scores.values())


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Kendall's tau-b of two lists of values for the same systems: 1 for one order, -1 for its
    reverse.

    Where one list does not order anything (fewer than two systems, or all tied) it is 1 if the other does not
    either, else 0. Source: Kendall, "The treatment of ties in ranking problems", Biometrika 1945.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    first, second = np.triu_indices(len(x), 1)
    sign_x: IntArray = np.sign(x[first] - x[second]).astype(np.int64)
    sign_y: IntArray = np.sign(y[first] - y[second]).astype(np.int64)
    ordered_x, ordered_y = int((sign_x != 0).sum()), int((sign_y != 0).sum())
    if ordered_x == 0 or ordered_y == 0:
        return 1.0 if ordered_x == ordered_y else 0.0
    return float((sign_x * sign_y).sum() / np.sqrt(ordered_x * ordered_y))

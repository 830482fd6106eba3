from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import F, Func, TextField
from django.http import QueryDict

from evalsets.errors import BadInput
from evalsets.listing import number_in
from evalsets.models import EvalSet, Question
from pooling.models import Pool, Run
from pooling.pooled import ancestors
from pooling.rankings import RunToDepth
from pooling.specifying import PoolSpecification, specify_pool
from pooling.strategies import FUSIONS

DEFAULT_K = 20
# A new pool begins with the latest run of each system, up to so many systems.
PRESELECTED = 12

FUSION_LABELS = {
    "rrf": "reciprocal-rank fusion (the usual choice)",
    "combsum": "CombSUM, over scores",
    "combmnz": "CombMNZ, over scores",
    "votes": "votes: how many runs returned it",
}
ORDERS = {
    "shuffled": "shuffled, so that the order tells nothing",
    "fused": "most promising first, so that judging may stop early",
}


class PoolForm(forms.Form):
    """A pool as people describe it. Valid, it has `specification`, which the preview and the build both take."""

    run = forms.ModelMultipleChoiceField(
        queryset=Run.objects.none(), error_messages={"required": "Choose at least one run."}
    )
    k = forms.IntegerField(
        label="Depth",
        min_value=1,
        max_value=1_000_000,
        initial=DEFAULT_K,
        help_text="How far down each ranking, where a run has no depth of its own. It may exceed what you report.",
    )
    strategy = forms.ChoiceField(
        choices=Pool.Strategy.choices, initial=Pool.Strategy.DEPTH, widget=forms.RadioSelect
    )
    budget = forms.IntegerField(
        label="Pairs a question, at most",
        min_value=1,
        required=False,
        initial=50,
        help_text="The first of the fused order, from the rankings alone; what is judged already is subtracted after.",
    )
    fusion = forms.ChoiceField(label="Fused by", choices=[(name, FUSION_LABELS[name]) for name in FUSIONS])
    order = forms.ChoiceField(label="Assessors meet the pairs", choices=list(ORDERS.items()))
    strata = forms.CharField(
        label="Ranks and rates",
        required=False,
        max_length=500,
        initial="1-10:1,11-50:0.2",
        help_text="1-10:1,11-50:0.2 takes every pair whose best rank is 1 to 10, and of those at 11 to 50 each with "
        "the chance 0.2. Nothing below the last stratum is pooled.",
    )
    slice = forms.ChoiceField(label="Slice", required=False)
    split = forms.ChoiceField(label="Split", required=False, choices=[("", "all"), *Question.Split.choices])
    questions = forms.CharField(
        label="Only these questions",
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="IDs, one a line. Empty: all.",
    )
    extends = forms.ModelChoiceField(
        label="Leave out what a pool covers",
        queryset=Pool.objects.none(),
        required=False,
        empty_label="nothing: a pool of its own",
    )
    seed = forms.IntegerField(
        label="Seed of the reading order and of lots",
        required=False,
        help_text="Empty: drawn from the pool's own content.",
    )

    def __init__(self, data: QueryDict, *, evalset: EvalSet) -> None:
        super().__init__(data)
        self.sent = data
        self.evalset = evalset
        self.specification: PoolSpecification | None = None
        self.runs = list(evalset.runs.select_related("system").order_by("system__name", "-date", "-pk"))
        self._choices_of(evalset)
        for run in self.runs:
            self.fields[depth_name(run)] = forms.IntegerField(
                min_value=1,
                max_value=1_000_000,
                required=False,
                label=f"Depth of {run.name}",
                widget=forms.NumberInput(
                    attrs={
                        "placeholder": "as above",
                        "class": "form-control form-control-sm",
                        "aria-label": f"Depth of {run.name}",
                    }
                ),
            )

    def _choices_of(self, evalset: EvalSet) -> None:
        run, extends, slices = self.fields["run"], self.fields["extends"], self.fields["slice"]
        assert isinstance(run, forms.ModelMultipleChoiceField)
        assert isinstance(extends, forms.ModelChoiceField)
        assert isinstance(slices, forms.ChoiceField)
        run.queryset = evalset.runs.select_related("system")
        extends.queryset = evalset.pools.all()
        slices.choices = [("", "all"), *((name, name) for name in slice_names(evalset))]

    def narrow_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ("slice", "split", "extends", "seed")]

    def run_choices(self) -> list[tuple[Run, bool, forms.BoundField]]:
        """Every run with whether it is chosen and its depth field, the chosen ones' systems in order of name."""
        chosen = set(self.sent.getlist("run"))
        return [(run, str(run.pk) in chosen, self[depth_name(run)]) for run in self.runs]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        by_pk = {run.pk for run in cleaned["run"]}
        parameters = {}
        if cleaned["strategy"] == Pool.Strategy.BUDGET:
            parameters = {name: cleaned[name] for name in ("budget", "fusion", "order")}
        elif cleaned["strategy"] == Pool.Strategy.STRATIFIED:
            parameters = {"strata": cleaned["strata"]}
        try:
            self.specification = specify_pool(
                evalset=self.evalset,
                runs=[
                    RunToDepth(run, cleaned[depth_name(run)] or cleaned["k"])
                    for run in self.runs
                    if run.pk in by_pk
                ],
                strategy=cleaned["strategy"],
                parameters=parameters,
                question_filter={
                    "slice": cleaned["slice"],
                    "split": cleaned["split"],
                    "questions": [line.strip() for line in cleaned["questions"].splitlines() if line.strip()],
                },
                extends=cleaned["extends"],
                seed=cleaned["seed"],
            )
        except BadInput as error:
            self.add_error(None, str(error))
        return cleaned

    def as_sent(self) -> list[tuple[str, str]]:
        """All that was sent, for the hidden fields of the form that builds what was previewed."""
        return [(name, value) for name in self.fields for value in self.sent.getlist(name) if value.strip()]


class PoolNameForm(forms.Form):
    name = forms.CharField(label="Name of the pool", max_length=200)


class SimulationForm(forms.Form):
    """Over which runs strategies are compared."""

    run = forms.ModelMultipleChoiceField(
        label="Runs", queryset=Run.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    k = forms.IntegerField(
        label="Depth", min_value=1, max_value=1000, initial=50, help_text="How far down each ranking."
    )

    def __init__(self, data: QueryDict | None = None, *, evalset: EvalSet) -> None:
        latest = evalset.runs.latest_of_each_system()
        super().__init__(data, initial={"run": list(latest[:PRESELECTED])})
        run = self.fields["run"]
        assert isinstance(run, forms.ModelMultipleChoiceField)
        run.queryset = latest


def depth_name(run: Run) -> str:
    return f"k-{run.pk}"


def slice_names(evalset: EvalSet) -> list[str]:
    each = Func(F("slices"), function="unnest", output_field=TextField())
    return sorted(set(evalset.questions.annotate(name=each).values_list("name", flat=True)))


def beginning(evalset: EvalSet, asked: QueryDict) -> QueryDict:
    """The data of a form that nobody has filled in yet; what the address says already stays.

    The latest run of each system is chosen; where a pool is to be extended, of each system that it lacks.
    """
    data = QueryDict(mutable=True)
    for name, field in PoolForm.base_fields.items():
        if field.initial is not None:
            data[name] = str(field.initial)
    data["fusion"], data["order"] = "rrf", "shuffled"
    for name in asked:
        data.setlist(name, asked.getlist(name))
    if "run" not in asked:
        runs = evalset.runs.latest_of_each_system()
        extended = evalset.pools.filter(pk=number_in(asked.get("extends"))).first()
        if extended:
            systems = [
                item.run.system_id
                for pool in ancestors(extended)
                for item in pool.pool_runs.select_related("run")
            ]
            runs = runs.exclude(system__in=systems)
        data.setlist("run", [str(run.pk) for run in runs[:PRESELECTED]])
    return data


def suggested_name(specification: PoolSpecification) -> str:
    """A name that no pool of the eval set has: the systems and the depth, with a number behind it when taken."""
    systems = list(dict.fromkeys(run.system.name for run, _ in specification.runs))
    depths = sorted({k for _, k in specification.runs})
    more = f" and {len(systems) - 3} more" if len(systems) > 3 else ""
    to = str(depths[0]) if len(depths) == 1 else f"{depths[0]}–{depths[-1]}"
    base = f"{', '.join(systems[:3])[:150]}{more} to {to}"
    taken = set(specification.evalset.pools.filter(name__startswith=base).values_list("name", flat=True))
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base} ({number})"
    return name

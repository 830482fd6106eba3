"""What people ask of the scoring pages: the same questions in the address of a page and in the body of an act."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError

from evalsets.errors import BadInput
from evalsets.models import EvalSet, Question
from labels.models import Release
from pooling.models import Run
from scoring.measures import parse_measures
from scoring.models import Policy, Unit
from scoring.services.scoring import Asked, resolve

DEFAULT_MEASURES = "Recall@5 nDCG@10 RR@10"
_NO_RELEASE = {"invalid_choice": "There is no release %(value)s here."}
_SPLITS = [("", "all questions"), *((value, f"{label} split") for value, label in Question.Split.choices)]


class AskForm(forms.Form):
    """The release and the rules; subclasses add the runs. After cleaning, `asked` holds the rules resolved."""

    release = forms.ModelChoiceField(
        Release.objects.none(), to_field_name="number", empty_label=None, error_messages=_NO_RELEASE
    )
    measures = forms.CharField(
        initial=DEFAULT_MEASURES,
        max_length=500,
        help_text="As ir_measures writes them: Recall@5, RR@10, P@5, Success@1, AP@10, nDCG@10, Judged@10, Bpref, "
        "RBP(p=0.8), infAP; several with spaces between them.",
    )
    unit = forms.ChoiceField(choices=Unit.choices, initial=Unit.CHUNK, required=False)
    split = forms.ChoiceField(choices=_SPLITS, required=False, label="Questions")
    threshold = forms.IntegerField(
        required=False, min_value=1, label="Relevant from grade", help_text="Empty: as the release says."
    )
    common = forms.BooleanField(
        required=False, label="Where rankings are missing, score the questions that all runs rank"
    )

    asked: Asked
    several = True

    def __init__(self, *args: Any, evalset: EvalSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.evalset = evalset
        releases = cast("forms.ModelChoiceField[Release]", self.fields["release"])
        releases.queryset = evalset.releases.all()
        for name in self.run_fields:
            field = cast("forms.ModelChoiceField[Run]", self.fields[name])
            field.queryset = evalset.runs.select_related("system").order_by("name")
            field.error_messages["invalid_choice"] = "There is no run %(value)s here."

    run_fields: tuple[str, ...] = ()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        try:
            self.asked = resolve(cleaned["release"], policy=cleaned.get("policy") or "raw", **self.rules())
        except BadInput as error:
            raise ValidationError(str(error)) from None
        if not self.several and len(self.asked.measures) > 1:
            self.add_error("measures", "Name one measure here.")
        return cleaned

    def rules(self) -> dict[str, Any]:
        """The rules as keyword arguments of `resolve`, JSON-ready."""
        data = self.cleaned_data
        return {
            "measures": data["measures"].split(),
            "unit": data.get("unit") or Unit.CHUNK.value,
            "split": data.get("split") or "",
            "threshold": data.get("threshold"),
            "common": bool(data.get("common")),
        }

    def runs(self) -> list[Run]:
        """The chosen runs, each once, in the order of the fields."""
        chosen: dict[int, Run] = {}
        for name in self.run_fields:
            value = self.cleaned_data.get(name)
            for run in [value] if isinstance(value, Run) else value or []:
                chosen[run.pk] = run
        return list(chosen.values())

    def parameters(self) -> dict[str, Any]:
        """What is asked, JSON-ready, for `scoring.services.requests.perform`."""
        return {
            "release": self.cleaned_data["release"].number,
            "runs": [run.pk for run in self.runs()],
            "rules": {**self.rules(), "policy": self.cleaned_data.get("policy") or "raw"},
        }


class ScoreForm(AskForm):
    runs_chosen = forms.ModelMultipleChoiceField(
        Run.objects.none(), to_field_name="name", widget=forms.CheckboxSelectMultiple, label="Runs"
    )
    policy = forms.ChoiceField(choices=Policy.choices, initial=Policy.RAW, required=False)
    run_fields = ("runs_chosen",)
    field_order = ["release", "runs_chosen", "measures", "policy", "unit", "split", "threshold", "common"]

    def clean_measures(self) -> str:
        return normal_measures(self.cleaned_data["measures"])


class CompareForm(AskForm):
    a = forms.ModelChoiceField(Run.objects.none(), to_field_name="name", label="Baseline (A)")
    b = forms.ModelChoiceField(Run.objects.none(), to_field_name="name", label="Compared with it (B)")
    run_fields = ("a", "b")
    field_order = ["release", "a", "b", "measures", "unit", "split", "threshold", "common"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["measures"].initial = "Recall@5"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("a") and cleaned.get("a") == cleaned.get("b"):
            self.add_error("b", "Choose another run than the baseline.")
        return cleaned


class SweepForm(AskForm):
    baseline = forms.ModelChoiceField(Run.objects.none(), to_field_name="name")
    candidates = forms.ModelMultipleChoiceField(
        Run.objects.none(), to_field_name="name", widget=forms.CheckboxSelectMultiple
    )
    run_fields = ("baseline", "candidates")
    field_order = ["release", "baseline", "candidates", "measures", "unit", "split", "threshold", "common"]
    several = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["measures"].initial = "Recall@5"
        self.fields["measures"].label = "Measure"
        self.fields["measures"].help_text = "One, as ir_measures writes it."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors and len(self.runs()) < 2:
            self.add_error("candidates", "Choose a run other than the baseline.")
        return cleaned


class ReusabilityForm(AskForm):
    chosen = forms.ModelMultipleChoiceField(
        Run.objects.none(),
        to_field_name="name",
        widget=forms.CheckboxSelectMultiple,
        label="Runs, one of each system",
    )
    run_fields = ("chosen",)
    field_order = ["release", "chosen", "measures", "split", "threshold", "common"]
    several = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["unit"]
        self.fields["measures"].initial = "Recall@10"
        self.fields["measures"].label = "Measure"
        self.fields["measures"].help_text = "One, as ir_measures writes it."


class StagesForm(forms.Form):
    release = forms.ModelChoiceField(
        Release.objects.none(), to_field_name="number", empty_label=None, error_messages=_NO_RELEASE
    )
    candidates = forms.ModelChoiceField(Run.objects.none(), to_field_name="name", required=False)
    reranked = forms.ModelChoiceField(Run.objects.none(), to_field_name="name", required=False)
    context = forms.ModelChoiceField(Run.objects.none(), to_field_name="name", required=False)

    def __init__(self, *args: Any, evalset: EvalSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        releases = cast("forms.ModelChoiceField[Release]", self.fields["release"])
        releases.queryset = evalset.releases.all()
        for stage in Run.Stage.values:
            field = cast("forms.ModelChoiceField[Run]", self.fields[stage])
            field.queryset = evalset.runs.filter(stage=stage).select_related("system").order_by("name")

    def parameters(self) -> dict[str, Any]:
        """What is asked, JSON-ready, for `scoring.services.requests.perform`."""
        chosen = [self.cleaned_data[stage] for stage in Run.Stage.values if self.cleaned_data[stage]]
        return {"release": self.cleaned_data["release"].number, "runs": [run.pk for run in chosen]}


def normal_measures(text: str) -> str:
    """The measures by their full names, with one space between them; as it was where one cannot be read."""
    try:
        return " ".join(measure.name for measure in parse_measures(text.split()))
    except ValueError:
        return text

"""The forms of the import page: one a kind of file, whose fields are the options of that kind's service."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evalsets.models import EvalSet, Member
from evalsets.strict_json import parse_document
from pooling.formats import FORMATS, Kind
from pooling.models import Run


class ImportForm(forms.Form):
    """What every import is asked: the file, and its format where the guess is not to be trusted."""

    kind: Kind
    title: str
    purpose: str
    # Fields that most files need no word about; the page folds them away.
    folded: tuple[str, ...] = ()

    file = forms.FileField(
        label="File", help_text="Plain, gzip, zstd, or a zip with one file in it; told by its content."
    )
    format = forms.ChoiceField(
        required=False, help_text="What the file is taken for is shown before anything is written."
    )

    def __init__(self, *args: Any, evalset: EvalSet, with_file: bool = True, **kwargs: Any) -> None:
        """`with_file` is false where a file that was sent already is checked again with other options."""
        super().__init__(*args, **kwargs)
        self.evalset = evalset
        choices = [(item.name, f"{item.name}: {item.description}") for item in FORMATS[self.kind]]
        self.fields["format"].choices = [("", "told from the content"), *choices]  # type: ignore[attr-defined]
        if not with_file:
            del self.fields["file"]

    def shown_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.folded]

    def folded_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name in self.folded]

    def folded_is_open(self) -> bool:
        """Whether a folded field says something, or is wrong: then it must be seen."""
        return any(field.errors or field.name in self.initial for field in self.folded_fields())

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the service that differ from its defaults, JSON-ready."""
        given = {name: value for name, value in self.cleaned_data.items() if name != "file"}
        return {name: value for name, value in given.items() if value not in ("", None, False, {})}


class QuestionsForm(ImportForm):
    kind = "questions"
    title = "Questions"
    purpose = "The information needs. Bring them in first; everything else refers to them."


class ChunksForm(ImportForm):
    kind = "chunks"
    title = "Chunks"
    purpose = (
        "The passages that systems return, with their texts. The same ID with another text is a new revision."
    )
    only_referenced = forms.BooleanField(
        required=False,
        label="Only those that some run has returned",
        help_text="For a large corpus: bring in the runs first, then keep just the texts they need.",
    )


class RunForm(ImportForm):
    kind = "run"
    title = "Run"
    purpose = "What one system returned for all questions, once."
    folded = (
        "run",
        "stage",
        "k",
        "version",
        "date",
        "config",
        "order",
        "duplicates",
        "unknown_questions",
        "missing",
    )
    system = forms.CharField(
        max_length=200, required=False, help_text="Its system; empty: taken from the tag in the file."
    )
    run = forms.CharField(
        max_length=200, required=False, label="Name of the run", help_text="Empty: the system's name."
    )
    stage = forms.ChoiceField(choices=Run.Stage.choices, initial=Run.Stage.RERANKED, required=False)
    k = forms.IntegerField(min_value=1, max_value=1_000_000, required=False, label="k asked for")
    version = forms.CharField(max_length=200, required=False, label="Version of the system")
    date = forms.DateField(
        required=False,
        label="Day it ran",
        help_text="Empty: today.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    config = forms.CharField(
        required=False,
        label="Configuration",
        help_text="A JSON object: model, index, chunker, corpus_snapshot, permission_scope, … "
        "A comparison names what differs.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    order = forms.ChoiceField(
        choices=[("score", "by score, equal ones by rank"), ("rank", "by the rank column")],
        initial="score",
        required=False,
        label="Order of a ranking",
    )
    duplicates = forms.ChoiceField(
        choices=[("", "is a fault"), ("keep-first", "keep the first, and record that")],
        required=False,
        label="A chunk twice in one ranking",
    )
    unknown_questions = forms.ChoiceField(
        choices=[("", "is a fault"), ("skip", "skip it, and record that")],
        required=False,
        label="A question that the eval set does not have",
    )
    missing = forms.ChoiceField(
        choices=[("", "is missing"), ("empty", "returned nothing, and record that")],
        required=False,
        label="A question that the file does not have",
    )

    def clean_config(self) -> dict[str, Any]:
        text = self.cleaned_data["config"].strip()
        if not text:
            return {}
        try:
            config = parse_document(text)
        except ValueError as error:
            raise ValidationError(f"This is not JSON: {error}.") from None
        if not isinstance(config, dict):
            raise ValidationError('Write a JSON object, for example {"model": "bm25", "k1": 0.9}.')
        return config

    def clean_date(self) -> str | None:
        date = self.cleaned_data["date"]
        return date.isoformat() if date else None


class QrelsForm(ImportForm):
    kind: Kind = "qrels"
    title = "Existing labels"
    purpose = "Judgments that were made elsewhere. They subtract from pools like any other."
    folded = ("negative", "unknown_questions")
    negative = forms.ChoiceField(
        choices=[
            ("", "are a fault"),
            ("skip", "mean “not judged”: import no label for them"),
            ("zero", "mean “no”: import grade 0"),
        ],
        required=False,
        label="Grades below zero",
    )
    unknown_questions = forms.ChoiceField(
        choices=[("", "is a fault"), ("skip", "skip it, and record that")],
        required=False,
        label="A question that the eval set does not have",
    )


class VerdictsForm(ImportForm):
    kind = "verdicts"
    title = "Answers to a remainder"
    purpose = "The remainder of a pool, judged elsewhere: the downloaded file with its grades filled in."
    assessor = forms.ChoiceField(help_text="Whose judgments they are.")

    def __init__(self, *args: Any, evalset: EvalSet, **kwargs: Any) -> None:
        super().__init__(*args, evalset=evalset, **kwargs)
        members = (
            Member.objects.filter(evalset=evalset).exclude(role=Member.Role.VIEWER).select_related("user")
        )
        choices = [(member.user.username, str(member.user)) for member in members]
        self.fields["assessor"].choices = choices  # type: ignore[attr-defined]


class JudgeForm(QrelsForm):
    kind = "judge"
    title = "Outside judge"
    purpose = (
        "Grades that a model or a rule gave. They are compared with people's and never count as judgments: they "
        "take nothing from a pool, and enter a release only where the lead says so for it."
    )
    judge = forms.CharField(
        max_length=200, label="Name of the judge", help_text="Such as its model and prompt: gpt-4o, prompt 3."
    )
    repetition = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1000,
        initial=1,
        help_text="The same judge run again on the same pairs is its repetition 2; how often it changes its mind "
        "shows how far it can be trusted. Empty: 1.",
    )


FORMS: dict[str, type[ImportForm]] = {
    form.kind: form for form in (QuestionsForm, ChunksForm, RunForm, QrelsForm, VerdictsForm, JudgeForm)
}

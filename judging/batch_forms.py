"""What a lead says of a batch."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet

from evalsets.models import EvalSet, Member, User
from judging.models import Assessor, Batch, BatchQuestion
from judging.services.batches import at_most_one_each, is_over
from judging.services.gold import Gold
from pooling.models import Pool

MOST_GOLD = 50
MOST_GOLD_BYTES = 10 * 2**20


def may_judge(evalset: EvalSet) -> QuerySet[User]:
    """The members who can be named for a batch, by name."""
    roles = [Member.Role.LEAD, Member.Role.ASSESSOR]
    return User.objects.filter(memberships__evalset=evalset, memberships__role__in=roles).order_by("username")


class PeopleField(forms.ModelMultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, user: User) -> str:
        return user.username if str(user) == user.username else f"{user} ({user.username})"


class BatchForm(forms.Form):
    """A batch as a lead describes it."""

    pool = forms.ModelChoiceField(
        queryset=Pool.objects.none(), empty_label=None, help_text="What is left of it goes into the batch."
    )
    name = forms.CharField(
        max_length=200, help_text="Assessors see it: name the content or the week, never a system."
    )
    assessors = PeopleField(
        queryset=User.objects.none(), error_messages={"required": "Name at least one assessor."}
    )
    sharing = forms.ChoiceField(
        label="Work is shared",
        choices=Batch.Sharing.choices,
        initial=Batch.Sharing.BY_QUESTION,
        widget=forms.RadioSelect,
    )
    without_copies = forms.BooleanField(
        required=False,
        label="Leave out copies of chunks that are judged already",
        help_text="A chunk in a class with a member that is judged for the question stands for what was judged.",
    )
    overlap = forms.IntegerField(
        label="Independent judgments of an overlapping pair",
        min_value=1,
        max_value=50,
        initial=2,
        help_text="Overlap shows whether people agree. Nobody judges a pair twice.",
    )
    overlap_percent = forms.FloatField(
        label="Share of pairs that overlap, in per cent",
        min_value=0,
        max_value=100,
        initial=0,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    again = forms.BooleanField(
        required=False,
        label="Ask for second judgments too",
        help_text="As large a share of the pairs that too few people have judged goes in, for the judgments they lack.",
    )
    gold = forms.ChoiceField(
        label="Gold pairs",
        required=False,
        choices=[
            ("", "none"),
            ("decided", "pairs of these questions that a lead has decided"),
            ("file", "known answers of a file"),
        ],
        widget=forms.RadioSelect,
        help_text="Pairs with a known answer, mixed in to see how well each one grades. Every assessor meets all of "
        "them, and cannot tell them from others. What is said of them changes no label.",
    )
    gold_percent = forms.FloatField(
        label="Share of each one’s work that is gold, in per cent",
        required=False,
        initial=5,
        widget=forms.NumberInput(attrs={"step": "any", "min": "0", "max": "50"}),
    )
    gold_file = forms.FileField(
        label="File of known answers",
        required=False,
        help_text="One a line: question, chunk, grade; or any form of qrels. Those that are drawn become decisions.",
    )
    due_on = forms.DateField(
        label="Due on", required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    lease_minutes = forms.IntegerField(
        label="Idle minutes until open work goes back",
        min_value=1,
        max_value=10_000,
        initial=30,
        help_text="What was judged stays judged; the rest goes to the others.",
    )
    instructions = forms.CharField(
        required=False,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Markdown. With the scale it makes the rubric; each judgment records which version was on screen.",
    )

    def __init__(self, *args: Any, evalset: EvalSet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["pool"].queryset = evalset.pools.all()  # type: ignore[attr-defined]
        self.fields["assessors"].queryset = may_judge(evalset)  # type: ignore[attr-defined]

    def clean_due_on(self) -> datetime.date | None:
        due_on: datetime.date | None = self.cleaned_data["due_on"]
        if due_on is not None and (said := is_over(due_on)):
            raise forms.ValidationError(said)
        return due_on

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not cleaned.get("overlap_percent"):
            cleaned["overlap"] = 1
        people = len(cleaned.get("assessors", []))
        if 0 < people < cleaned.get("overlap", 1):
            self.add_error("overlap", at_most_one_each(people))
        if cleaned.get("gold"):
            percent = cleaned.get("gold_percent")
            if "gold_percent" in cleaned and (percent is None or not 0 < percent <= MOST_GOLD):
                self.add_error("gold_percent", f"Say a share above 0 and at most {MOST_GOLD} per cent.")
            if cleaned["gold"] == "file":
                self._check_gold_file(cleaned.get("gold_file"))
        return cleaned

    def _check_gold_file(self, upload: UploadedFile | None) -> None:
        if upload is None:
            self.add_error("gold_file", "Choose the file that has the known answers.")
        elif (upload.size or 0) > MOST_GOLD_BYTES:
            self.add_error("gold_file", f"Known answers are few: at most {MOST_GOLD_BYTES // 2**20} MiB.")

    @contextmanager
    def settings(self) -> Iterator[dict[str, Any]]:
        """The arguments of `make_batch`, without who acts. An upload lies on the disk as long as they are in use."""
        settings = {**self.cleaned_data, "assessors": list(self.cleaned_data["assessors"])}
        settings["overlap_share"] = settings.pop("overlap_percent") / 100
        settings["sharing"] = Batch.Sharing(settings["sharing"])
        source, percent, upload = (settings.pop(name) for name in ("gold", "gold_percent", "gold_file"))
        with NamedTemporaryFile() as file:
            settings["gold"] = Gold(share=percent / 100) if source else None
            if source == "file":
                for block in upload.chunks():
                    file.write(block)
                file.flush()
                settings["gold"] = Gold(share=percent / 100, file=Path(file.name), file_name=upload.name)
            yield settings


class ExtendForm(forms.Form):
    """More assessors, more pairs, another due date."""

    assessors = PeopleField(label="Add assessors", queryset=User.objects.none(), required=False)
    due_on = forms.DateField(
        label="Due on", required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )

    more_pairs = forms.BooleanField(
        label="Take in what is new in the pool’s remainder",
        required=False,
        help_text="Pairs that nobody has judged and no open batch has, with the same share of overlap.",
    )

    def __init__(self, *args: Any, batch: Batch, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = may_judge(batch.evalset).exclude(assessors__batches=batch)
        self.fields["assessors"].queryset = others  # type: ignore[attr-defined]
        self.initial.setdefault("due_on", batch.due_on)


class ReassignForm(forms.Form):
    """Which questions go to whom; nobody named means whoever comes."""

    questions = forms.ModelMultipleChoiceField(
        queryset=BatchQuestion.objects.none(), error_messages={"required": "Tick the questions to reassign."}
    )
    to = forms.ModelChoiceField(queryset=Assessor.objects.none(), required=False)

    def __init__(self, *args: Any, batch: Batch, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["questions"].queryset = batch.batch_questions.all()  # type: ignore[attr-defined]
        self.fields["to"].queryset = batch.assessors.all()  # type: ignore[attr-defined]

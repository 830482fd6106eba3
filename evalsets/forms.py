from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evalsets.models import EvalSet, Member, User, default_scale


class ScaleField(forms.CharField):
    """A scale as lines of "name: definition", one a grade, lowest first."""

    widget = forms.Textarea(attrs={"rows": 6})
    default_error_messages = {"form": "Line {line} has no colon; write “Name: definition”."}

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, list):
            return "\n".join(f"{item['name']}: {item['definition']}" for item in value)
        return value

    def to_python(self, value: Any) -> Any:
        scale = []
        for number, line in enumerate((value or "").strip().splitlines(), start=1):
            name, colon, definition = line.partition(":")
            if not colon:
                raise ValidationError(self.error_messages["form"].format(line=number))
            scale.append({"grade": number - 1, "name": name.strip(), "definition": definition.strip()})
        return scale

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial) != data)


class EvalSetForm(forms.ModelForm):
    scale = ScaleField(
        label="Scale",
        initial=default_scale,
        help_text="One grade a line, lowest first: “Name: definition”. The first line is grade 0.",
    )

    class Meta:
        model = EvalSet
        fields = [
            "name",
            "slug",
            "description",
            "scale",
            "threshold",
            "gain",
            "settle_policy",
            "adjudication_tolerance",
            "low_unjudged_rate",
            "seconds_per_judgment",
            "count_inadmissible",
        ]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
        labels = {
            "slug": "Short name",
            "threshold": "Relevant from grade",
            "gain": "Gain for nDCG",
            "settle_policy": "Where judgments differ, the label is",
            "adjudication_tolerance": "A lead decides where grades differ by more than",
            "low_unjudged_rate": "Low unjudged rate",
            "seconds_per_judgment": "Seconds a judgment, for estimates",
            "count_inadmissible": "Score inadmissible chunks by their label",
        }
        error_messages = {"slug": {"invalid": "Use lower-case letters, digits and hyphens."}}


class EvalSetSettingsForm(EvalSetForm):
    """The settings of a set that exists. Its short name is part of every address, so it stays."""

    class Meta(EvalSetForm.Meta):
        fields = [name for name in EvalSetForm.Meta.fields if name != "slug"]


class MemberForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        help_text="Of somebody who can sign in already. For somebody new, give a first password below as well.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    role = forms.ChoiceField(choices=Member.Role.choices, initial=Member.Role.ASSESSOR)
    password = forms.CharField(
        required=False,
        label="First password",
        help_text="Only for somebody new; they can change it after they have signed in.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        username, password = cleaned.get("username"), cleaned.get("password")
        if not username:
            return cleaned
        known = User.objects.filter(username=username).exists()
        if not known and not password:
            self.add_error(
                "username", f"Nobody is called {username!r}. Give a first password to make that user."
            )
        if known and password:
            self.add_error("password", f"{username} can sign in already; leave the password empty.")
        return cleaned


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="Name",
        help_text="What it is for, such as “ci” or “nightly import”.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        choices=Member.Role.choices,
        initial=Member.Role.VIEWER,
        help_text="Lead: push runs, build pools, publish, compare. Viewer: read. Assessor: see what assessors see.",
    )
    days = forms.TypedChoiceField(
        label="Ends",
        choices=[("30", "after 30 days"), ("90", "after 90 days"), ("365", "after a year"), ("", "never")],
        initial="90",
        coerce=int,
        empty_value=None,
        required=False,
    )

    def settings(self) -> dict[str, Any]:
        """The arguments of `create_token`, without who acts."""
        return {**self.cleaned_data, "role": Member.Role(self.cleaned_data["role"])}

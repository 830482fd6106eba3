from __future__ import annotations

from django import forms


class PublishForm(forms.Form):
    notes = forms.CharField(
        required=False,
        max_length=5000,
        help_text="What readers of the release should know: what was judged since the last one, and why.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    include_models = forms.BooleanField(
        required=False,
        label="Let grades of outside judges (models) count",
        help_text="Every file of the release then says which labels rest on them.",
    )

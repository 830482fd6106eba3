from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms


class PublishForm(forms.Form):
    notes = forms.CharField(
        required=False,
        max_length=5000,
        help_text="What readers of the release should know: what was judged since the last one, and why.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    judges = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, *args: Any, judges: Iterable[str], **kwargs: Any) -> None:
        """`judges` are the names of the outside judges that the lead may let in."""
        super().__init__(*args, **kwargs)
        self.fields["judges"].choices = [(name, name) for name in judges]  # type: ignore[attr-defined]

"""What comes in from the desk."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from evalsets.strict_json import parse_document
from judging.models import Judgment
from judging.services.judgments import Verdict

LATER = "later"
# "grade:2", "copy:17:2" (the grade that the assessor gave to chunk 17), "skip:broken-text", "cannot-judge:other" or
# "later": each is one button of the desk.
ACT = re.compile(r"\A(grade:\d|copy:\d{1,9}:\d|(skip|cannot-judge):[a-z-]+|later)\Z")
MOST_NOTE = 10_000
MOST_SPANS = 200


class DeskForm(forms.Form):
    """One act on one pair. Its button says the act; the rest are the fields around it."""

    pair = forms.IntegerField()
    key = forms.UUIDField()
    # Who was signed in when the page was made: a tab left open does not judge in the next person's name.
    as_user = forms.IntegerField()
    revision = forms.IntegerField(
        min_value=1, required=False, help_text="Of the chunk's text that was on screen."
    )
    act = forms.RegexField(ACT)
    note = forms.CharField(required=False, max_length=MOST_NOTE, strip=True)
    facts = forms.Field(required=False, widget=forms.SelectMultiple)
    spans = forms.CharField(required=False, help_text="JSON.")
    evidence = forms.CharField(
        required=False,
        max_length=MOST_NOTE,
        help_text="More spans, as words of the text: one passage a line.",
    )
    unmark = forms.Field(required=False, widget=forms.SelectMultiple, help_text="Spans to leave out.")
    seconds = forms.FloatField(required=False)
    chosen_ago = forms.FloatField(required=False, min_value=0, help_text="Seconds it waited in the browser.")

    def clean_spans(self) -> list[dict[str, Any]]:
        try:
            spans = parse_document(self.cleaned_data["spans"] or "[]")
        except ValueError as error:
            raise ValidationError(f"Marked evidence is not JSON: {error}.") from None
        if not isinstance(spans, list) or not all(
            isinstance(span, dict)
            and isinstance(span.get("start"), int)
            and isinstance(span.get("end"), int)
            and isinstance(span.get("text"), str)
            for span in spans
        ):
            raise ValidationError("Marked evidence is a list of {start, end, text}.")
        return [{name: span[name] for name in ("start", "end", "text")} for span in spans]

    def clean_facts(self) -> list[str]:
        facts = self.cleaned_data["facts"] or []
        if any("\x00" in fact for fact in facts):
            raise ValidationError("No fact has an ID with a NUL character.")
        return list(facts)

    def clean(self) -> None:
        if "spans" in self.cleaned_data and len(self._spans()) > MOST_SPANS:
            raise ValidationError(f"More than {MOST_SPANS} passages are marked as evidence.")

    def clean_chosen_ago(self) -> timedelta:
        return timedelta(seconds=min(self.cleaned_data["chosen_ago"] or 0.0, 1e7))

    def _spans(self) -> list[dict[str, Any]]:
        dropped = set(self.cleaned_data.get("unmark") or [])
        kept = [span for place, span in enumerate(self.cleaned_data["spans"]) if str(place) not in dropped]
        lines = filter(None, map(str.strip, self.cleaned_data.get("evidence", "").splitlines()))
        return kept + [{"start": 0, "end": len(line), "text": line} for line in lines]

    @property
    def is_later(self) -> bool:
        return bool(self.cleaned_data["act"] == LATER)

    def verdict(self) -> Verdict:
        """What the act says of the pair; not for `later`, which says nothing of it."""
        kind, _, detail = self.cleaned_data["act"].partition(":")
        copied_from, grade, reason = None, None, ""
        if kind == "copy":
            chunk, _, detail = detail.partition(":")
            kind, copied_from = Judgment.Kind.GRADE, int(chunk)
        if kind == Judgment.Kind.GRADE:
            grade = int(detail)
        else:
            reason = detail
        return Verdict(
            kind=Judgment.Kind(kind),
            grade=grade,
            reason=reason,
            note=self.cleaned_data["note"],
            spans=self._spans(),
            facts=self.cleaned_data["facts"],
            copied_from=copied_from,
        )

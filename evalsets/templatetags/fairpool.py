"""Filters and tags that every template may use."""

from __future__ import annotations

from typing import Any

from django import forms, template
from django.forms import BoundField
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from evalsets import unseen
from evalsets.models import EvalSet, Member

register = template.Library()

_LEAD, _ASSESSOR, _VIEWER = Member.Role.LEAD, Member.Role.ASSESSOR, Member.Role.VIEWER

# The sections of an eval set: address name, label, and the roles that may open it.
SECTIONS: list[tuple[str, str, set[str]]] = [
    ("evalset-home", "Home", {_LEAD, _ASSESSOR, _VIEWER}),
    ("labels:question-list", "Questions", {_LEAD, _VIEWER}),
    ("labels:chunk-list", "Chunks", {_LEAD, _VIEWER}),
    ("labels:duplicate-list", "Copies", {_LEAD}),
    ("labels:system-list", "Systems", {_LEAD, _VIEWER}),
    ("judging:import", "Import", {_LEAD}),
    ("judging:pool-list", "Pools", {_LEAD, _VIEWER}),
    ("judging:batch-list", "Batches", {_LEAD, _ASSESSOR, _VIEWER}),
    ("labels:agreement", "Agreement", {_LEAD}),
    ("labels:release-list", "Releases", {_LEAD, _ASSESSOR, _VIEWER}),
    ("scoring:score-list", "Scores", {_LEAD, _VIEWER}),
    ("evalsets:job-list", "Jobs", {_LEAD}),
    ("evalsets:member-list", "Members", {_LEAD}),
    ("evalsets:token-list", "Tokens", {_LEAD}),
    ("evalsets:settings", "Settings", {_LEAD}),
    ("evalsets:audit", "Audit", {_LEAD}),
]


# Characters that nobody sees, and that turn others round, by their names.
register.filter("shown", unseen.shown)


@register.filter
def percent(rate: float | None, digits: int = 1) -> str:
    """A rate from 0 to 1 as per cent: 0.125 is "12.5 %". None is an en dash."""
    return "–" if rate is None else f"{rate * 100:.{digits}f} %"


@register.filter
def score(value: float | None) -> str:
    """A score to four digits, as the field prints it; None is an en dash."""
    return "–" if value is None else f"{value:.4f}"


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as a reader says them: 40 s, 12 min, 3.5 h. None is an en dash."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@register.filter
def bootstrap(field: BoundField) -> SafeString:
    """A form field with Bootstrap's classes and, where its input is wrong, marked for screen readers.

    The first wrong field of a form takes the focus; of a list of choices, its first choice. Where the form as a whole
    is wrong, what is said of that has it (`includes/form_errors.html`).
    """
    widget = field.field.widget
    if isinstance(widget, forms.CheckboxInput):
        css = "form-check-input"
    elif isinstance(widget, (forms.RadioSelect, forms.CheckboxSelectMultiple)):
        css = "choices"  # the class of the list of choices too
    elif isinstance(widget, forms.Select):
        css = "form-select"
    else:
        css = "form-control"
    attrs: dict[str, str | bool] = {"class": css + (" is-invalid" if field.errors else "")}
    wrong = [other.name for other in field.form.visible_fields() if other.errors]
    if field.form.non_field_errors():
        attrs["autofocus"] = False
    elif wrong:
        attrs["autofocus"] = field.name == wrong[0]
    return field.as_widget(attrs=attrs)


@register.simple_tag
def grade(value: int | None, evalset: EvalSet) -> SafeString:
    """A grade as one hue plus its digit; None, unjudged, is an open ring and never a zero."""
    if value is None:
        return mark_safe('<span class="unjudged" role="img" aria-label="unjudged" title="unjudged"></span>')
    steps = {0: "grade-low", evalset.max_grade: "grade-high"}
    css = steps.get(value, "grade-1" if value * 2 < evalset.max_grade else "grade-2")
    name = evalset.grade_name(value)
    return format_html('<span class="grade {}" title="{}">{}</span>', css, name, value)


@register.inclusion_tag("includes/evalset_nav.html", takes_context=True)
def evalset_nav(context: Context) -> dict[str, Any]:
    """The sections of an eval set that the reader's role may open; the one they are in is marked."""
    request, evalset = context["request"], context["evalset"]
    links = []
    for url_name, label, roles in SECTIONS:
        if request.role not in roles:
            continue
        url = reverse(url_name, args=[evalset.slug])
        here = request.path == url if url_name == "evalset-home" else request.path.startswith(url)
        links.append({"url": url, "label": label, "here": here})
    return {"links": links}


@register.filter
def heat(share: float | None) -> int:
    """The step, 0 to 10, of a share from 0 to 1: for the class heat-N of a table cell."""
    return 0 if share is None else max(0, min(10, round(share * 10)))


@register.inclusion_tag("includes/sort_header.html", takes_context=True)
def sort_header(
    context: Context, name: str, label: str, css: str = "", definition: str = ""
) -> dict[str, Any]:
    """A table heading that sorts the list by this column, and the other way round when it does already.

    A page that says in `sort` how it is sorted has the mark where the address says nothing, too. `definition` names an
    entry of the scores' definitions, for its "?".
    """
    request = context["request"]
    sort, descending = context.get("sort", request.GET.get("sort", "")), f"-{name}"
    return {
        "request": request,
        "name": name,
        "label": label,
        "css": css,
        "definition": definition,
        "evalset": context.get("evalset"),
        "sort": sort,
        "descending": descending,
        "target": descending if sort == name else name,
        "list_address": context.get("list_address", ""),
    }


@register.simple_tag(takes_context=True)
def rest_of_address(context: Context, *fields: str) -> SafeString:
    """Hidden fields with what the address says beside `fields` and the page: a form that sends them keeps it."""
    said = context["request"].GET.lists()
    rest = [(name, value) for name, values in said if name not in {*fields, "page"} for value in values]
    return format_html_join("", '<input type="hidden" name="{}" value="{}">', rest)


@register.filter
def split_words(words: str) -> list[str]:
    """ "dev holdout" as a list, for a template's short fixed choices."""
    return words.split()

"""Filters of the scoring pages."""

from __future__ import annotations

import re

from django import template

register = template.Library()


@register.filter
def signed(value: float | None) -> str:
    """A difference to four digits with its sign, a true minus; None is an en dash."""
    if value is None:
        return "–"
    text = f"{value:+.4f}".replace("-", "−")
    return "0.0000" if text in ("+0.0000", "−0.0000") else text


@register.filter
def p_value(value: float) -> str:
    """A p-value to three digits; a smaller one is said to be smaller."""
    return "under 0.001" if value < 0.001 else f"{value:.3f}"


@register.filter
def minus(value: float, other: float) -> float:
    """The difference of two numbers of a row."""
    return value - other


@register.filter
def definition(measure: str) -> str:
    """The name under which the definitions' page tells what a measure is: "recall" for Recall@5."""
    family = re.split(r"[@(]", measure)[0].lower()
    return "inferred" if family.startswith("inf") else family

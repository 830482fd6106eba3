"""Filters and tags that every template may use."""

from __future__ import annotations

from django import template

register = template.Library()


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

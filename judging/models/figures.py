"""Figures that were worked out of a whole eval set, kept as of when."""

from __future__ import annotations

from django.db import models

from evalsets.models import EvalSet


class KeptFigures(models.Model):
    """What a job worked out for the pages of a large eval set: see judging.reckoning. A cache: it may be emptied."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="kept_figures")
    name = models.CharField(max_length=100)
    form = models.PositiveSmallIntegerField(help_text="judging.reckoning.FORM when it was written.")
    value = models.BinaryField(help_text="Pickled.")
    state = models.CharField(
        max_length=32, help_text="Of the eval set just before: judging.reckoning.state_of."
    )
    at = models.DateTimeField(help_text="As of when.")

    class Meta:
        verbose_name_plural = "kept figures"
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="kept_figures_twice"),
        ]

    def __str__(self) -> str:
        return self.name

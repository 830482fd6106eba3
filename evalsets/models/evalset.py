"""The eval set: what one team works in, and who may do what in it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.urls import reverse

from evalsets.models.users import User


def default_scale() -> list[dict[str, Any]]:
    """The grades from 0 to 3, each with its name and definition, lowest first."""
    return [
        {"grade": 0, "name": "Irrelevant", "definition": "Irrelevant to the need."},
        {"grade": 1, "name": "Background", "definition": "Useful background, but weak support."},
        {"grade": 2, "name": "Substantial", "definition": "Substantial support for part of the answer."},
        {
            "grade": 3,
            "name": "Direct",
            "definition": "Direct support for a central fact that the answer needs.",
        },
    ]


def validate_scale(scale: Any) -> None:
    """Raise ValidationError unless `scale` is a list of {grade, name, definition}, grades 0, 1, 2, … rising."""
    if not isinstance(scale, list) or len(scale) < 2:
        raise ValidationError("A scale is a list of at least two grades.")
    for expected, item in enumerate(scale):
        if not isinstance(item, dict) or not {"grade", "name", "definition"} <= item.keys():
            raise ValidationError(
                f"Entry {expected + 1} of the scale must have the keys grade, name and definition."
            )
        if type(item["grade"]) is not int or item["grade"] != expected:
            raise ValidationError(
                f"Entry {expected + 1} of the scale has grade {item['grade']!r}; "
                f"grades are whole numbers that rise from 0, so {expected} belongs here."
            )
        for key in ("name", "definition"):
            if not isinstance(item[key], str) or not item[key].strip():
                raise ValidationError(f"Grade {expected} of the scale has no {key}.")
    if len(scale) > 10:
        raise ValidationError("A scale has at most ten grades, since each has one digit as its key.")


class EvalSetQuerySet(models.QuerySet["EvalSet"]):
    def visible_to(self, user: User) -> EvalSetQuerySet:
        """The eval sets that `user` is a member of; a superuser sees all."""
        return self if user.is_superuser else self.filter(members__user=user)


class EvalSet(models.Model):
    """Questions, chunks, systems and labels that belong together."""

    class Gain(models.TextChoices):
        EXPONENTIAL = "exponential", "exponential (2^grade − 1)"
        LINEAR = "linear", "linear (the grade)"

    class SettlePolicy(models.TextChoices):
        """How differing judgments of one pair settle to a label; an adjudication always comes first."""

        MAJORITY = "majority", "majority of the grades"
        MEDIAN = "median", "median grade, rounded down"
        LATEST = "latest", "the latest grade"
        NONE = "none", "no label: the pair stays contested"

    slug = models.SlugField(
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*$", "Use lower-case letters, digits and hyphens.")],
        help_text="Short name used in addresses and commands: lower-case letters, digits and hyphens.",
    )
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    scale = models.JSONField(default=default_scale, validators=[validate_scale])
    threshold = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text="A chunk counts as relevant from this grade upward.",
    )
    gain = models.CharField(max_length=12, choices=Gain, default=Gain.EXPONENTIAL)
    settle_policy = models.CharField(max_length=10, choices=SettlePolicy, default=SettlePolicy.MAJORITY)
    adjudication_tolerance = models.PositiveSmallIntegerField(
        default=1,
        help_text="Pairs whose grades differ by more than this wait for a lead's decision, even where they settle to a "
        "label. Pairs that settle to none always wait.",
    )
    low_unjudged_rate = models.FloatField(
        default=0.10,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Up to this unjudged rate a score is read as it stands (0.10 is ten per cent).",
    )
    seconds_per_judgment = models.PositiveSmallIntegerField(
        default=25, help_text="Used for estimates until enough judgments have been timed."
    )
    count_inadmissible = models.BooleanField(
        default=False,
        help_text="Score chunks from another scope or outside their period by their label, "
        "rather than as not relevant.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    objects = EvalSetQuerySet.as_manager()

    class Meta:
        ordering = ["name", "slug"]
        constraints = [
            models.CheckConstraint(condition=models.Q(threshold__gte=1), name="evalset_threshold_below_one"),
            models.CheckConstraint(
                condition=models.Q(low_unjudged_rate__gte=0, low_unjudged_rate__lte=1),
                name="evalset_low_rate_outside_0_1",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("evalset-home", args=[self.slug])

    def clean(self) -> None:
        if self.threshold and self.scale and self.threshold > self.max_grade:
            raise ValidationError(
                {
                    "threshold": f"The highest grade of the scale is {self.max_grade}; nothing would be relevant."
                }
            )

    def role_of(self, user: User) -> Member.Role | None:
        """The user's role in the eval set, or None for a stranger. A superuser counts as lead."""
        if user.is_superuser:
            return Member.Role.LEAD
        role = self.members.filter(user=user).values_list("role", flat=True).first()
        return Member.Role(role) if role else None

    @property
    def grades(self) -> range:
        """All grades of the scale, lowest first."""
        return range(len(self.scale))

    @property
    def max_grade(self) -> int:
        return len(self.scale) - 1

    def grade_name(self, grade: int) -> str:
        return str(self.scale[grade]["name"])


class Member(models.Model):
    """A user's role in one eval set. A lead may do whatever an assessor or a viewer may."""

    class Role(models.TextChoices):
        LEAD = "lead", "Lead"
        ASSESSOR = "assessor", "Assessor"
        VIEWER = "viewer", "Viewer"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="members")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["user__username"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "user"], name="member_twice_in_evalset"),
            models.CheckConstraint(
                condition=models.Q(role__in=["lead", "assessor", "viewer"]), name="member_role_unknown"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"

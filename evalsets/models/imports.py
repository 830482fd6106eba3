from django.db import models
from django.db.models.functions import Now

from evalsets.models.evalset import EvalSet
from evalsets.models.users import User


class ImportedFile(models.Model):
    """A file that was imported, with which options and what came of it. The same file again is known by its hash."""

    class Kind(models.TextChoices):
        QUESTIONS = "questions", "questions"
        CHUNKS = "chunks", "chunks"
        RUN = "run", "run"
        QRELS = "qrels", "qrels"
        VERDICTS = "verdicts", "verdicts"
        JUDGE = "judge", "outside judge"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="imported_files")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=255, help_text="The file's own name; a label only.")
    sha256 = models.CharField(max_length=64, help_text="Of the file's unpacked content.")
    options = models.JSONField(default=dict, blank=True)
    report = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["evalset", "kind", "sha256"], name="imported_file_by_hash")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=["questions", "chunks", "run", "qrels", "verdicts", "judge"]),
                name="imported_file_kind_unknown",
            ),
        ]

    def __str__(self) -> str:
        return self.name

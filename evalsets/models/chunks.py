"""Chunks and the revisions of their texts.

A chunk may be known by its ID alone: a run or a qrels file named it before its text arrived. The text that arrives
first is revision 1, so a judgment imported before it belongs to revision 1. Another text under the same ID is the
next revision; judgments stay with the revision that was read.

A passage that a system cut short on its way into a context is a chunk of its own, bound to the one it was cut from: its
text is judged by itself, and scoring counts it as the whole chunk's at the grade of what was left.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now, Upper
from django.urls import reverse

from evalsets.listing import COUNTED_UP_TO
from evalsets.models.evalset import EvalSet


class ChunkQuerySet(models.QuerySet["Chunk"]):
    def whole(self) -> ChunkQuerySet:
        """Without the passages that were cut from others: what a corpus holds."""
        return self.filter(cut_from=None)

    def matching(self, text: str) -> ChunkQuerySet:
        """Those whose ID, title or current text has `text` in it, in whatever case, or whose parent document it names.

        Where more than a list counts match by ID, or by text, some of them: to find more takes longer and helps nobody.
        """
        by_id = self.filter(external_id__icontains=text)
        by_text = ChunkRevision.objects.current().filter(
            Q(text__icontains=text) | Q(title__icontains=text) | Q(doc_id=text), chunk__in=self
        )
        # Two questions, each for an index of its own: "or" over both tables would have all texts read.
        found = [
            rows.order_by().values(key)[: COUNTED_UP_TO + 1]
            for rows, key in ((by_id, "pk"), (by_text, "chunk"))
        ]
        return self.filter(pk__in=found[0].union(found[1], all=True))


class Chunk(models.Model):
    """One independently retrievable passage with a stable ID."""

    # Four bytes: rankings and pools hold millions of these in arrays.
    id = models.AutoField(primary_key=True)
    # No index of its own: the unique key over eval set and ID serves, and the planner is not misled by it.
    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="chunks", db_index=False)
    external_id = models.CharField(max_length=512, db_collation="C")
    revision = models.PositiveSmallIntegerField(
        db_default=1, default=1, help_text="Number of the current revision."
    )
    has_text = models.BooleanField(db_default=False, default=False)
    cut_from = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        blank=True,
        db_index=False,  # few have one: see the indexes below
        related_name="cut_passages",
        help_text="The whole chunk, where this is what a run's context held of it.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ChunkQuerySet.as_manager()

    class Meta:
        ordering = ["external_id"]
        # Few chunks of many: those whose text has not come, and those that were revised.
        indexes = [
            models.Index(
                fields=["evalset", "external_id"],
                condition=models.Q(has_text=False),
                name="chunk_without_text",
            ),
            models.Index(
                fields=["evalset", "external_id"],
                condition=models.Q(revision__gt=1),
                name="chunk_revised",
            ),
            models.Index(
                fields=["cut_from"], condition=models.Q(cut_from__isnull=False), name="chunk_cut_from_another"
            ),
            GinIndex(OpClass(Upper("external_id"), "gin_trgm_ops"), name="chunk_id_trigrams"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "external_id"], name="chunk_id_twice_in_evalset"),
            models.CheckConstraint(condition=~models.Q(external_id=""), name="chunk_without_id"),
            models.CheckConstraint(
                condition=models.Q(has_text=True) | models.Q(revision=1), name="chunk_revised_without_text"
            ),
            models.CheckConstraint(
                condition=~models.Q(cut_from=models.F("id")), name="chunk_cut_from_itself"
            ),
        ]

    def __str__(self) -> str:
        return self.external_id

    def get_absolute_url(self) -> str:
        return reverse("labels:chunk", args=[self.evalset.slug, self.pk])


class ChunkRevisionQuerySet(models.QuerySet["ChunkRevision"]):
    def current(self) -> ChunkRevisionQuerySet:
        """The texts that their chunks have now."""
        return self.filter(number=models.F("chunk__revision"))


class ChunkRevision(models.Model):
    """One text of a chunk, as it was from one import on until the next revision. Never changed."""

    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="revisions")
    number = models.PositiveSmallIntegerField()
    title = models.TextField(blank=True)
    text = models.TextField()
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of title and text.")
    doc_id = models.TextField(blank=True, db_collation="C", help_text="Parent document.")
    url = models.TextField(blank=True)
    start = models.PositiveIntegerField(null=True, blank=True, help_text="First character in the parent.")
    end = models.PositiveIntegerField(null=True, blank=True, help_text="One past the last character.")
    effective_from = models.DateField(null=True, blank=True)
    effective_to = models.DateField(null=True, blank=True, help_text="The last day it holds.")
    scope = models.TextField(blank=True, help_text="Permission scope that may see the chunk.")
    source_revision = models.TextField(blank=True, help_text="The revision's name where it came from.")
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ChunkRevisionQuerySet.as_manager()

    class Meta:
        ordering = ["chunk", "number"]
        indexes = [
            models.Index(fields=["doc_id", "start"], name="revision_by_document"),
            # Finds a few letters anywhere, in whatever case (`icontains` compares in capitals).
            GinIndex(
                OpClass(Upper("title"), "gin_trgm_ops"),
                OpClass(Upper("text"), "gin_trgm_ops"),
                name="revision_trigrams",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["chunk", "number"], name="revision_number_twice"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="revision_number_below_one"),
            models.CheckConstraint(
                condition=models.Q(start__isnull=True) | models.Q(end__gte=models.F("start")),
                name="revision_span_backwards",
            ),
            models.CheckConstraint(
                condition=models.Q(effective_from__isnull=True)
                | models.Q(effective_to__isnull=True)
                | models.Q(effective_to__gte=models.F("effective_from")),
                name="revision_period_backwards",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chunk.external_id} (revision {self.number})"

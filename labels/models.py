"""Releases: frozen, numbered, hashed sets of labels. The database refuses to change or delete a row of them.

A release holds everything its files need (IDs, grades, settings, provenance), one row a question, so that a score
or an export reads a few hundred rows and never looks at judgments again. The texts of chunks stay where they are:
a release names the revision that was judged, and revisions never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now
from django.urls import reverse

from evalsets.models import Chunk, ChunkRevision, EvalSet, Question, User
from judging.models import ClassMember, PairVerdict


class Release(models.Model):
    """A numbered set of labels of one eval set, with the settings under which they were given."""

    evalset = models.ForeignKey(EvalSet, models.PROTECT, related_name="releases")
    number = models.PositiveIntegerField()
    content_hash = models.CharField(
        max_length=64,
        help_text="SHA-256 over all that is frozen; not over number, notes, date and publisher.",
    )
    notes = models.TextField(blank=True)
    scale = models.JSONField()
    threshold = models.PositiveSmallIntegerField()
    gain = models.CharField(max_length=12)
    settle_policy = models.CharField(max_length=10)
    judges = ArrayField(
        models.TextField(),
        default=list,
        help_text="Outside judges whose grades are labels where no person gave one; such labels are marked.",
    )
    counts = models.JSONField(
        help_text="questions, labels, relevant, judgments, contested, skipped_only, classes, by_grade, …"
    )
    provenance = models.JSONField(
        help_text="pools, runs with their coverage, born_from: see labels.services.provenance."
    )
    spaced_ids = ArrayField(
        models.TextField(), default=list, help_text="IDs with white space, which TREC files cannot carry."
    )
    published_at = models.DateTimeField(db_default=Now(), editable=False)
    published_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "number"], name="release_number_twice"),
            models.CheckConstraint(condition=Q(number__gte=1), name="release_number_below_one"),
            models.CheckConstraint(
                condition=Q(content_hash__regex=r"^[0-9a-f]{64}$"), name="release_hash_malformed"
            ),
        ]

    def __str__(self) -> str:
        return f"Release {self.number}"

    def get_absolute_url(self) -> str:
        return reverse("labels:release", args=[self.evalset.slug, self.number])

    @property
    def of_models(self) -> dict[str, Any]:
        """How many of its labels are outside judges', and whose: what every document about it says."""
        return {"from_models": self.counts.get("from_models", 0), "judges": self.judges}

    @property
    def short_hash(self) -> str:
        """The first twelve digits of the hash: enough for people to tell two releases apart."""
        return self.content_hash[:12]


def labels_of_models_in_words(document: Mapping[str, Any]) -> str:
    """What must be said beside every number computed on a release whose document, with `Release.of_models` in it, says
    that it has labels of outside judges; else an empty text."""
    if not document.get("judges"):
        return ""
    number, judges = document["from_models"], ", ".join(document["judges"])
    return (
        f"{number:,} of the release's labels came from a model ({judges}): no person has judged these pairs."
    )


class ReleaseQuestion(models.Model):
    """A question of a release with all that is known of it; the arrays run in the order of the chunk IDs' bytes."""

    release = models.ForeignKey(Release, models.PROTECT, related_name="release_questions")
    question = models.ForeignKey(Question, models.PROTECT, related_name="+")
    position = models.PositiveIntegerField(help_text="From 0, by the bytes of the question's ID.")
    external_id = models.CharField(max_length=512, db_collation="C")
    details = models.JSONField(help_text="The question as Question.as_json gave it.")
    chunk_ids = ArrayField(models.IntegerField(), help_text="Chunk.id of each label.")
    external_ids = ArrayField(models.TextField(), help_text="The chunk's ID.")
    revisions = ArrayField(models.SmallIntegerField(), help_text="The chunk's revision that was judged.")
    grades = ArrayField(models.SmallIntegerField(), help_text="The label.")
    why = ArrayField(models.TextField(), help_text="What the label settled by.")
    judgment_counts = ArrayField(
        models.SmallIntegerField(), help_text="How many judgments the label stands on."
    )
    model_chunk_ids = ArrayField(
        models.IntegerField(),
        default=list,
        help_text="Chunks whose label is an outside judge's.",
    )
    cut_ids = ArrayField(
        models.IntegerField(),
        default=list,
        help_text="Cut passages that have a label; no qrels name them, since only one run's context holds them.",
    )
    pooled_ids = ArrayField(
        models.IntegerField(), default=list, help_text="Pooled by a sampling plan, not sampled, not labelled."
    )
    inclusion = ArrayField(
        models.FloatField(),
        null=True,
        help_text="By label, the probability with which it was sampled; null where nothing was sampled.",
    )
    unlabelled = models.JSONField(
        default=list,
        help_text="Contested and skipped-only pairs: [{chunk_id, id, revision, why, grades, skips}].",
    )
    pool = models.JSONField(
        default=list, help_text="Runs that were pooled for it: [{system, run, stage, k, date}]."
    )
    judgment_ids = ArrayField(
        models.BigIntegerField(), default=list, help_text="All its judgments at that time, replaced ones too."
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["release", "question"], name="release_question_twice"),
            models.UniqueConstraint(fields=["release", "position"], name="release_question_position_twice"),
            models.CheckConstraint(
                condition=Q(chunk_ids=[])
                | Q(
                    external_ids__len=F("chunk_ids__len"),
                    revisions__len=F("chunk_ids__len"),
                    grades__len=F("chunk_ids__len"),
                    why__len=F("chunk_ids__len"),
                    judgment_counts__len=F("chunk_ids__len"),
                ),
                name="release_question_arrays_of_other_length",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.release_id}: {self.external_id}"


class ReleaseClass(models.Model):
    """A class as it was when the release was published; its members run in the order of their IDs' bytes."""

    release = models.ForeignKey(Release, models.PROTECT, related_name="release_classes")
    number = models.PositiveIntegerField(help_text="From 0, by the bytes of the representative's ID.")
    representative = models.CharField(max_length=512, db_collation="C", help_text="ID of its first member.")
    chunk_ids = ArrayField(models.IntegerField(), help_text="Chunk.id of each member.")
    external_ids = ArrayField(models.TextField(), help_text="The chunk's ID.")
    revisions = ArrayField(models.SmallIntegerField(), help_text="The chunk's revision at that time.")

    class Meta:
        ordering = ["number"]
        indexes = [GinIndex(fields=["chunk_ids"], name="release_class_by_chunk")]
        constraints = [
            models.UniqueConstraint(fields=["release", "number"], name="release_class_number_twice"),
            models.CheckConstraint(condition=Q(chunk_ids__len__gte=2), name="release_class_of_one"),
            models.CheckConstraint(
                condition=Q(external_ids__len=F("chunk_ids__len"), revisions__len=F("chunk_ids__len")),
                name="release_class_arrays_of_other_length",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.release_id}: {self.representative}"


def _in_two_periods() -> Exists:
    """Whether the current texts of a row's `first` and `second` chunk are valid in different periods. A text without
    either date says nothing of its period."""
    dated = (
        ChunkRevision.objects.current()
        .exclude(effective_from=None, effective_to=None)
        .annotate(since=Coalesce("effective_from", date.min), until=Coalesce("effective_to", date.max))
    )
    of_another_period = dated.filter(chunk=OuterRef(OuterRef("second"))).exclude(
        since=OuterRef("since"), until=OuterRef("until")
    )
    return Exists(dated.filter(chunk=OuterRef("first")).filter(Exists(of_another_period)))


class CandidateQuerySet(models.QuerySet["DuplicateCandidate"]):
    def open(self) -> CandidateQuerySet:
        """Candidates that nobody has decided: both texts are still those that were compared, no verdict on the two
        holds, other verdicts have not made them one class, and their periods of validity do not keep them apart
        anyway. (That one replaces the other outlives their texts.)
        """
        of_pair = PairVerdict.objects.filter(first=OuterRef("first"), second=OuterRef("second")).order_by(
            "-id"
        )
        latest = {
            name: Subquery(of_pair.values(name)[:1])
            for name in ("verdict", "first_revision", "second_revision")
        }
        undecided = (
            Q(latest_verdict__isnull=True)
            | Q(latest_verdict="none")
            | Q(latest_verdict__in=["same", "different"])
            & ~Q(latest_first_revision=F("first_revision"), latest_second_revision=F("second_revision"))
        )
        in_one_class = ClassMember.objects.filter(
            chunk=OuterRef("first"), chunk_class__members__chunk=OuterRef("second")
        )
        return (
            self.filter(first__revision=F("first_revision"), second__revision=F("second_revision"))
            .annotate(**{f"latest_{name}": expression for name, expression in latest.items()})
            .filter(undecided, ~Exists(in_one_class))
            .exclude(_in_two_periods())
        )

    def apart_by_period(self) -> CandidateQuerySet:
        """Candidates that need nobody's word, since the two are valid in different periods."""
        return self.filter(_in_two_periods())


class DuplicateCandidate(models.Model):
    """Two chunks whose texts look alike, for people to say what they are to each other. A proposal, never a verdict."""

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="duplicate_candidates")
    first = models.ForeignKey(Chunk, models.CASCADE, related_name="+")
    first_revision = models.PositiveSmallIntegerField()
    second = models.ForeignKey(Chunk, models.CASCADE, related_name="+")
    second_revision = models.PositiveSmallIntegerField()
    similarity = models.FloatField(help_text="Jaccard of word shingles; 1 where equal after normalisation.")
    equal = models.BooleanField(help_text="Equal but for case, space and punctuation.")
    found_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = CandidateQuerySet.as_manager()

    class Meta:
        ordering = ["-equal", "-similarity", "id"]
        indexes = [
            models.Index(fields=["evalset", "-equal", "-similarity", "id"], name="candidate_likeliest_first")
        ]
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="candidate_pair_twice"),
            models.CheckConstraint(condition=Q(first__lt=F("second")), name="candidate_chunks_out_of_order"),
            models.CheckConstraint(
                condition=Q(similarity__gte=0, similarity__lte=1), name="candidate_similarity_outside_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first_id} and {self.second_id}"

    def get_absolute_url(self) -> str:
        return reverse("labels:duplicate", args=[self.evalset.slug, self.pk])

    def next_open(self) -> DuplicateCandidate | None:
        """The next undecided candidate after this one, likeliest first."""
        after = (
            Q(equal__lt=self.equal)
            | Q(equal=self.equal, similarity__lt=self.similarity)
            | Q(equal=self.equal, similarity=self.similarity, id__gt=self.pk)
        )
        return DuplicateCandidate.objects.filter(after, evalset=self.evalset_id).open().first()


class TextMapping(models.Model):
    """A new text that stands where an old, judged one stood: where its labels may be carried to.

    The old text is a revision of the same chunk, or a chunk of an earlier import. Undecided until a person says
    whether the labels that no rule carries come along.
    """

    class Method(models.TextChoices):
        REVISION = "revision", "a new text of the same chunk"
        SPAN = "span", "the same place in the parent document"
        TEXT = "text", "a similar text"

    evalset = models.ForeignKey(EvalSet, models.CASCADE, related_name="text_mappings")
    old_chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="+")
    old_revision = models.PositiveSmallIntegerField()
    new_chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="+")
    new_revision = models.PositiveSmallIntegerField()
    method = models.CharField(max_length=10, choices=Method)
    share = models.FloatField(
        help_text="How much the two have in common, 0 to 1: characters, or word shingles."
    )
    found_at = models.DateTimeField(db_default=Now(), editable=False)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["-share", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["old_chunk", "old_revision", "new_chunk", "new_revision"], name="mapping_twice"
            ),
            models.CheckConstraint(condition=Q(share__gte=0, share__lte=1), name="mapping_share_outside_0_1"),
            models.CheckConstraint(
                condition=~Q(old_chunk=F("new_chunk")) | Q(old_revision__lt=F("new_revision")),
                name="mapping_of_a_text_to_itself",
            ),
            models.CheckConstraint(
                condition=Q(decided_at__isnull=True, decided_by__isnull=True)
                | Q(decided_at__isnull=False, decided_by__isnull=False),
                name="mapping_decided_by_nobody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.old_chunk_id} to {self.new_chunk_id}"

    def get_absolute_url(self) -> str:
        return reverse("labels:mapping", args=[self.evalset.slug, self.pk])

    def next_undecided(self) -> TextMapping | None:
        after = Q(share__lt=self.share) | Q(share=self.share, id__gt=self.pk)
        return TextMapping.objects.filter(after, evalset=self.evalset_id, decided_at__isnull=True).first()

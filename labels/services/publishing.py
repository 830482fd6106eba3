"""Publishing a release, and what publishing would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection, transaction

from evalsets.errors import Refused
from evalsets.models import Chunk, EvalSet, Job, User
from evalsets.progress import Progress, silent
from evalsets.services.events import record_event
from evalsets.services.jobs import start_job
from judging.models import Assessor
from labels.models import Release, ReleaseClass
from labels.services.copying import copy_questions
from labels.services.finding import find_judges
from labels.services.freezing import (
    ContentHash,
    Tally,
    freeze_classes,
    freeze_questions,
    has_space,
    latest_release,
    settings_of,
)
from labels.services.provenance import provenance_of
from labels.services.snapshot import one_snapshot


class Published(NamedTuple):
    """What came of publishing: the release, and whether it was made now or held the same content already."""

    release: Release
    created: bool

    def as_json(self) -> dict[str, Any]:
        """What the command prints with --json."""
        counts = self.release.counts
        return {
            "release": self.release.number,
            "hash": self.release.content_hash,
            "created": self.created,
            "judges": self.release.judges,
            **{
                name: counts[name]
                for name in ("labels", "from_models", "questions", "contested", "skipped_only", "classes")
            },
        }


class _Unchanged(Exception):
    """What was about to be written equals the latest release."""


def start_publishing(*, evalset: EvalSet, by: User, notes: str, judges: Sequence[str]) -> Job:
    """Have a worker publish a release; see `publish_release`."""
    return start_job(
        evalset=evalset,
        task="labels.publish_release",
        title="Publish a release",
        by=by,
        parameters={"notes": notes, "judges": list(judges)},
    )


def publish_release(
    *,
    evalset: EvalSet,
    by: User | None,
    notes: str = "",
    judges: Sequence[str] = (),
    progress: Progress = silent,
) -> Published:
    """Freeze the eval set's labels as its next release, from one snapshot of the database.

    Where nothing has changed since the latest release, nothing is written and that release is returned: publishing
    twice, or a job that is run again, makes one release. The grades of these outside `judges`, by name, become labels
    of pairs that no person labelled, and are marked as such. Raises Refused where there is no label to freeze, BadInput
    for a judge that is not there.
    """
    chosen = find_judges(evalset, judges)
    with one_snapshot(lock_table=Release._meta.db_table):
        latest = latest_release(evalset)
        try:
            with transaction.atomic():
                release = _write(evalset, latest, by, notes, chosen, progress)
        except _Unchanged:
            assert latest is not None
            return Published(latest, created=False)
        record_event(
            evalset=evalset,
            by=by,
            verb="release-published",
            summary=f"Published release {release.number}: {release.counts['labels']} labels "
            f"of {release.counts['questions']} questions{_of_models(release)}.",
            details={"release": release.number, "hash": release.content_hash},
        )
        return Published(release, created=True)


def _write(
    evalset: EvalSet,
    latest: Release | None,
    by: User | None,
    notes: str,
    judges: Sequence[Assessor],
    progress: Progress,
) -> Release:
    settings = settings_of(evalset, judges)
    content = ContentHash(settings)
    tally = Tally(evalset.threshold)
    # Its rows come before the release itself, which can be written only once its hash is known and never after.
    release_id = _next_release_id()
    total = evalset.questions.count()
    for batch in freeze_questions(evalset, release_id=release_id, judges=judges, tally=tally):
        names = _names_of(chunk for frozen in batch for chunk in frozen.pooled_ids)
        for frozen in batch:
            content.add_question(frozen, names)
        copy_questions(batch)
        progress(tally.numbers["questions"], total, "Freezing questions")
    if not tally.numbers["labels"]:
        raise Refused(
            f"{evalset} has no label yet, so there is nothing to release. Judge or import labels first."
        )
    classes = freeze_classes(evalset, release_id=release_id)
    for frozen_class in classes:
        content.add_class(frozen_class)
        tally.spaced_ids.update(item for item in frozen_class.external_ids if has_space(item))
    ReleaseClass.objects.bulk_create(classes)
    if latest is not None and latest.content_hash == content.hexdigest():
        raise _Unchanged
    return Release.objects.create(
        id=release_id,
        evalset=evalset,
        number=latest.number + 1 if latest else 1,
        content_hash=content.hexdigest(),
        notes=notes.strip(),
        counts=tally.counts(scale=evalset.scale, classes=len(classes)),
        provenance=provenance_of(evalset),
        spaced_ids=sorted(tally.spaced_ids),
        published_by=by,
        **settings,
    )


def _of_models(release: Release) -> str:
    """For the sentence that says what was published."""
    if not release.judges:
        return ""
    return f"; {release.counts['from_models']} labels came from models ({', '.join(release.judges)})"


def _next_release_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [Release._meta.db_table])
        return int(cursor.fetchone()[0])


def _names_of(chunks: Iterable[int]) -> dict[int, str]:
    return dict(Chunk.objects.filter(pk__in=set(chunks)).values_list("pk", "external_id"))

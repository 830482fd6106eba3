"""Files in TREC form: qrels, qrels with grades propagated to class members, and runs.

TREC fields are separated by white space, so an ID that has some cannot be written: the writers refuse before the
first line and name the IDs. No comment lines, no byte order mark, LF at each end of line; `#` in IDs stays.

The second column of qrels is ignored by every tool. It is 0, and `model` where the label is an outside judge's.
"""

from __future__ import annotations

from collections.abc import Iterator

from evalsets.errors import BadInput
from evalsets.models import Chunk
from labels.exports.reading import LABELS, class_rows, cut_passages_of, in_blocks, labels_of, question_rows
from labels.models import Release
from labels.services.freezing import has_space
from pooling.formats import MARK_OF_MODEL
from pooling.models import Ranking, Run

NAMED_IDS = 20


def refuse_spaces(ids: list[str]) -> None:
    """Raise BadInput, naming the IDs, if there are any: they have white space, and TREC form cannot carry it."""
    if ids:
        named = ", ".join(repr(item) for item in ids[:NAMED_IDS])
        more = f" and {len(ids) - NAMED_IDS} more" if len(ids) > NAMED_IDS else ""
        raise BadInput(
            f"TREC files separate fields by white space, and {len(ids)} of the IDs have white space in them: "
            f"{named}{more}. Take label JSON, CSV or Parquet, which carry any ID.",
            report={"ids_with_white_space": ids},
        )


def refuse_lost_lines(questions: list[str]) -> None:
    """Raise BadInput, naming them, if question IDs begin with what readers take for no part of a line."""
    lost = [item for item in questions if item.startswith(("#", "\ufeff"))]
    if lost:
        raise BadInput(
            f"{len(lost)} of the question IDs begin with # or a byte order mark; readers of TREC files take the one "
            f"for a comment and leave out the other: {', '.join(map(repr, lost[:NAMED_IDS]))}. "
            "Take label JSON, CSV or Parquet, which carry any ID.",
            report={"ids_that_begin_a_comment": lost},
        )


def qrels(release: Release) -> Iterator[bytes]:
    """`question 0 chunk grade`, one label a line, by the bytes of question ID, then chunk ID; grade 0 included.

    Cut passages are left out. `model` stands for the 0 where the label is an outside judge's.
    """
    _refuse_what_qrels_lose(release)
    return in_blocks(_qrels_of_questions(release))


def _refuse_what_qrels_lose(release: Release) -> None:
    """Raises BadInput for IDs that qrels would break; those of questions without labels stand in none."""
    refuse_spaces(release.spaced_ids)
    refuse_lost_lines(
        [row.external_id for row in question_rows(release, "external_id", "grades") if row.grades]
    )


def _qrels_of_questions(release: Release) -> Iterator[str]:
    for row in question_rows(release, "external_id", *LABELS):
        yield "".join(
            [
                f"{row.external_id} {MARK_OF_MODEL if label.by_model else 0} {label.id} {label.grade}\n"
                for label in labels_of(row)
            ]
        )


def propagated_qrels(release: Release) -> Iterator[bytes]:
    """Qrels in which every member of a class has the class's grade: the highest label among its members.

    Members that nobody judged appear too, so these are not what people said; judged members keep no grade of their
    own. For tools that know nothing of classes. An outside judge's label is marked for the whole class, and gives way
    to any that people gave to a member. A cut passage stands in no line, but its label counts for its class.
    """
    _refuse_what_qrels_lose(release)
    return in_blocks(_propagated(release))


def _propagated(release: Release) -> Iterator[str]:
    cut = cut_passages_of(release)
    members: dict[int, list[str]] = {}
    for row in class_rows(release):
        pairs = zip(row.chunk_ids, row.external_ids, strict=True)
        names = [name for chunk, name in pairs if chunk not in cut]
        members |= dict.fromkeys(row.chunk_ids, names)
    for row in question_rows(release, "external_id", *LABELS):
        # Whether people said it, then the grade: the greatest stands.
        found: dict[str, tuple[bool, int]] = {}
        for label in labels_of(row, with_cut=True):
            itself = [] if label.chunk in cut else [label.id]
            for name in members.get(label.chunk, itself):
                found[name] = max((not label.by_model, label.grade), found.get(name, (False, 0)))
        yield "".join(
            f"{row.external_id} {0 if by_people else MARK_OF_MODEL} {name} {grade}\n"
            for name, (by_people, grade) in sorted(found.items(), key=lambda item: item[0].encode())
        )


def run_lines(run: Run) -> Iterator[bytes]:
    """A run in six columns, `question Q0 chunk rank score tag`, by question ID, best chunk first.

    The scores fall strictly, from the length of the ranking to 1: they are made from the stored ranks, so that tools
    which break ties differently all see one order. The tag is the run's name, white space in it written as `_`.
    Raises BadInput where an ID has white space, or a question's begins with #.
    """
    names = _chunk_names(run)
    questions = run.rankings.values_list("question__external_id", flat=True)
    refuse_spaces(sorted(item for item in (*questions, *names.values()) if has_space(item)))
    refuse_lost_lines(sorted(questions))
    return in_blocks(_run_rankings(run, names))


def _chunk_names(run: Run) -> dict[int, str]:
    rows = Chunk.objects.raw(
        "SELECT id, external_id FROM evalsets_chunk WHERE id IN "
        "(SELECT unnest(chunk_ids) FROM pooling_ranking WHERE run_id = %s)",
        [run.pk],
    )
    return {row.pk: row.external_id for row in rows}


def _run_rankings(run: Run, names: dict[int, str]) -> Iterator[str]:
    tag = "_".join(run.name.split())
    rankings = Ranking.objects.filter(run=run).order_by("question__external_id")
    for question, chunks in rankings.values_list("question__external_id", "chunk_ids").iterator(
        chunk_size=100
    ):
        yield "".join(
            f"{question} Q0 {names[chunk]} {rank} {len(chunks) - rank + 1} {tag}\n"
            for rank, chunk in enumerate(chunks, start=1)
        )

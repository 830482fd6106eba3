"""Passages that were cut short in packing: each counts for its chunk's unit, at the grade of what was left of it."""

from __future__ import annotations

import io
import json
import random
import zipfile

import pytest

from evalsets.models import Chunk, Question
from judging.services.batches import make_batch
from judging.services.claims import claim_next
from judging.services.import_qrels import import_qrels
from judging.services.pools import measure_pool
from judging.services.remainder import remainder_lines
from labels.exports.formats import FORMATS
from labels.services.duplicates import chunks_in_play
from labels.services.publishing import publish_release
from pooling.models import Run
from pooling.services.importing import import_run
from pooling.services.pools import build_pool
from scoring.classes import UNJUDGED
from scoring.matching import match
from scoring.services.analysing import analyse_stages
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve, score_document, score_runs
from scoring.side_by_side import columns
from tests.conftest import add_revision, make_chunks, make_questions, make_run
from tests.judging import batches
from tests.labels.builders import judge, make_class
from tests.scoring.score_text import by_question, score, twin, world

MEASURES = ("Recall", "P", "RR", "AP", "nDCG")


def grades_of(known, *ranking: str) -> list[int]:
    return match(known.truth, known.rankings({"q": ranking})).grade.tolist()


def test_a_cut_passage_has_its_own_grade_and_says_nothing_of_the_whole() -> None:
    known = world({"q": {"a": 3, "a~": 1, "b~": 2, "c": 2}}, cuts={"a~": "a", "b~": "b", "c~": "c"})
    assert grades_of(known, "a~", "b", "c~", "c") == [1, UNJUDGED, UNJUDGED, 2]
    # Units: a at 3, b at 2 by what was cut from it, c at 2.
    half = score(known, {"q": ["a~", "b", "c~", "c"]}, ["Recall@4", "Judged@4"], threshold=2)
    assert by_question(known, half, "Recall@4") == {"q": pytest.approx(1 / 3)}
    assert by_question(known, half, "Judged@4") == {"q": 0.5}
    best = score(known, {"q": ["a", "b~", "c"]}, ["Recall@3", "nDCG@3"], threshold=2)
    assert (by_question(known, best, "Recall@3"), by_question(known, best, "nDCG@3")) == ({"q": 1}, {"q": 1})


def test_the_ideal_holds_the_whole_chunk_at_its_own_grade() -> None:
    known = world({"q": {"a": 3, "a~": 1}}, cuts={"a~": "a"})
    cut = score(known, {"q": ["a~"]}, ["nDCG@1", "nDCG", "Recall@1", "Recall(rel=2)@1"])
    assert by_question(known, cut, "nDCG@1") == {"q": pytest.approx(1 / 7)}
    assert by_question(known, cut, "nDCG") == {"q": pytest.approx(1 / 7)}
    assert by_question(known, cut, "Recall@1") == {"q": 1}
    assert by_question(known, cut, "Recall(rel=2)@1") == {"q": 0}


def test_nothing_left_does_not_use_up_the_unit() -> None:
    known = world({"q": {"a": 3, "a~": 0}}, cuts={"a~": "a"}, classes=[["a", "copy"]])
    scores = score(known, {"q": ["a~", "copy"]}, ["RR@2", "Judged@2"])
    assert (by_question(known, scores, "RR@2"), by_question(known, scores, "Judged@2")) == (
        {"q": 0.5},
        {"q": 1},
    )


def test_what_was_pooled_and_left_unjudged_is_the_cut_passage_or_the_whole_not_both() -> None:
    known = world({"q": {"c": 3}}, cuts={"a~": "a", "b~": "b"}, pooled=[("q", "a~"), ("q", "b")])
    graded = match(known.truth, known.rankings({"q": ["a", "a~", "b", "b~"]}))
    assert graded.pooled.tolist() == [False, True, True, False]


def slowly(ranking, labels, cuts, classes) -> tuple[list[int | None], list[int]]:
    """What `stand_for` gives, with cut passages: None unjudged, -1 a unit again; and the grade of each unit."""
    class_of = {member: f"class {n}" for n, members in enumerate(classes) for member in members}

    def unit(chunk: str) -> str:
        whole = cuts.get(chunk, chunk)
        return class_of.get(whole, whole)

    of_units: dict[str, int] = {}
    of_wholes: dict[str, int] = {}
    for chunk, grade in labels.items():
        of_units[unit(chunk)] = max(grade, of_units.get(unit(chunk), 0))
        if chunk not in cuts:
            of_wholes[unit(chunk)] = max(grade, of_wholes.get(unit(chunk), 0))
    used, entries = set(), []
    for chunk in ranking:
        grade = labels.get(chunk) if chunk in cuts else of_wholes.get(unit(chunk))
        if grade is None:
            entries.append(None)
        elif unit(chunk) in used:
            entries.append(-1)
        else:
            entries.append(grade)
            if grade > 0 or chunk not in cuts:
                used.add(unit(chunk))
    return entries, sorted(of_units.values(), reverse=True)


@pytest.mark.parametrize("seed", range(40))
def test_every_measure_against_a_slow_twin(seed: int) -> None:
    draw = random.Random(seed)
    wholes = [f"c{number}" for number in range(8)]
    cuts = {f"{whole}~{number}": whole for whole in wholes for number in range(draw.randrange(3))}
    texts = [*wholes, *cuts]
    labels = {text: draw.randrange(4) for text in draw.sample(texts, draw.randint(2, len(texts)))}
    labels["sure"] = 3
    classes = [draw.sample(wholes, 2)]
    ranking = draw.sample([*texts, "sure"], draw.randint(1, len(texts)))
    known = world({"q": labels}, cuts=cuts, classes=classes)
    entries, units = slowly(ranking, labels, cuts, classes)
    for threshold in (1, 2):
        for k in (1, 3, 20):
            scores = score(known, {"q": ranking}, [f"{name}@{k}" for name in MEASURES], threshold=threshold)
            for name in MEASURES:
                (value,) = by_question(known, scores, f"{name}@{k}").values()
                expected = twin(name, k, entries, units, threshold=threshold)
                assert value == pytest.approx(expected), (name, k, threshold)
                assert 0 <= value <= 1 + 1e-12


# From the file of a context run to the labels of what it cut, in the database.

pytestmark = pytest.mark.django_db
LONG = "Refunds take 14 days. Fees are never refunded."


@pytest.fixture
def packed(evalset, carol, tmp_path) -> Run:
    """A context that cut chunk a to its first sentence and b to a few words, and holds c whole; a was retrieved."""
    make_questions(evalset, "q")
    for chunk in make_chunks(evalset, "a", "b", "c", text=False):
        add_revision(chunk, f"{LONG} {chunk.external_id}", number=1)
    system = make_run(evalset, "retrieved", {"q": ["a", "b", "c"]}, stage="candidates").system
    results = [
        {"id": "a", "text": "Refunds take 14 days.", "truncated": True},
        {"id": "b", "text": "Refunds", "truncated": True},
        {"id": "c", "text": f"{LONG} c"},
    ]
    path = tmp_path / "context.jsonl"
    path.write_text(json.dumps({"qid": "q", "results": results}) + "\n")
    report = import_run(
        evalset=evalset, source=path, by=carol, system=system.name, run="packed", stage="context"
    )
    assert (report.details["chunks"], report.details["cut_passages"]) == (3, 2)
    return Run.objects.get(name="packed")


def cut_from(name: str) -> Chunk:
    return Chunk.objects.get(cut_from__external_id=name)


def test_the_remainder_asks_for_what_was_left_as_a_text_of_its_own(evalset, packed, alice) -> None:
    question = Question.objects.get()
    for chunk in Chunk.objects.filter(cut_from=None):
        judge(question, chunk, 3, by=alice)
    runs = [(run, 3) for run in Run.objects.all()]
    pool, _ = build_pool(evalset=evalset, name="P", runs=runs, by=None)
    records = [json.loads(line) for line in remainder_lines(pool)]
    assert {record["chunk_id"]: record["text"] for record in records} == {
        cut_from("a").external_id: "Refunds take 14 days.",
        cut_from("b").external_id: "Refunds",
    }
    totals = measure_pool(pool).totals
    assert (totals.pairs, totals.remainder) == (5, 2)


def test_from_a_label_of_a_cut_passage_to_scores_and_files(evalset, packed, alice) -> None:
    question = Question.objects.get()
    a, b = cut_from("a"), cut_from("b")
    for chunk, grade in ((Chunk.objects.get(external_id="a"), 3), (a, 2), (b, 0)):
        judge(question, chunk, grade, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    assert (release.counts["labels"], release.counts["cut_passages"]) == (3, 2)

    def text_of(name: str) -> str:
        return b"".join(FORMATS[name].stream(release)).decode()

    assert text_of("qrels") == text_of("qrels-propagated") == "q 0 a 3\n"
    (record,) = map(json.loads, text_of("label-jsonl").splitlines())
    assert (record["grades"], record["judged_ids"], record["relevant_classes"]) == ({"a": 3}, ["a"], [["a"]])
    assert record["cut_passages"] == [
        {
            "id": a.external_id,
            "cut_from": "a",
            "text": "Refunds take 14 days.",
            "grade": 2,
            "from_model": False,
        },
        {"id": b.external_id, "cut_from": "b", "text": "Refunds", "grade": 0, "from_model": False},
    ]
    assert f"q,{a.external_id},2,yes" in text_of("csv")

    asked = resolve(release, measures=["Recall@3", "nDCG@1"])
    retrieved = Run.objects.get(name="retrieved")
    rows = score_document(score_runs(release=release, runs=[packed, retrieved], asked=asked).results)["runs"]
    by_run = {row["run"]: row for row in rows}
    assert by_run["packed"]["measures"] == {"Recall@3": 1, "nDCG@1": pytest.approx(3 / 7)}
    assert by_run["packed"]["unjudged"]["3"] == pytest.approx(1 / 3)
    assert by_run["retrieved"]["measures"] == {"Recall@3": 1, "nDCG@1": 1}

    fates = analyse_stages(release=release, runs=[retrieved, packed]).document["fates"]
    assert (fates["kept"], fates["truncated in packing"]) == (1, 0)

    comparison, _ = compare_runs(release=release, run_a=retrieved, run_b=packed, asked=asked)
    _, context = columns(comparison, question.pk, 3)
    assert [(entry.chunk, entry.grade, entry.again) for entry in context.entries[:2]] == [
        (a, 2, False),
        (b, 0, False),
    ]


def test_a_cut_passage_supports_the_facts_that_were_found_in_what_was_left(evalset, packed, alice) -> None:
    facts = [{"id": name, "text": name} for name in ("days", "fees")]
    Question.objects.update(facts=facts)
    question, whole = Question.objects.get(), Chunk.objects.get(external_id="a")
    judge(question, whole, 3, by=alice, facts=["days", "fees"])
    judge(question, cut_from("a"), 2, by=alice, facts=["days"])
    release = publish_release(evalset=evalset, by=None).release
    asked = resolve(release, measures=["Recall@3"])
    (row,) = score_document(score_runs(release=release, runs=[packed], asked=asked).results)["runs"]
    assert row["facts"]["mean"] == 0.5


def test_white_space_in_the_id_of_a_cut_passage_is_no_reason_to_refuse_qrels(evalset, packed, alice) -> None:
    passage = cut_from("b")
    Chunk.objects.filter(pk=passage.pk).update(external_id=f"of b {passage.external_id}")
    for chunk in (Chunk.objects.get(external_id="a"), passage):
        judge(Question.objects.get(), chunk, 2, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    assert b"".join(FORMATS["qrels"].stream(release)) == b"q 0 a 2\n"


def test_a_cut_passage_is_inadmissible_where_its_chunk_is(evalset, packed, alice) -> None:
    Question.objects.update(scope="staff")
    Chunk.objects.get(external_id="a").revisions.update(scope="managers")
    judge(Question.objects.get(), cut_from("a"), 3, by=alice)
    judge(Question.objects.get(), Chunk.objects.get(external_id="c"), 3, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    asked = resolve(release, measures=["RR@3"])
    (row,) = score_document(score_runs(release=release, runs=[packed], asked=asked).results)["runs"]
    assert (row["measures"]["RR@3"], row["inadmissible"]) == (pytest.approx(1 / 3), {"3": 1})


def test_one_called_the_same_content_as_a_chunk_is_a_member_of_its_class_like_any_other(
    evalset, packed, alice
) -> None:
    whole = Chunk.objects.get(external_id="a")
    make_class(whole, cut_from("a"))
    judge(Question.objects.get(), whole, 3, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    asked = resolve(release, measures=["RR@3"])
    (row,) = score_document(score_runs(release=release, runs=[packed], asked=asked).results)["runs"]
    assert (row["measures"]["RR@3"], row["unjudged"]["3"]) == (1, pytest.approx(2 / 3))
    assert release.counts["cut_passages"] == 0


def test_a_class_of_cut_passages_alone_is_no_evidence_that_other_runs_lack(evalset, packed, alice) -> None:
    question, whole = Question.objects.get(), Chunk.objects.get(external_id="a")
    make_class(cut_from("a"), cut_from("b"))
    for chunk in (whole, cut_from("a"), cut_from("b")):
        judge(question, chunk, 3, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    assert (release.counts["cut_passages"], release.counts["classes"]) == (2, 0)
    assert b"".join(FORMATS["qrels"].stream(release)) == b"q 0 a 3\n"
    asked = resolve(release, measures=["Recall@3"])
    (row,) = score_document(score_runs(release=release, runs=[packed], asked=asked).results)["runs"]
    assert row["measures"] == {"Recall@3": 1}


@pytest.mark.parametrize("same_content", [False, True])
def test_by_document_a_cut_passage_counts_like_any_other_chunk_of_its_whole_chunks(
    evalset, packed, alice, same_content
) -> None:
    for chunk in Chunk.objects.whole():
        chunk.revisions.update(doc_id=f"document {chunk.external_id}")
    whole = Chunk.objects.get(external_id="a")
    if same_content:
        make_class(whole, cut_from("a"))
    judge(Question.objects.get(), whole, 3, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    asked = resolve(release, measures=["Recall@1", "P@3"], unit="document")
    rows = score_document(score_runs(release=release, runs=Run.objects.all(), asked=asked).results)["runs"]
    assert [row["measures"] for row in rows] == 2 * [{"Recall@1": 1, "P@3": pytest.approx(1 / 3)}]


def test_no_qrels_list_a_cut_passage_and_its_class_has_its_label(evalset, packed, alice) -> None:
    passage = cut_from("a")
    make_class(Chunk.objects.get(external_id="a"), passage)
    judge(Question.objects.get(), passage, 2, by=alice)
    release = publish_release(evalset=evalset, by=None).release
    texts = {name: b"".join(FORMATS[name].stream(release)) for name in FORMATS}
    assert (texts["qrels"], texts["qrels-propagated"]) == (b"", b"q 0 a 2\n")
    (record,) = map(json.loads, texts["label-jsonl"].splitlines())
    assert (record["grades"], [one["id"] for one in record["cut_passages"]]) == ({}, [passage.external_id])
    with zipfile.ZipFile(io.BytesIO(texts["beir"])) as archive:
        files = {name.split("/", 1)[1]: archive.read(name).decode() for name in archive.namelist()}
    assert files["qrels/test.tsv"] == "query-id\tcorpus-id\tscore\n"
    assert [json.loads(line)["_id"] for line in files["corpus.jsonl"].splitlines()] == ["a"]


def test_cut_passages_are_no_copies_of_their_chunks(evalset, packed, alice) -> None:
    for chunk in Chunk.objects.all():
        judge(Question.objects.get(), chunk, 1, by=alice)
    assert chunks_in_play(evalset) == sorted(Chunk.objects.filter(cut_from=None).values_list("pk", flat=True))


def test_bringing_the_context_in_again_changes_nothing_and_another_cut_is_another_run(
    evalset, packed, carol, tmp_path
) -> None:
    def bring(text: str):
        path = tmp_path / "again.jsonl"
        results = [
            {"id": "a", "text": text, "truncated": True},
            {"id": "b", "text": "Refunds", "truncated": True},
            {"id": "c"},
        ]
        path.write_text(json.dumps({"qid": "q", "results": results}) + "\n")
        return import_run(evalset=evalset, source=path, by=carol, system=packed.system.name, stage="context")

    chunks = Chunk.objects.count()
    assert (bring("Refunds take 14 days.").unchanged, Chunk.objects.count()) == (1, chunks)
    assert (bring("Refunds take").new, Chunk.objects.count()) == (1, chunks + 1)
    assert Chunk.objects.filter(cut_from__external_id="a").count() == 2


def test_before_the_chunks_texts_a_cut_passage_is_no_reason_to_refuse_other_ids(
    evalset, carol, tmp_path
) -> None:
    make_questions(evalset, "q")
    path, labels = tmp_path / "run.jsonl", tmp_path / "labels.qrels"
    path.write_text('{"qid": "q", "results": [{"id": "a", "text": "Half", "truncated": true}]}\n')
    import_run(evalset=evalset, source=path, by=carol, system="s", stage="context")
    path.write_text('{"qid": "q", "results": ["other"]}\n')
    assert import_run(evalset=evalset, source=path, by=carol, system="other").written
    labels.write_text("q 0 another 1\n")
    assert import_qrels(evalset=evalset, source=labels, by=carol).written


def test_a_chunk_that_came_by_the_id_of_a_cut_passage_is_bound_to_its_whole(evalset, carol, tmp_path) -> None:
    make_questions(evalset, "q")
    make_chunks(evalset, "a")
    path = tmp_path / "context.jsonl"
    path.write_text(
        json.dumps({"qid": "q", "results": [{"id": "a", "text": "Half", "truncated": True}]}) + "\n"
    )
    options = {"evalset": evalset, "source": path, "by": carol, "system": "s", "stage": "context"}
    name = import_run(**options, check=True).sample[0]["first"][0]
    (early,) = make_chunks(evalset, name, text=False)
    import_run(**options)
    early.refresh_from_db()
    assert (early.cut_from.external_id, early.has_text, early.revisions.get().text) == ("a", True, "Half")


def test_what_was_cut_from_a_cut_passage_is_cut_from_the_whole_chunk(
    evalset, packed, carol, tmp_path
) -> None:
    path = tmp_path / "again.jsonl"
    results = [{"id": cut_from("a").external_id, "text": "Refunds take", "truncated": True}]
    path.write_text(json.dumps({"qid": "q", "results": results}) + "\n")
    import_run(evalset=evalset, source=path, by=carol, system="other", stage="context")
    assert Chunk.objects.filter(cut_from__external_id="a").count() == 2


def test_the_desk_says_that_a_text_was_cut_short_and_the_grade_is_that_of_what_was_left(
    evalset, packed, carol, alice, client_for
) -> None:
    pool, _ = build_pool(evalset=evalset, name="P", runs=[(packed, 3)], by=None)
    batch = make_batch(pool=pool, name="B", by=carol, assessors=[alice])
    desk = client_for(alice)
    told = {}
    for task in claim_next(batch=batch, by=alice, count=3):
        html = desk.get(f"{batch.desk_url}?pair={task.pair_id}").content.decode()
        told[task.pair.chunk] = "This text was cut short" in html
        batches.grade(task.pair, alice, 1)
    assert told == {cut_from("a"): True, cut_from("b"): True, Chunk.objects.get(external_id="c"): False}
    release = publish_release(evalset=evalset, by=None).release
    assert (release.counts["labels"], release.counts["cut_passages"]) == (3, 2)


def test_pages_tell_a_cut_passage_from_its_chunk(evalset, packed, victor, client_for) -> None:
    reader, passage = client_for(victor), cut_from("a")
    assert "This is what was left of" in reader.get(passage.get_absolute_url()).content.decode()
    whole = reader.get(passage.cut_from.get_absolute_url())
    assert list(whole.context["cut_passages"]) == [passage]
    listed = reader.get("/e/handbook/chunks/").context["page"]
    assert [chunk.external_id for chunk in listed] == ["a", "b", "c"]
    found = reader.get("/e/handbook/chunks/", {"q": passage.external_id}).context["page"]
    assert list(found) == [passage]
    assert {
        chunk.cut_from.external_id for chunk in reader.get("/e/handbook/chunks/?only=cut").context["page"]
    } == {
        "a",
        "b",
    }

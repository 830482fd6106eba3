"""Agreement of the people of an eval set: which judgments count, the page, the command."""

import json

import pytest
from django.core.management import CommandError, call_command

from judging.models import Batch, BatchPair, BatchQuestion, Rubric
from labels.agreement_report import report_agreement
from labels.rated_pairs import rated_pairs
from pooling.models import Pool
from tests.conftest import add_revision, make_chunks, make_questions, make_user
from tests.labels.builders import judge

PAGE = "/e/handbook/agreement/"


@pytest.fixture
def world(evalset):
    """One question and what is needed to judge pairs of it: `pair(n)` is the question with chunk n."""
    [question] = make_questions(evalset, "q1")
    chunks = make_chunks(evalset, *(f"c{n:03}" for n in range(60)))
    return lambda n: (question, chunks[n])


def ratings_of(evalset, batch=None) -> list[list[float | None]]:
    """The ratings, a row a pair in the order of completion, a column an assessor by name, None where there is none."""
    table = rated_pairs(evalset, batch).ratings
    return [[None if grade != grade else int(grade) for grade in row] for row in table]


def test_only_independent_grades_of_people_count(evalset, world, alice, bob, carol) -> None:
    judge(*world(0), 2, by=alice)
    judge(*world(0), 1, by=bob, at=5)
    for n, fields in enumerate(
        [
            {"by": carol, "source": "adjudication"},
            {"by": bob, "source": "copy"},
            {"by": bob, "source": "carried"},
            {"by": "file:old"},
            {"by": "model:judge"},
        ],
        start=1,
    ):
        judge(*world(n), 2, by=alice)
        judge(*world(n), 0, **fields)
    judge(*world(9), 2, by=alice)
    judge(*world(9), None, by=bob)
    assert ratings_of(evalset) == [[2, 1]]
    assert [assessor.name for assessor in rated_pairs(evalset).assessors] == ["alice", "bob"]


def test_the_current_grade_counts_and_of_several_the_latest(evalset, world, alice, bob) -> None:
    first = judge(*world(0), 0, by=alice, at=1)
    judge(*world(0), 3, by=alice, at=2, replaces=first)
    judge(*world(0), 1, by=bob, at=3)
    judge(*world(0), 2, by=bob, at=4)
    assert ratings_of(evalset) == [[3, 2]]


def test_grades_of_two_texts_are_not_compared(evalset, world, alice, bob) -> None:
    _question, chunk = world(0)
    judge(*world(0), 0, by=alice)
    judge(*world(0), 1, by=bob)
    add_revision(chunk, "Another text.")
    judge(*world(0), 3, by=alice, at=9)
    assert ratings_of(evalset) == [[0, 1]]
    judge(*world(0), 3, by=bob, at=10)
    assert ratings_of(evalset) == [[0, 1], [3, 3]]


def test_anothers_set_is_not_seen(evalset, other_evalset, world, alice, bob) -> None:
    judge(*world(0), 0, by=alice)
    judge(*world(0), 1, by=bob)
    assert ratings_of(other_evalset) == []


@pytest.fixture
def batch(evalset, world, alice, bob):
    """A batch with chunk 0 of the question; Alice and Bob judged it there, and chunk 1 elsewhere."""
    pool = Pool.objects.create(evalset=evalset, name="pool", seed=1)
    rubric = Rubric.objects.create(evalset=evalset, version=1, scale=evalset.scale)
    made = Batch.objects.create(evalset=evalset, pool=pool, name="first", rubric=rubric, seed=1)
    question, chunk = world(0)
    of_question = BatchQuestion.objects.create(batch=made, question=question, position=0)
    pair = BatchPair.objects.create(
        batch_question=of_question, batch=made, question=question, chunk=chunk, revision=1, position=0
    )
    for by, here, elsewhere in ((alice, 2, 0), (bob, 3, 1)):
        judge(*world(0), here, by=by, pair=pair)
        judge(*world(1), elsewhere, by=by, at=1)
    return made


def test_a_batch_has_an_agreement_of_its_own(evalset, batch, carol, client_for) -> None:
    assert ratings_of(evalset) == [[2, 3], [0, 1]]
    assert ratings_of(evalset, batch) == [[2, 3]]
    page = client_for(carol).get(PAGE, {"batch": batch.pk})
    assert page.context["agreement"].items == 1
    assert "in first" in page.content.decode()
    assert client_for(carol).get(PAGE, {"batch": 10**6}).status_code == 404


def test_the_page_of_a_batch_leads_to_its_agreement_and_shows_a_summary(
    batch, carol, victor, client_for
) -> None:
    client, address = client_for(carol), f"{PAGE}?batch={batch.pk}"
    assert f'href="{address}"' in client.get(batch.get_absolute_url()).content.decode()
    assert address not in client_for(victor).get(batch.get_absolute_url()).content.decode()
    summary = client.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in summary
    assert "Too few pairs to say: 1 with two judgments or more." in summary
    assert "−1.00" in summary


def judged(world, alice, bob, cells: dict[tuple[int, int], int]) -> None:
    """So many pairs that Alice and Bob graded so, a minute apart."""
    n = 0
    for (first, second), times in cells.items():
        for _ in range(times):
            judge(*world(n), first, by=alice, at=n)
            judge(*world(n), second, by=bob, at=n)
            n += 1


def test_nearly_all_zeros_ac2_is_read_and_says_why(evalset, world, alice, bob, carol, client_for) -> None:
    judged(world, alice, bob, {(0, 0): 48, (0, 1): 3, (1, 0): 3, (2, 2): 1})
    report = report_agreement(evalset)
    assert report.verdict.read == report.agreement.ac2
    assert report.agreement.cohen.value < 0.3 < 0.8 < report.agreement.ac2.value
    page = client_for(carol).get(PAGE).content.decode()
    assert "93 % of the judgments are grade 0" in page
    assert "kappa collapses" in page
    assert "That is little to go by." in page


def test_what_is_relevant_may_be_in_dispute_though_the_zeros_are_agreed(evalset, world, alice, bob) -> None:
    judged(world, alice, bob, {(0, 0): 46, (0, 1): 6, (1, 0): 6, (2, 2): 1})
    verdict = report_agreement(evalset).verdict
    assert (verdict.level, verdict.headline) == (
        "tentative",
        "What is not relevant can be trusted; what is relevant is in dispute.",
    )
    assert any("in 1 (8 %)" in reason for reason in verdict.why)


@pytest.mark.parametrize(
    ("cells", "level", "coefficient"),
    [
        ({(0, 0): 20, (2, 2): 20, (3, 3): 19, (2, 3): 1}, "good", "alpha"),
        ({(0, 0): 20, (2, 3): 10, (3, 3): 15, (0, 3): 3}, "tentative", "alpha"),
        ({(0, 3): 15, (3, 0): 15, (1, 1): 5}, "poor", "alpha"),
        ({(0, 0): 59, (1, 1): 1}, "good", "ac2"),
        ({(0, 0): 60}, "good", "ac2"),
        ({(0, 0): 20, (3, 3): 9}, "unknown", "alpha"),
    ],
)
def test_the_verdict(evalset, world, alice, bob, cells, level, coefficient) -> None:
    judged(world, alice, bob, cells)
    report = report_agreement(evalset)
    assert report.verdict.level == level
    assert report.verdict.read == getattr(report.agreement, coefficient)


def test_where_kappa_holds_though_one_grade_prevails_it_is_not_said_to_collapse(
    evalset, world, alice, bob
) -> None:
    judged(world, alice, bob, {(0, 0): 50, (2, 2): 7, (3, 3): 2})
    [why, *_] = report_agreement(evalset).verdict.why
    assert "kappa holds all the same (it is 1.00)" in why


def test_each_against_the_rest_and_each_two(evalset, world, alice, bob, carol) -> None:
    """Dora grades one higher than everybody; she shares two pairs with Alice, one of them with Bob too."""
    dora = make_user("dora")
    for n, grades in enumerate([(1, 1, 2), (0, None, 1), (2, 2, None)]):
        for by, grade in zip((alice, bob, dora), grades, strict=True):
            if grade is not None:
                judge(*world(n), grade, by=by, at=n)
    report = report_agreement(evalset)
    rows = {
        row.assessor.name: (row.pairs, row.twos, row.raw.value, row.higher) for row in report.against_rest
    }
    assert rows == {
        "alice": (3, 4, 0.5, -0.5),
        "bob": (2, 3, pytest.approx(2 / 3), pytest.approx(-1 / 3)),
        "dora": (2, 3, 0, 1),
    }
    twos = [(two.first.name, two.second.name, two.pairs, two.raw.value) for two in report.twos]
    assert twos == [("alice", "bob", 2, 1), ("alice", "dora", 2, 0), ("bob", "dora", 1, 0)]
    assert report.confusion.tolist() == [[0, 1, 0, 0], [0, 1, 2, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_drift_shows_in_equal_parts(evalset, world, alice, bob) -> None:
    judged(world, alice, bob, {(0, 0): 10, (2, 2): 10, (0, 2): 20})
    early, late = report_agreement(evalset).parts
    assert (early.pairs, early.raw.value, late.pairs, late.raw.value) == (20, 1, 20, 0)
    assert early.ends < late.begins


def test_without_two_judgments_the_page_says_how_to_get_them(
    evalset, world, alice, carol, client_for
) -> None:
    judge(*world(0), 0, by=alice)
    page = client_for(carol).get(PAGE).content.decode()
    assert "No pair has two judgments by different people yet" in page
    assert "overlap" in page


def test_a_cell_opens_its_pairs_and_does_not_say_who(evalset, world, alice, bob, carol, client_for) -> None:
    judged(world, alice, bob, {(0, 0): 1, (0, 2): 1, (2, 0): 1, (2, 2): 1})
    client = client_for(carol)
    table = client.get(PAGE).content.decode()
    assert f'{PAGE}pairs/?low=0&amp;high=2"' in table
    page = client.get(f"{PAGE}pairs/", {"low": 2, "high": 0})
    assert [(chunk.external_id, given) for _, chunk, _, given, _ in page.context["rows"]] == [
        ("c001", [0, 2]),
        ("c002", [0, 2]),
    ]
    assert "alice" not in page.content.decode().lower().replace("carol", "")
    same = client.get(f"{PAGE}pairs/", {"low": 2, "high": 2})
    assert [chunk.external_id for _, chunk, *_ in same.context["rows"]] == ["c003"]
    assert "No pair was graded" in client.get(f"{PAGE}pairs/", {"low": "x", "high": 3}).content.decode()
    asked = {"low": 0, "high": 2, "q": "C002"}
    assert [str(row[1]) for row in client.get(f"{PAGE}pairs/", asked).context["rows"]] == ["c002"]
    nothing = client.get(f"{PAGE}pairs/", {**asked, "q": "c003"}).content.decode()
    assert 'No pair is of such a question or chunk. <a href="?low=0&amp;high=2">Show all</a>' in nothing


def test_the_command_says_the_same_as_the_page(evalset, world, batch, alice, bob, capsys) -> None:
    call_command("agreement", "handbook", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (document["pairs"], document["judgments"], document["confusion"][2][3]) == (2, 4, 1)
    assert {one["name"]: one["value"] for one in document["coefficients"]}["Raw agreement"] == 0
    call_command("agreement", "handbook", "--batch", "first")
    said = capsys.readouterr().out
    assert "Too few pairs to say: 1 with" in said
    assert "Krippendorff's alpha, ordinal" in said
    with pytest.raises(CommandError, match=r"no batch 'second' in handbook\. Known: first"):
        call_command("agreement", "handbook", "--batch", "second")


def test_the_command_where_nobody_agrees_or_differs_yet(evalset, capsys) -> None:
    call_command("agreement", "handbook")
    assert "No pair has two judgments" in capsys.readouterr().out
    call_command("agreement", "handbook", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (document["pairs"], document["verdict"], document["coefficients"][0]["value"]) == (0, None, None)

"""Drawing the holdout: groups whole, slices in proportion, the same seed the same split."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsets.errors import BadInput, Refused
from evalsets.services.splits import draw_split
from evalsets.splits import SplitQuestion, draw_holdout
from tests.conftest import make_questions

questions = st.lists(
    st.builds(
        SplitQuestion,
        id=st.integers(0, 99).map(str),
        group=st.sampled_from(["", "", "a", "b", "c"]),
        slices=st.lists(st.sampled_from(["x", "y", "z"]), unique=True),
    ),
    unique_by=lambda question: question.id,
    max_size=40,
)


@settings(deadline=None)
@given(questions, st.sampled_from([0.2, 0.5]), st.integers(0, 5), st.randoms())
def test_groups_stay_whole_and_the_order_of_questions_plays_no_part(all_questions, share, seed, random):
    holdout = draw_holdout(all_questions, share=share, seed=seed)
    shuffled = list(all_questions)
    random.shuffle(shuffled)
    assert draw_holdout(shuffled, share=share, seed=seed) == holdout
    for name in {question.group for question in all_questions} - {""}:
        members = {question.id for question in all_questions if question.group == name}
        assert members <= holdout or not members & holdout


def test_each_slice_keeps_its_share():
    slices = [["rare"]] * 10 + [["common"]] * 60 + [["common", "rare"]] * 10 + [[]] * 20
    all_questions = [SplitQuestion(str(number), "", names) for number, names in enumerate(slices)]
    holdout = draw_holdout(all_questions, share=0.3, seed=1)
    assert len(holdout) == 30
    for name, size in (("rare", 20), ("common", 70)):
        inside = sum(name in question.slices for question in all_questions if question.id in holdout)
        assert abs(inside - 0.3 * size) <= 1


def test_another_seed_draws_another_holdout():
    all_questions = [SplitQuestion(str(number), "", []) for number in range(50)]
    draws = {frozenset(draw_holdout(all_questions, share=0.5, seed=seed)) for seed in range(5)}
    assert len(draws) == 5


def test_the_draw_is_written_down_with_its_seed(evalset, carol):
    make_questions(evalset, *(f"q{number}" for number in range(10)))
    drawn = draw_split(evalset=evalset, share=0.3, seed=7, by=carol)
    assert drawn == {"dev": 7, "holdout": 3, "seed": 7}
    assert evalset.questions.filter(split="holdout").count() == 3
    assert evalset.events.get().details == {**drawn, "share": 0.3}


def test_a_share_outside_0_1_is_refused(evalset, carol):
    with pytest.raises(BadInput, match="between 0 and 1"):
        draw_split(evalset=evalset, share=1.0, by=carol)


def test_nothing_to_split_is_said(evalset, carol):
    with pytest.raises(Refused, match="no questions"):
        draw_split(evalset=evalset, share=0.3, by=carol)


def test_the_page_draws_and_warns_before_it_replaces(evalset, carol, client_for):
    make_questions(evalset, "q1", "q2", "q3", "q4")
    client = client_for(carol)
    assert "Replace the split" not in client.get("/e/handbook/questions/split/").content.decode()
    client.post("/e/handbook/questions/split/", {"share": "0.5", "seed": "1"})
    assert evalset.questions.filter(split="holdout").count() == 2
    assert "Replace the split" in client.get("/e/handbook/questions/split/").content.decode()

"""The pages of scoring: the verdict first, and no score without its unjudged rate."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from django.urls import reverse

from evalsets.models import Job, Question
from labels.models import Release
from labels.services.publishing import publish_release
from scoring.definitions import DEFINITIONS
from scoring.models import Analysis, Comparison, ScoreResult
from scoring.pictures import bars_picture, interval_picture
from scoring.services import requests
from scoring.services.comparing import compare_runs
from scoring.services.scoring import resolve
from scoring.templatetags.scores import definition, p_value, signed
from tests.conftest import make_chunks, make_questions, make_run
from tests.labels.builders import judge
from tests.scoring.test_measures import LABELS, RUN_A, RUN_B, WORKED
from tests.scoring.test_scoring_services import release_labels

pytestmark = pytest.mark.django_db
RULES = {"release": 1, "measures": "Recall@3 RR@3 nDCG@3"}


def page(name: str, *arguments) -> str:
    return reverse(f"scoring:{name}", args=["handbook", *arguments])


@pytest.fixture
def worked(evalset):
    release = release_labels(evalset, LABELS)
    return release, make_run(evalset, "A", RUN_A), make_run(evalset, "B", RUN_B)


@pytest.fixture
def lead(carol, client_for):
    return client_for(carol)


def text_of(response) -> str:
    """What a reader sees: the page without its tags, with single spaces."""
    assert response.status_code == 200, response.status_code
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_empty_states_say_what_to_do(evalset, lead) -> None:
    assert "there is none yet" in text_of(lead.get(page("score-list")))
    for name in ("comparison-list", "sweep", "unjudged", "reusability", "stages"):
        assert "there is none yet" in text_of(lead.get(page(name))), name
    release_labels(evalset, {"q": {"a": 1}})
    assert "There are no runs to score" in text_of(lead.get(page("score-list")))
    assert "needs the runs of two systems" in text_of(lead.get(page("comparison-list")))


def test_the_worked_example_on_the_page(worked, lead) -> None:
    assert "2 runs are not scored by these rules yet" in text_of(lead.get(page("score-list")))
    response = lead.post(page("score-new"), {**RULES, "runs_chosen": ["A", "B"]}, follow=True)
    seen = text_of(response)
    for row in WORKED.strip().splitlines():
        _, question, *expected = row.split()
        if question == "mean":
            # Each number is followed by its unjudged rate.
            rate = "0.0 % unjudged"
            assert f"{expected[0]} {rate} {expected[1]} {rate} {expected[2]} {rate}" in seen
    detail = text_of(lead.get(ScoreResult.objects.get(run=worked[1]).get_absolute_url()))
    assert "limits 0.5000 0.0 % unjudged 1.0000 0.0 % unjudged 0.7872 0.0 % unjudged" in detail
    assert detail.index("limits 0.5000") < detail.index("refund 1.0000")


def test_no_score_without_its_rate_on_any_page(worked, lead) -> None:
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["A", "B"]})
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"})
    comparison = Comparison.objects.first()
    for address in (
        page("score-list") + "?release=1&measures=Recall@3+RR@3+nDCG@3&runs_chosen=A&runs_chosen=B",
        ScoreResult.objects.filter(policy="raw").first().get_absolute_url(),
        comparison.get_absolute_url(),
    ):
        assert "% unjudged" in text_of(lead.get(address)), address


def test_downloads_have_the_rate_beside_each_number(worked, lead) -> None:
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["A"]})
    result = ScoreResult.objects.get()
    rows = list(csv.reader(io.StringIO(lead.get(page("score-download", result.pk, "csv")).content.decode())))
    assert rows[0][:6] == ["release", "run", "policy", "question", "Recall@3", "unjudged@3 (Recall@3)"]
    assert rows[1][:6] == ["1", "A", "raw", "limits", "0.5", "0.0"]
    document = json.loads(lead.get(page("score-download", result.pk, "json")).content)
    assert document["hash"] == worked[0].content_hash
    assert document["runs"][0]["questions"][0]["measures"]["Recall@3"] == 0.5
    assert lead.get(page("score-download", result.pk, "xml")).status_code == 404


def test_a_formula_in_an_id_is_defused_in_csv(evalset, lead) -> None:
    release_labels(evalset, {"=1+1": {"a": 1}})
    make_run(evalset, "r", {"=1+1": ["a"]})
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["r"]})
    body = lead.get(page("score-download", ScoreResult.objects.get().pk, "csv")).content.decode()
    assert "'=1+1" in body


def test_wrong_rules_go_back_with_the_reason(worked, lead) -> None:
    for wrong, told in (
        ({"measures": "Recall@0"}, "whole number from 1 up"),
        ({"threshold": 9}, "not a grade from 1 to 3"),
        ({"runs_chosen": ["Z"]}, "Runs: There is no run Z here."),
        ({"policy": "lenient"}, "Select a valid choice"),
    ):
        response = lead.post(page("score-new"), {**RULES, "runs_chosen": ["A"], **wrong}, follow=True)
        assert told in text_of(response), wrong
    assert ScoreResult.objects.count() == 0


def test_an_address_that_says_part_or_names_nothing_still_shows_the_page(worked, lead) -> None:
    lead.post(
        page("score-new"), {"release": 1, "measures": "Recall@5 nDCG@10 RR@10", "runs_chosen": ["A", "B"]}
    )
    whole = lead.get(page("score-list")).context["rows"]
    for query, told in (
        ("release=1", ""),
        ("release=77", "Release: There is no release 77 here."),
        ("release=1&runs_chosen=Z", "Runs: There is no run Z here."),
    ):
        response = lead.get(f"{page('score-list')}?{query}")
        assert response.context["rows"] == whole
        assert response.context["wrong"] == ([told] if told else [])
        assert told in text_of(response)
    seen = text_of(lead.get(page("comparison-list") + "?release=abc"))
    assert "There is no release abc here." in seen
    assert "This field is required" not in seen
    assert "No comparison has been made yet" in seen


def test_not_scored_yet_stands_below_all_columns(worked, lead) -> None:
    html = lead.get(page("score-list") + "?release=1&measures=Recall@3+nDCG@3").content.decode()
    assert '<td class="text-body-secondary" colspan="6">not scored yet</td>' in html


def test_lists_are_sorted_as_the_address_says(worked, evalset, lead) -> None:
    release_labels(evalset, {"refund": {"new": 1}})
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"}, follow=True)
    for address, column, values in [
        (page("comparison-list"), "measure", ["RR@3", "Recall@3", "nDCG@3"]),
        (reverse("labels:release-list", args=["handbook"]), "number", [1, 2]),
    ]:
        asked = {"number": "release"}.get(column, column)
        for sign, expected in (("", sorted(values)), ("-", sorted(values, reverse=True))):
            rows = lead.get(f"{address}?sort={sign}{asked}").context["page"]
            assert [getattr(row, column) for row in rows] == expected


def test_scores_are_sorted_by_a_measure_and_unscored_runs_stand_last(worked, evalset, lead) -> None:
    lead.post(page("score-new"), {"release": 1, "measures": "Recall@3 nDCG@3", "runs_chosen": ["A", "B"]})
    make_run(evalset, "AA", RUN_A)
    address = (
        page("score-list") + "?release=1&measures=Recall@3+nDCG@3&runs_chosen=A&runs_chosen=B&runs_chosen=AA"
    )
    by_name = {run.name: result for run, result in lead.get(address).context["rows"]}
    value = {name: result.document["measures"]["nDCG@3"] for name, result in by_name.items() if result}
    rising = sorted(value, key=value.__getitem__)
    for sort, expected in (
        ("nDCG@3", [*rising, "AA"]),
        ("-nDCG@3", [*reversed(rising), "AA"]),
        ("run", ["A", "AA", "B"]),
        ("-run", ["B", "AA", "A"]),
    ):
        response = lead.get(f"{address}&sort={sort}")
        assert [run.name for run, _ in response.context["rows"]] == expected
        direction = "descending" if sort.startswith("-") else "ascending"
        assert response.content.decode().count(f'aria-sort="{direction}"') == 1


def test_the_questions_of_a_score_are_sorted_both_ways(worked, evalset, lead) -> None:
    lead.post(page("score-new"), {"release": 1, "measures": "Recall@3 nDCG@3", "runs_chosen": ["A"]})
    result = evalset.score_results.get()
    value = {row["id"]: row["measures"]["nDCG@3"] for row in result.document["questions"]}
    for sort, by, direction, expected in (
        ("nDCG@3", "lowest nDCG@3", "ascending", sorted(value, key=lambda id: (value[id], id))),
        ("-nDCG@3", "highest nDCG@3", "descending", sorted(value, key=lambda id: (-value[id], id))),
        ("question", "", "ascending", sorted(value)),
        ("-question", "", "descending", sorted(value, reverse=True)),
        ("nothing", "lowest Recall@3", "ascending", None),
    ):
        response = lead.get(result.get_absolute_url(), {"sort": sort})
        if expected:
            assert [row[0] for row in response.context["rows"]] == expected
        assert f"By question{f', the {by} first' if by else ''} " in text_of(response)
        assert response.content.decode().count(f'aria-sort="{direction}"') == 1


def test_a_comparison_says_the_verdict_first(worked, lead) -> None:
    response = lead.post(
        page("comparison-new"), {**RULES, "measures": "nDCG@3", "a": "A", "b": "B"}, follow=True
    )
    seen = text_of(response)
    assert seen.index("The difference may be read.") < seen.index("Numbers") < seen.index("By question")
    assert "nDCG@3 improved on 2 of 3 questions and regressed on 1" in seen
    assert "2, 1, 0 n = 3 questions" in seen
    assert "in no pool" in seen
    assert "limits What is limits? 0.7872 0.0 % unjudged 0.6064 0.0 % unjudged −0.180" in seen
    assert "Make the pool that mends it" not in seen


def test_comparisons_are_filtered_by_release(worked, evalset, lead) -> None:
    lead.post(page("comparison-new"), {**RULES, "measures": "nDCG@3", "a": "A", "b": "B"}, follow=True)
    release_labels(evalset, {"refund": {"new": 1}})
    for on, count in (("1", 1), ("2", 0), ("77", 1)):
        response = lead.get(page("comparison-list"), {"on": on})
        assert len(response.context["page"]) == count
        assert ("No comparison is like that" in text_of(response)) == (not count)
        assert 'role="search"' in response.content.decode()


def test_the_questions_that_changed_are_searched_on_either_side(worked, lead) -> None:
    lead.post(page("comparison-new"), {**RULES, "measures": "nDCG@3", "a": "A", "b": "B"}, follow=True)
    comparison = Comparison.objects.get()
    worse, better = (
        [row["id"] for row in comparison.document[side]] for side in ("regressions", "improvements")
    )
    for asked, found in (
        ({}, worse),
        ({"show": "better"}, better),
        ({"show": "better", "q": better[1].upper()}, better[1:]),
        ({"q": better[0]}, []),
    ):
        response = lead.get(comparison.get_absolute_url(), asked)
        assert [row["id"] for row, _ in response.context["rows"]] == found
        assert ("No question that got worse matches" in text_of(response)) == (not found)
        assert "Got worse 1 Got better 2" in text_of(response)


def test_a_run_outside_the_pool_is_told_apart_and_mended_by_one_click(evalset, lead) -> None:
    release_labels(evalset, {"q": {"a": 1, "b": 0}})
    old, new = make_run(evalset, "old", {"q": ["a"]}), make_run(evalset, "new", {"q": ["x"]})
    response = lead.post(
        page("comparison-new"), {**RULES, "measures": "P@1", "a": "old", "b": "new"}, follow=True
    )
    seen = text_of(response)
    assert "This is not a difference in quality." in seen
    assert "0 % for A and 100 % for B" in seen
    mend = response.context["mend"]
    if mend:
        assert mend.endswith(f"?run={old.pk}&run={new.pk}&k=1")
        assert "Make the pool that mends it" in seen


def test_contested_pairs_are_told_apart_from_those_that_a_pool_mends(evalset, lead) -> None:
    [question] = make_questions(evalset, "q")
    a, b = make_chunks(evalset, "a", "b")
    judge(question, a, 1, by="file:one")
    judge(question, b, 1, by="file:one")
    judge(question, b, 3, by="file:two")
    publish_release(evalset=evalset, by=None)
    make_run(evalset, "A", {"q": ["a"]}), make_run(evalset, "B", {"q": ["b"]})
    response = lead.post(
        page("comparison-new"), {**RULES, "measures": "P@1", "a": "A", "b": "B"}, follow=True
    )
    seen = text_of(response)
    assert "1 contested pair has no label on this release and counts as unjudged." in seen
    assert "people differ on all of these pairs, and a contested pair has no label." in seen
    assert "Settle the 1 contested pair first." in response.context["document"]["sentence"]
    assert "Make the pool that mends it" not in seen


def test_contested_pairs_beside_unseen_ones_are_counted_at_the_depth_of_the_measure(evalset) -> None:
    [question, without] = make_questions(evalset, "q", "without a label")
    a, b, c = make_chunks(evalset, "a", "b", "c")
    judge(question, a, 1, by="file:one")
    for asked, chunk in ((question, b), (question, c), (without, a)):
        judge(asked, chunk, 0, by="file:one")
        judge(asked, chunk, 3, by="file:two")
    release = publish_release(evalset=evalset, by=None).release
    old = make_run(evalset, "old", {"q": ["a", "b"], "without a label": ["a"]})
    new = make_run(evalset, "new", {"q": ["b", "x", "c"], "without a label": ["a"]})
    asked = resolve(release, measures=["P@1", "P@2", "AP"])
    at_1, at_2, whole = (
        one.document for one in compare_runs(release=release, run_a=old, run_b=new, asked=asked)
    )
    assert at_1["remedy"] == "Settle the 1 contested pair first."
    assert at_2["remedy"] == "Judge the remainder and settle the 1 contested pair first."
    assert whole["remedy"] == "Judge the remainder and settle the 2 contested pairs first."
    assert whole["sentence"].endswith(whole["remedy"])


def test_both_rankings_side_by_side(worked, lead) -> None:
    lead.post(page("comparison-new"), {**RULES, "measures": "nDCG@3", "a": "A", "b": "B"})
    comparison = Comparison.objects.get()
    question = Question.objects.get(external_id="limits")
    response = lead.get(page("comparison-question", comparison.pk, question.pk))
    seen = text_of(response)
    assert "A A nDCG@3 0.7872" in seen
    assert "rank 3 in B" in seen
    assert "only here" in seen
    assert "Text of scope." in seen
    assert lead.get(page("comparison-question", comparison.pk, 0)).status_code == 404


def test_unjudged_entries_are_open_rings_side_by_side(evalset, lead) -> None:
    release_labels(evalset, {"q": {"a": 1, "b": 0}})
    make_run(evalset, "old", {"q": ["a"]})
    make_run(evalset, "new", {"q": ["x", "a"]})
    lead.post(page("comparison-new"), {**RULES, "measures": "P@2", "a": "old", "b": "new"})
    comparison = Comparison.objects.get()
    question = Question.objects.get(external_id="q")
    response = lead.get(page("comparison-question", comparison.pk, question.pk))
    assert 'aria-label="unjudged"' in response.content.decode()
    assert "only here · unjudged" in text_of(response)


def test_the_log_is_listed_and_searched(worked, lead) -> None:
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"})
    assert "A → B" in text_of(lead.get(page("comparison-list")))
    assert "No comparison is like that." in text_of(lead.get(page("comparison-list") + "?q=zzz"))


def test_what_cannot_be_compared_says_why(worked, evalset, lead) -> None:
    make_run(evalset, "again", RUN_A)
    seen = text_of(lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "again"}, follow=True))
    assert "same rankings, chunk for chunk" in seen
    seen = text_of(lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "A"}, follow=True))
    assert "Choose another run than the baseline." in seen


def test_a_sweep_ranks_warns_and_offers_the_holdout(evalset, lead) -> None:
    release_labels(evalset, {"q1": {"a": 1}, "q2": {"a": 1}})
    Question.objects.filter(external_id="q2").update(split="holdout")
    release_labels(evalset, {"q1": {"b": 0}})
    make_run(evalset, "base", {"q1": ["b", "a"], "q2": ["a"]})
    make_run(evalset, "good", {"q1": ["a"], "q2": ["a", "b"]})
    make_run(evalset, "bad", {"q1": ["b"], "q2": ["b", "a"]})
    sent = {"release": 2, "measures": "P@1", "baseline": "base", "candidates": ["bad", "good"]}
    seen = text_of(lead.post(page("sweep-new"), sent, follow=True))
    assert "The best of 2 looks better than it is." in seen
    assert seen.index("good 1.0000") < seen.index("bad 0.0000")
    assert "Confirm good on the holdout split" in seen
    assert "The floor below which nothing is news is not known" in seen
    assert Comparison.objects.count() == 2
    confirm = {"release": 2, "a": "base", "b": "good", "measures": "P@1", "split": "holdout"}
    assert "looked at the holdout split" in text_of(lead.post(page("comparison-new"), confirm, follow=True))


def test_a_sweep_gives_the_floor_and_confirms_by_its_own_rules(evalset, lead) -> None:
    release_labels(evalset, {"q1": {"a": 2}, "q2": {"a": 2}})
    Question.objects.filter(external_id="q2").update(split="holdout")
    release = release_labels(evalset, {"q1": {"b": 1}})
    make_run(evalset, "base", {"q1": ["b", "a"], "q2": ["a"]}, system="base")
    make_run(evalset, "again", {"q1": ["a"], "q2": ["a", "b"]}, system="base")
    sent = {
        "release": release.number,
        "measures": "P@1",
        "threshold": 2,
        "baseline": "base",
        "candidates": "again",
    }
    response = lead.post(page("sweep-new"), sent, follow=True)
    assert "The floor: base and again are runs of one system, and half their interval is 0.5000." in text_of(
        response
    )
    assert '<input type="hidden" name="threshold" value="2">' in response.content.decode()


def test_unjudged_by_depth_has_a_table_for_its_picture(evalset, lead) -> None:
    release_labels(evalset, {"q": {"a": 1, "b": 0}})
    make_run(evalset, "r", {"q": ["a", "x", "b", "y"]})
    assert "No run has been scored" in text_of(lead.get(page("unjudged")))
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["r"]})
    seen = text_of(lead.get(page("unjudged")))
    assert "r in no pool 0.0 % 50.0 % 33.3 % – – – – –" in seen


def test_reusability_and_stages(evalset, lead) -> None:
    release_labels(evalset, {"q": {"a": 1, "b": 1}})
    make_run(evalset, "first", {"q": ["a", "b"]}, system="s", stage="candidates")
    make_run(evalset, "second", {"q": ["b"]}, system="s", stage="context")
    make_run(evalset, "other", {"q": ["a"]})
    sent = {"release": 1, "measures": "Recall@2", "chosen": ["second", "other"]}
    seen = text_of(lead.post(page("reusability-new"), sent, follow=True))
    assert "No system would change its rank" in seen
    sent = {"release": 1, "candidates": "first", "context": "second"}
    seen = text_of(lead.post(page("stages-new"), sent, follow=True))
    assert "left after context 1" in seen
    assert "dropped in packing" in seen
    assert Analysis.objects.count() == 2
    twice = {"release": 1, "measures": "Recall@2", "chosen": ["first", "second"]}
    assert "Choose one run of each system" in text_of(lead.post(page("reusability-new"), twice, follow=True))


def test_the_questions_of_a_trace_are_searched_and_sorted(evalset, lead) -> None:
    release_labels(evalset, {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "r": {"a": 1, "b": 1, "c": 1}})
    make_run(evalset, "first", {"q1": ["a"], "q2": ["a"], "r": ["a"]}, system="s", stage="candidates")
    make_run(evalset, "second", {"q1": ["a"], "q2": [], "r": ["a"]}, system="s", stage="context")
    sent = {"release": 1, "candidates": "first", "context": "second"}
    lead.post(page("stages-new"), sent, follow=True)
    address = Analysis.objects.get().get_absolute_url()
    for asked, found in (
        ("q=Q", ["q1", "q2"]),
        ("sort=-question", ["r", "q2", "q1"]),
        ("sort=-never retrieved", ["r", "q1", "q2"]),
        ("sort=never retrieved", ["q2", "q1", "r"]),
        ("q=q&sort=-dropped in packing", ["q2", "q1"]),
        ("q=nowhere", []),
    ):
        response = lead.get(f"{address}&{asked}")
        assert [row[0] for row in response.context["rows"]] == found
        assert ("No question matches" in text_of(response)) == (not found)


def test_each_question_mark_opens_a_definition_that_is_there(worked, lead) -> None:
    _release, run, _ = worked
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["A", "B"]})
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"})
    swept = {"release": 1, "measures": "P@1", "baseline": "A", "candidates": ["B"]}
    left_out = {"release": 1, "measures": "Recall@2", "chosen": ["A", "B"]}
    there = re.findall(r'<div id="([a-z-]+)">', lead.get(page("definitions")).content.decode())
    shown = {
        "scores": (lead.get(page("score-list")), {"recall", "rr", "ndcg", "averaged", "facts"}),
        "score": (lead.get(ScoreResult.objects.first().get_absolute_url()), {"recall", "rr", "ndcg"}),
        "comparison": (lead.get(Comparison.objects.first().get_absolute_url()), {"judged-only", "wins"}),
        "sweep": (
            lead.post(page("sweep-new"), swept, follow=True),
            {"p", "judged-only", "interval", "p-value"},
        ),
        "reusability": (lead.post(page("reusability-new"), left_out, follow=True), {"recall", "tau"}),
        "run": (lead.get(run.get_absolute_url()), set()),
    }
    for name, (response, wanted) in shown.items():
        asked = set(re.findall(r'scores/definitions/#([a-z-]+)"', response.content.decode()))
        assert {"unjudged", *wanted} <= asked <= set(there), name


def test_much_work_becomes_a_job(worked, lead, monkeypatch) -> None:
    monkeypatch.setattr(requests, "RANKINGS_AT_ONCE", 2)
    response = lead.post(page("score-new"), {**RULES, "runs_chosen": ["A", "B"]})
    job = Job.objects.get()
    assert response.url == job.get_absolute_url()
    assert job.title == "Score 2 runs"
    outcome = requests.perform(
        evalset=job.evalset, kind=job.parameters["kind"], parameters=job.parameters, by=job.created_by
    )
    assert ScoreResult.objects.count() == 2
    assert "0.7296" in text_of(lead.get(outcome.url))


def test_scores_on_an_earlier_release_say_so(worked, evalset, lead) -> None:
    lead.post(page("score-new"), {**RULES, "runs_chosen": ["A"]})
    result = ScoreResult.objects.get()
    release_labels(evalset, {"refund": {"new": 1}})
    assert Release.objects.count() == 2
    assert "A later release, 2, is there" in text_of(lead.get(result.get_absolute_url()))


def test_a_viewer_reads_and_does_not_act(worked, victor, lead, client_for) -> None:
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"})
    viewer = client_for(victor)
    assert "The difference may be read." in text_of(viewer.get(Comparison.objects.first().get_absolute_url()))
    assert viewer.post(page("comparison-new"), {**RULES, "a": "B", "b": "A"}).status_code == 403
    for name in ("score-list", "comparison-list", "sweep", "unjudged", "reusability", "stages"):
        assert '<form method="post" action="/e/' not in viewer.get(page(name)).content.decode(), name


def test_nothing_of_another_eval_set_is_shown(worked, mallory, lead, other_evalset, client_for) -> None:
    lead.post(page("comparison-new"), {**RULES, "a": "A", "b": "B"})
    stranger = client_for(mallory)
    comparison, result = Comparison.objects.first(), ScoreResult.objects.first()
    assert stranger.get(comparison.get_absolute_url()).status_code == 404
    for name, pk in (("comparison", comparison.pk), ("score", result.pk)):
        assert stranger.get(reverse(f"scoring:{name}", args=["elsewhere", pk])).status_code == 404


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "+0.1000"), (-0.25, "−0.2500"), (0.0, "0.0000"), (None, "–")]
)
def test_signed(value, text) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.00004, "under 0.001"), (0.0421, "0.042"), (1.0, "1.000")])
def test_p_value(value, text) -> None:
    assert p_value(value) == text


def test_the_interval_stands_around_zero() -> None:
    picture = interval_picture(-0.02, 0.04, 0.01, width=600)
    assert (picture.zero, picture.low, picture.high, picture.mean) == (300, 180, 540, 360)
    assert [label for _, label in picture.ticks] == ["−0.05", "−0.025", "0", "+0.025", "+0.05"]


def test_bars_run_from_the_largest_gain_to_the_largest_loss() -> None:
    picture = bars_picture([("a", -0.5), ("b", 0.25), ("c", 0.0), ("d", 1.0)])
    assert [bar.label for bar in picture.bars] == ["d: +1.0000", "b: +0.2500", "a: -0.5000"]
    assert [bar.worse for bar in picture.bars] == [False, False, True]
    assert picture.bars[2].y == picture.zero
    many = bars_picture([(str(n), 0.001 * n) for n in range(1, 400)])
    assert (len(many.bars), many.left_out, many.bars[0].label) == (150, 249, "399: +0.3990")


@pytest.mark.parametrize(
    "measure",
    [
        "Recall@5",
        "RR@10",
        "P(rel=2)@5",
        "Success@1",
        "AP",
        "nDCG@10",
        "Judged@5",
        "Bpref",
        "RBP(p=0.8)",
        "infAP",
        "infNDCG@5",
    ],
)
def test_every_measure_has_a_definition(measure) -> None:
    assert definition(measure) in {one.name for one in DEFINITIONS}


def test_a_score_opens_the_definition_of_its_measure(worked, lead) -> None:
    seen = lead.post(page("score-new"), {**RULES, "runs_chosen": ["A"]}, follow=True).content.decode()
    assert f'{page("definitions")}#ndcg"' in seen

"""The pool pages and commands: what people send, what they see, who may."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from evalsets.models import Job, Question
from judging.management.commands import remainder as remainder_command
from judging.pool_numbers import PairCounts
from judging.pool_tables import numbers_json, overlap_rows, waterfall
from judging.services.pools import measure_pool, pairs_of_question, preview_pool
from judging.views import pools as views
from pooling.models import Pool
from pooling.services.finding import find_run_to_depth
from pooling.services.pools import build_pool
from pooling.specifying import specify_pool
from tests.conftest import make_chunks, make_questions, make_run
from tests.judging.test_remainder import judge, queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(evalset):
    make_questions(evalset, "q1", "q2", slices=["legal"])
    make_questions(evalset, "q3")
    make_chunks(evalset, "a", "b", "c", "d", "e")
    return [
        make_run(evalset, "bm25", {"q1": ["a", "b"], "q2": ["a"], "q3": ["d"]}),
        make_run(evalset, "dense", {"q1": ["c", "b"], "q2": [], "q3": ["d", "e"]}),
    ]


@pytest.fixture
def lead(client_for, carol):
    return client_for(carol)


NEW = "/e/handbook/pools/new/"


def chosen(runs, **more) -> dict:
    """What the form of a new pool sends."""
    sent = {
        "run": [run.pk for run in runs],
        "k": 2,
        "strategy": "depth",
        "fusion": "rrf",
        "order": "shuffled",
    }
    return {**sent, **more}


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


# New pool


def test_a_new_pool_begins_with_the_latest_run_of_each_system(evalset, runs, lead) -> None:
    old = make_run(evalset, "bm25-old", {"q1": ["e"]}, system="bm25", date=runs[0].date.replace(year=2025))
    page = lead.get(NEW)
    chosen_runs = {run.name for run, is_chosen, _ in page.context["form"].run_choices() if is_chosen}
    assert chosen_runs == {"bm25", "dense"}
    assert page.context["numbers"].totals.remainder == 6
    assert f'value="{old.pk}"' in page.content.decode()


def test_the_preview_shows_what_it_costs_and_writes_nothing(evalset, runs, lead) -> None:
    judge(evalset, "q1", "b", 0)
    page = lead.get(NEW, chosen(runs))
    assert page.context["numbers"].totals.remainder == 5
    text = text_of(page)
    assert "Remainder 5 pairs for people to judge" in text
    assert "2 min" in text  # 5 times 25 s
    assert "Build the pool of 6 pairs" in text
    assert Pool.objects.count() == 0


def test_htmx_gets_the_preview_alone_and_the_address_that_shows_it_again(runs, lead) -> None:
    sent = chosen(runs, k=1, preview=1, seed="")
    page = lead.post(NEW, sent, headers={"HX-Request": "true"})
    assert page.status_code == 200
    body = page.content.decode().strip()
    assert body.startswith('<section id="preview"')
    assert body.endswith("</section>")
    again = lead.get(page["HX-Replace-Url"])
    assert again.context["numbers"] == page.context["numbers"]
    assert "seed" not in page["HX-Replace-Url"]


def test_a_preview_of_a_long_list_of_questions(evalset, runs, lead) -> None:
    ids = [f"{number:040}" for number in range(300)]
    Question.objects.bulk_create(Question(evalset=evalset, external_id=qid, text="?") for qid in ids)
    sent = chosen(runs, preview=1, questions="\n".join(ids))
    page = lead.post(NEW, sent, headers={"HX-Request": "true"})
    assert len(page.context["numbers"].questions) == 300
    assert "HX-Replace-Url" not in page
    whole = lead.post(NEW, sent)
    assert (whole.status_code, whole.context["numbers"].totals.union) == (200, 0)
    assert Pool.objects.count() == 0


def test_depths_slices_and_lists_change_the_preview(evalset, runs, lead) -> None:
    def union(**more) -> int:
        return lead.get(NEW, chosen(runs, **more)).context["numbers"].totals.union

    assert union() == 6
    assert union(k=1) == 4
    assert union(**{"k": 1, f"k-{runs[0].pk}": 2}) == 5
    assert union(slice="legal") == 4
    assert union(questions="q3\r\n q2 \r\n") == 3
    assert union(strategy="budget", budget=1) == 6
    page = lead.get(NEW, chosen(runs, strategy="budget", budget=1))
    assert page.context["numbers"].totals.pairs == 3


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"run": []}, "Choose at least one run."),
        ({"run": [987654]}, "Select a valid choice"),
        ({"k": "many"}, "Enter a whole number."),
        ({"k": "0"}, "greater than or equal to 1"),
        ({"strategy": "budget"}, "The budget is a whole number of pairs"),
        ({"questions": "q1\nq9"}, "1 of the listed questions are not in this eval set: q9"),
        ({"extends": "77"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_previewed(runs, lead, sent, said) -> None:
    page = lead.get(NEW, chosen(runs, **sent))
    assert page.status_code == 200
    assert said in text_of(page)
    assert "numbers" not in page.context


def test_building_is_a_redirect_to_the_pool(evalset, runs, lead, carol) -> None:
    response = lead.post(NEW, chosen(runs, name="Round 1"), follow=True)
    pool = Pool.objects.get()
    assert response.redirect_chain == [(f"/e/handbook/pools/{pool.pk}/", 302)]
    assert (pool.name, pool.created_by) == ("Round 1", carol)
    assert "The pool is built." in text_of(response)
    again = lead.post(NEW, chosen(runs, name="Round 2"), follow=True)
    assert "This very pool was built before" in text_of(again)
    assert Pool.objects.count() == 1


def test_what_was_previewed_is_what_its_button_builds(evalset, runs, lead) -> None:
    page = lead.get(NEW, chosen(runs, slice="legal", strategy="budget", budget=1, seed=9))
    build_form = page.content.decode().partition('<section id="preview"')[2]
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', build_form)
    sent: dict[str, list[str]] = {}
    for name, value in hidden:
        sent.setdefault(name, []).append(value)
    lead.post(NEW, {**sent, "name": "Built"})
    pool = Pool.objects.get()
    assert pool.specification_hash == page.context["specification"].digest
    assert (pool.seed, pool.question_filter) == (9, {"slice": "legal"})


def test_a_name_that_is_taken_is_said_at_its_field(evalset, runs, lead) -> None:
    build_pool(evalset=evalset, name="Round 1", runs=[(runs[0], 1)], by=None)
    page = lead.post(NEW, chosen(runs, name="Round 1"))
    assert page.status_code == 422
    assert "named Round 1 already" in text_of(page)
    assert lead.post(NEW, chosen(runs, name=" ")).status_code == 422
    assert Pool.objects.count() == 1


def test_a_large_pool_is_built_by_a_worker(evalset, runs, lead, monkeypatch) -> None:
    monkeypatch.setattr(views, "BUILT_AT_ONCE", 1)
    response = lead.post(NEW, chosen(runs, name="Large"))
    job = Job.objects.get()
    assert response["Location"] == job.get_absolute_url()
    assert (job.task, job.title) == ("pooling.build_pool", "Build pool Large")


@pytest.mark.django_db(transaction=True)
def test_the_worker_builds_what_was_previewed(evalset, runs, lead, carol, monkeypatch) -> None:
    from pooling.tasks import build_pool_job

    monkeypatch.setattr(views, "BUILT_AT_ONCE", 1)
    first, _ = build_pool(evalset=evalset, name="first", runs=[(runs[0], 1)], by=None)
    lead.post(NEW, chosen(runs, name="Large", slice="legal", extends=first.pk))
    job = Job.objects.get()
    build_pool_job(job.pk)
    job.refresh_from_db()
    pool = Pool.objects.get(name="Large")
    assert (job.result, job.result_url) == ({"pool": pool.pk, "created": True}, pool.get_absolute_url())
    assert (pool.created_by, pool.extends, pool.question_filter) == (carol, first, {"slice": "legal"})
    assert measure_pool(pool).totals.pairs == 2


def test_adding_a_system_chooses_those_that_the_chain_lacks(evalset, runs, lead) -> None:
    first, _ = build_pool(evalset=evalset, name="first", runs=[(runs[0], 2)], by=None)
    page = lead.get(NEW, {"extends": first.pk})
    assert [run.name for run, is_chosen, _ in page.context["form"].run_choices() if is_chosen] == ["dense"]
    totals = page.context["numbers"].totals
    assert (totals.union, totals.covered, totals.remainder) == (4, 2, 2)


def test_links_may_choose_the_runs_and_the_depth(evalset, runs, lead) -> None:
    page = lead.get(NEW, {"run": [runs[1].pk], "k": 1})
    assert page.context["specification"].runs == ((runs[1], 1),)
    assert "Only one run" in text_of(page)


def test_without_runs_the_page_says_what_to_do(evalset, lead) -> None:
    assert "Bring in a run" in text_of(lead.get(NEW))
    assert "there are none yet" in text_of(lead.get("/e/handbook/pools/"))


# The pool


@pytest.fixture
def pool(evalset, runs) -> Pool:
    return build_pool(evalset=evalset, name="Round 1", runs=[(run, 2) for run in runs], by=None)[0]


def test_the_pool_page_shows_numbers_runs_questions_and_batches(evalset, pool, lead) -> None:
    judge(evalset, "q1", "b", 0)
    batch = queue(pool, ("q1", "c"))
    page = lead.get(pool.get_absolute_url())
    text = text_of(page)
    for said in (
        "Round 1",
        "bm25",
        "dense",
        "Hand out a batch",
        "Add a system",
        "Download the remainder",
        batch.name,
    ):
        assert said in text
    assert [row.counts.added_remainder for row in page.context["run_rows"]] == [3, 1]
    assert [counts.remainder for _, counts in page.context["question_rows"]] == [1, 1, 2]
    largest_first = lead.get(pool.get_absolute_url(), {"sort": "-union"}).context["question_rows"]
    assert [counts.union for _, counts in largest_first] == [3, 2, 1]
    found = lead.get(pool.get_absolute_url(), {"q": "q3"}).context["question_rows"]
    assert [question.external_id for question, _ in found] == ["q3"]


def test_a_viewer_reads_and_has_no_buttons(evalset, pool, client_for, victor) -> None:
    text = text_of(client_for(victor).get(pool.get_absolute_url()))
    assert "Run by run" in text
    assert "Hand out a batch" not in text


def test_the_chain_is_shown_with_what_each_pool_added(evalset, runs, pool, lead) -> None:
    third = make_run(evalset, "third", {"q1": ["a", "e"], "q2": ["b"]})
    second, _ = build_pool(evalset=evalset, name="Round 2", runs=[(third, 5)], extends=pool, by=None)
    rows = lead.get(second.get_absolute_url()).context["chain_rows"]
    assert [(row.pool.name, row.pairs) for row in rows] == [("Round 1", 6), ("Round 2", 2)]
    assert "Extended by Round 2" in text_of(lead.get(pool.get_absolute_url()))


def test_pairs_of_a_question_with_who_returned_them(evalset, pool, lead) -> None:
    judge(evalset, "q1", "b", 0)
    judge(evalset, "q1", "c", None, kind="cannot-judge", reason="other")
    question = Question.objects.get(external_id="q1")
    told = [
        (pair.chunk.external_id, pair.state, [(run.name, rank) for run, rank in pair.returns])
        for pair in pairs_of_question(pool, question)
    ]
    assert told == [
        ("a", "to judge", [("bm25", 1)]),
        ("b", "judged", [("bm25", 2), ("dense", 2)]),
        ("c", "cannot be judged", [("dense", 1)]),
    ]
    page = lead.get(reverse("judging:pool-question", args=["handbook", pool.pk, question.pk]))
    assert "dense 2" in text_of(page)


def test_the_list_searches_sorts_and_counts(evalset, runs, pool, lead, django_assert_max_num_queries) -> None:
    build_pool(evalset=evalset, name="Alone", runs=[(runs[1], 1)], by=None)
    with django_assert_max_num_queries(14):
        page = lead.get("/e/handbook/pools/", {"sort": "name"})
    assert [(row.name, pairs) for row, pairs in page.context["rows"]] == [("Alone", 2), ("Round 1", 6)]
    assert [row.name for row, _ in lead.get("/e/handbook/pools/", {"q": "bm25"}).context["rows"]] == [
        "Round 1"
    ]
    assert "No pool matches" in text_of(lead.get("/e/handbook/pools/", {"q": "nothing"}))


def test_the_remainder_is_downloaded_as_lines(evalset, pool, lead, client_for, victor) -> None:
    address = reverse("judging:pool-remainder", args=["handbook", pool.pk])
    response = lead.get(address)
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert {(record["question_id"], record["chunk_id"]) for record in map(json.loads, lines)} == {
        ("q1", "a"), ("q1", "b"), ("q1", "c"), ("q2", "a"), ("q3", "d"), ("q3", "e"),
    }  # fmt: skip
    assert (
        response["Content-Disposition"] == f'attachment; filename="handbook-pool-{pool.pk}-remainder.jsonl"'
    )
    assert client_for(victor).get(address).status_code == 403


def test_one_click_builds_the_pool_that_a_comparison_lacks(evalset, runs, lead) -> None:
    address = reverse("judging:pool-mend", args=["handbook"])
    sent = {"run_a": runs[0].pk, "run_b": runs[1].pk, "k": 1}
    response = lead.post(address, sent, follow=True)
    pool = Pool.objects.get()
    assert (pool.name, [item.k for item in pool.pool_runs.all()]) == ("bm25 against dense to 1", [1, 1])
    assert response.redirect_chain[-1][0] == pool.get_absolute_url()
    lead.post(address, sent)
    assert Pool.objects.count() == 1
    assert "at least 1; got 0" in text_of(lead.post(address, {**sent, "k": "x"}, follow=True))
    assert lead.post(address, {**sent, "run_b": 0}).status_code == 404


def test_pools_of_another_eval_set_are_not_found(evalset, pool, mallory, client_for) -> None:
    client = client_for(mallory)
    own = pool.get_absolute_url().replace("handbook", "elsewhere")
    assert client.get(pool.get_absolute_url()).status_code == 404
    assert client.get(own).status_code == 404
    assert client.get(f"{own}remainder/").status_code == 404


# Rows and documents


def test_the_waterfall_leaves_out_what_is_not_there() -> None:
    totals = PairCounts(
        10,
        beyond_budget=0,
        covered=0,
        not_drawn=0,
        judged=4,
        cannot_judge=0,
        queued=0,
        waiting_for_text=1,
        remainder=5,
    )
    assert [(part.name, part.count, part.share) for part in waterfall(totals)] == [
        ("judged", 4, 0.4),
        ("queued", 0, 0.0),
        ("waiting_for_text", 1, 0.1),
        ("remainder", 5, 0.5),
    ]


def test_overlap_is_the_share_of_the_row(evalset, runs) -> None:
    specification = specify_pool(evalset=evalset, runs=[(runs[0], 2), (runs[1], 2)])
    (_, first), (_, second) = overlap_rows(specification.runs, preview_pool(specification))
    assert [(cell.count, cell.share, cell.same) for cell in first] == [(4, 1.0, True), (2, 0.5, False)]
    assert [(cell.count, cell.same) for cell in second] == [(2, False), (4, True)]


# Commands


def run_command(name: str, *arguments: str) -> tuple[dict, str]:
    out, err = StringIO(), StringIO()
    call_command(name, *arguments, "--json", stdout=out, stderr=err)
    return json.loads(out.getvalue()), err.getvalue()


def test_build_pool_previews_then_builds_the_same(evalset, runs, carol) -> None:
    judge(evalset, "q1", "b", 0)
    arguments = ["handbook", "Round 1", "--run", "bm25:2", "--run", "dense", "--k", "2"]
    preview, _ = run_command("build_pool", *arguments, "--preview")
    assert Pool.objects.count() == 0
    assert preview | {"per_question": [], "runs": []} == {
        "questions": 3, "union": 6, "pairs": 6, "judged": 1, "cannot_judge": 0, "queued": 0, "waiting_for_text": 0,
        "remainder": 5, "in_judged_class": 0, "beyond_budget": 0, "covered": 0, "not_drawn": 0, "seconds": 125.0,
        "seconds_per_judgment": 25.0, "timed_judgments": 0, "per_question": [], "runs": [],
        "overlap": [[4, 2], [2, 4]], "warnings": [], "written": False,
    }  # fmt: skip
    q1 = preview["per_question"][0]
    assert (q1["id"], q1["union"], q1["judged"], q1["queued"], q1["remainder"]) == ("q1", 3, 1, 0, 2)
    dense = preview["runs"][1]
    assert {key: dense[key] for key in ("run", "k", "returned", "judged", "unjudged", "unique")} == {
        "run": "dense", "k": 2, "returned": 4, "judged": 1, "unjudged": 3, "unique": 2,
    }  # fmt: skip
    built, _ = run_command("build_pool", *arguments, "--by", "carol")
    assert built.pop("written") is True
    assert built.pop("pool") == "Round 1"
    assert built.pop("seed") == Pool.objects.get().seed
    preview.pop("written")
    assert built == preview
    again, _ = run_command("build_pool", *arguments)
    assert again["written"] is False
    assert Pool.objects.get().created_by == carol
    turned = ["handbook", "Round 1", "--run", "dense", "bm25", "--k", "2"]
    the_same, _ = run_command("build_pool", *turned)
    assert the_same == again, "whichever order its runs are named in, each has its own numbers"


def test_build_pool_prints_for_people(evalset, runs) -> None:
    out, err = StringIO(), StringIO()
    call_command("build_pool", "handbook", "P", "--run", "bm25:2", stdout=out, stderr=err)
    assert "Pool P is built." in out.getvalue()
    assert re.search(r"Remainder +4", out.getvalue())
    assert "Only one run" in err.getvalue()


def test_build_pool_extends_and_takes_a_budget(evalset, runs) -> None:
    run_command("build_pool", "handbook", "first", "--run", "bm25:2")
    document, _ = run_command(
        "build_pool", "handbook", "second", "--run", "dense:2", "--extends", "first",
        "--strategy", "budget", "--budget", "1", "--fusion", "votes", "--slice", "legal",
    )  # fmt: skip
    assert (document["questions"], document["union"], document["pairs"]) == (2, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "P", "--run", "bm25:2"], "no eval set 'nowhere'"),
        (["handbook", "P", "--run", "bm26:2"], "no run 'bm26'. Known: bm25, dense"),
        (["handbook", "P", "--run", "bm26"], "no run 'bm26'"),
        (["handbook", "P", "--run", "bm25"], "Write bm25:K, or give --k"),
        (["handbook", "P", "--run", "bm25:ten"], "got 'ten'"),
        (["handbook", "P", "--run", "bm25:0"], "at least 1; got 0"),
        (["handbook", "--run", "bm25:1"], "Give the pool a name"),
        (["handbook", "P", "--run", "bm25:1", "--extends", "Q"], "no pool 'Q'. Known: none yet"),
        (["handbook", "P", "--run", "bm25:1", "--budget", "3"], "knows no budget"),
    ],
)
def test_build_pool_says_what_is_wrong(evalset, runs, arguments, said) -> None:
    with pytest.raises(CommandError, match=re.escape(said)) as caught:
        call_command("build_pool", *arguments)
    assert caught.value.returncode == 3
    assert Pool.objects.count() == 0


def test_a_colon_may_be_part_of_a_runs_name(evalset) -> None:
    make_questions(evalset, "q1")
    plain, colon = make_run(evalset, "bm25", {"q1": ["a"]}), make_run(evalset, "bm25:10", {"q1": ["b"]})
    assert find_run_to_depth(evalset, "bm25:10", 3) == (colon, 3)
    assert find_run_to_depth(evalset, "bm25:10:7", 3) == (colon, 7)
    assert find_run_to_depth(evalset, "bm25:20", 3) == (plain, 20)


def test_the_remainder_command_writes_a_whole_file(evalset, pool, tmp_path) -> None:
    file = tmp_path / "left.jsonl"
    document, _ = run_command("remainder", "handbook", "--pool", "Round 1", "--output", str(file))
    assert document["remainder"] == 6 == len(file.read_text().splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["left.jsonl"]


def test_the_remainder_command_leaves_nothing_half_written(evalset, pool, tmp_path, monkeypatch) -> None:
    def lines(pool, without_copies):
        yield "{}\n"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remainder_command, "remainder_lines", lines)
    file = tmp_path / "left.jsonl"
    file.write_text("before\n")
    with pytest.raises(CommandError, match="No space left"):
        call_command("remainder", "handbook", "--pool", "Round 1", "--output", str(file))
    assert file.read_text() == "before\n"
    assert [path.name for path in tmp_path.iterdir()] == ["left.jsonl"]


def test_the_remainder_on_standard_output(evalset, pool, capsys) -> None:
    call_command("remainder", "handbook", "--pool", "Round 1", "--output", "-", stderr=StringIO())
    assert len(capsys.readouterr().out.splitlines()) == 6
    with pytest.raises(CommandError, match="standard output is for the document"):
        call_command(
            "remainder", "handbook", "--pool", "Round 1", "--output", "-", "--json", stdout=StringIO()
        )


def test_the_document_names_questions_by_their_id(evalset, runs) -> None:
    specification = specify_pool(evalset=evalset, runs=[(runs[0], 1)])
    names = {question.pk: question.external_id for question in evalset.questions.all()}
    document = numbers_json(specification.runs, preview_pool(specification), names)
    assert [row["id"] for row in document["per_question"]] == ["q1", "q2", "q3"]


def test_pairs_of_a_question_are_searched_filtered_and_sorted(evalset, pool, lead) -> None:
    judge(evalset, "q1", "b", 0)
    question = Question.objects.get(external_id="q1")
    address = reverse("judging:pool-question", args=["handbook", pool.pk, question.pk])

    def listed(**said) -> list[str]:
        return [pair.chunk.external_id for pair in lead.get(address, said).context["page"]]

    assert listed() == ["a", "b", "c"]
    assert listed(sort="-chunk") == ["c", "b", "a"]
    assert listed(sort="rank") == ["a", "c", "b"]
    assert listed(state="judged") == listed(q="B") == ["b"]
    seen = lead.get(address, {"q": "b", "state": "to judge"}).content.decode()
    assert 'No pair of the question is like that. <a href="?">Show all</a>' in seen

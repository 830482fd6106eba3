"""What somebody tries who means harm, or has a link from somebody who does: sign-in, sessions, headers, forged IDs."""

from __future__ import annotations

import json
import uuid

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse

from evalsets.callers import caller_address
from evalsets.models import EvalSet, Member, User
from judging.models import Batch, Judgment
from pooling.models import Pool, Run
from pooling.services.pools import build_pool
from scoring.models import Comparison, ScoreResult
from tests.config.api import ApiClient, token_for
from tests.conftest import PASSWORD, make_chunks, make_questions, make_run
from tests.judging.batches import batch_of, pair_of

NEW_PASSWORD = "another long enough one"


def sign_in(client: Client, username: str = "carol", password: str = PASSWORD, **headers: str):
    return client.post("/sign-in/", {"username": username, "password": password}, **headers)


# --- sign-in and sessions ---


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "/%09/evil.example",
        "http://testserver.evil.example/",
        "http://testserver@evil.example/",
    ],
)
def test_sign_in_sends_nobody_elsewhere(there, carol) -> None:
    for client in (Client(), Client(headers={"HX-Request": "true"})):
        response = client.post(
            f"/sign-in/?next={there}", {"username": "carol", "password": PASSWORD, "next": there}
        )
        assert response.status_code == 302
        assert response["Location"].startswith("/")
        assert not response["Location"].startswith(("//", "/\\"))
        assert "evil" not in response["Location"].partition("%09")[0]
        # Who is signed in already is sent on by the page itself.
        again = client.get("/sign-in/", {"next": there})
        assert "evil" not in again["Location"].partition("%09")[0]


def test_an_expired_sign_in_comes_back_to_this_site_alone(evalset) -> None:
    forged = {"HX-Request": "true", "HX-Current-URL": "https://evil.example/e/handbook/"}
    answer = Client().get("/e/handbook/", headers=forged)
    assert "evil" not in answer["HX-Redirect"]
    answer = Client().post(
        "/e/handbook/members/add/", headers={"Referer": "https://evil.example/e/handbook/"}
    )
    assert "evil" not in answer["Location"]


def test_a_session_that_was_planted_is_not_the_one_after_sign_in(carol) -> None:
    client = Client()
    client.cookies[django_settings.SESSION_COOKIE_NAME] = "planted"
    sign_in(client)
    assert client.cookies[django_settings.SESSION_COOKIE_NAME].value != "planted"


def test_a_new_password_ends_all_other_sessions(evalset, carol) -> None:
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        sign_in(client)
    fields = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert here.post("/password/", fields).status_code == 302
    assert here.get("/e/handbook/").status_code == 200
    assert elsewhere.get("/e/handbook/").status_code == 302


def test_who_may_no_longer_sign_in_is_out_at_once(evalset, carol, client_for) -> None:
    client, program = client_for(carol), ApiClient(token_for(evalset, carol))
    carol.is_active = False
    carol.save()
    assert client.get("/e/handbook/").status_code == 302
    assert program.call("get").status_code == 401


def test_who_was_removed_is_out_at_once_and_so_are_their_tokens(evalset, carol, client_for) -> None:
    client, program = client_for(carol), ApiClient(token_for(evalset, carol))
    Member.objects.filter(user=carol).delete()
    assert client.get("/e/handbook/").status_code == 404
    assert program.call("get").status_code == 401


def test_cookies_and_headers_behind_tls(settings, carol) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 31536000
    client = Client()
    assert client.get("/sign-in/")["Location"] == "https://testserver/sign-in/"
    page = client.get("/sign-in/", secure=True)
    assert page["Strict-Transport-Security"].startswith("max-age=31536000")
    assert page["Referrer-Policy"] == "same-origin"
    assert page["X-Frame-Options"] == "DENY"
    assert page["X-Content-Type-Options"] == "nosniff"
    policy = {part.split()[0]: part.split()[1:] for part in page["Content-Security-Policy"].split("; ")}
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
    assert policy["img-src"] == ["'self'", "data:"]  # no pixel elsewhere learns who reads what
    assert "unsafe" not in page["Content-Security-Policy"]
    sign_in(client, secure=True)
    session = client.cookies[django_settings.SESSION_COOKIE_NAME]
    assert (session["secure"], session["httponly"], session["samesite"]) == (True, True, "Lax")
    assert client.cookies[django_settings.CSRF_COOKIE_NAME]["secure"]


def test_a_forged_host_is_refused(settings, evalset, carol, client_for) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    assert client_for(carol).get("/e/handbook/tokens/", headers={"Host": "evil.example"}).status_code == 400


def test_forms_and_the_desk_need_the_csrf_token(evalset, carol) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(carol, backend="django.contrib.auth.backends.ModelBackend")
    for address in ("/e/handbook/members/add/", "/password/", "/sign-out/", "/evalsets/new/"):
        for kind in ("application/x-www-form-urlencoded", "application/json", "text/plain"):
            assert client.post(address, "x=1", content_type=kind).status_code == 403, (address, kind)


@pytest.mark.parametrize("name", ["carol", "ｃarol"])
def test_guessing_is_stopped_however_the_name_is_written(name, carol) -> None:
    for attempt in range(10):
        sign_in(Client(), name, f"wrong {attempt}", REMOTE_ADDR="192.0.2.1")
    assert sign_in(Client(), "carol", PASSWORD, REMOTE_ADDR="192.0.2.1").status_code == 429
    # Nobody shuts Carol out from another place.
    assert sign_in(Client(), "carol", PASSWORD, REMOTE_ADDR="192.0.2.2").status_code == 302


def test_without_a_proxy_a_forged_address_is_nothing(carol) -> None:
    for attempt in range(10):
        sign_in(Client(), "carol", "wrong", REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=f"10.0.0.{attempt}")
    assert sign_in(Client(), REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR="10.9.9.9").status_code == 429


def test_behind_a_proxy_what_it_appended_counts(settings, carol) -> None:
    settings.PROXY_COUNT = 1
    forwarded = "10.0.0.{}, 192.0.2.1"  # the first is what the reader made up, the last what the proxy saw
    for attempt in range(10):
        sign_in(Client(), "carol", "wrong", HTTP_X_FORWARDED_FOR=forwarded.format(attempt))
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR=forwarded.format(99)).status_code == 429
    assert sign_in(Client(), HTTP_X_FORWARDED_FOR="10.0.0.1, 192.0.2.7").status_code == 302


@pytest.mark.parametrize(
    ("proxies", "connected", "forwarded", "address"),
    [
        (0, "192.0.2.1", "10.0.0.1", "192.0.2.1"),
        (1, "172.17.0.2", "10.0.0.1, 192.0.2.1", "192.0.2.1"),
        (2, "172.17.0.2", "10.0.0.1, 192.0.2.1,172.17.0.9", "192.0.2.1"),
        (1, "172.17.0.2", "", None),
        (2, "172.17.0.2", "192.0.2.1", "172.17.0.2"),  # came in past the outer proxy
        (1, "172.17.0.2", "<script>", None),
        (0, "", "", None),  # a Unix socket
        (0, "2001:db8:1:2:3::4", "", "2001:db8:1:2::"),
        (0, "::ffff:192.0.2.1", "", "192.0.2.1"),
    ],
)
def test_from_where_somebody_calls(proxies, connected, forwarded, address, settings, rf) -> None:
    settings.PROXY_COUNT = proxies
    request = rf.get("/", REMOTE_ADDR=connected, HTTP_X_FORWARDED_FOR=forwarded)
    assert caller_address(request) == address


# --- IDs of another eval set in what is sent ---


class Secrets:
    """One of each in an eval set of which Mallory is no member."""

    def __init__(self, evalset: EvalSet, carol: User, alice: User) -> None:
        [self.question] = make_questions(evalset, "q1")
        make_chunks(evalset, "c1")
        self.run = make_run(evalset, "sekrit", {"q1": ["c1"]})
        self.pool, _ = build_pool(evalset=evalset, name="sekrit pool", runs=[(self.run, 5)], by=carol)
        self.batch = batch_of(evalset, {"q1": ["c1"]}, by=carol, assessors=[alice], name="sekrit batch")
        self.alice = alice


@pytest.fixture
def theirs(evalset, carol, alice) -> Secrets:
    return Secrets(evalset, carol, alice)


@pytest.fixture
def mine(other_evalset, mallory) -> tuple[Run, Pool, Batch]:
    make_questions(other_evalset, "q1")
    make_chunks(other_evalset, "c1")
    run = make_run(other_evalset, "mine", {"q1": ["c1"]})
    pool, _ = build_pool(evalset=other_evalset, name="my pool", runs=[(run, 5)], by=mallory)
    return run, pool, batch_of(other_evalset, {"q1": ["c9"]}, by=mallory, assessors=[mallory], name="mine")


def test_forms_take_nothing_of_another_eval_set(theirs, mine, mallory, other_evalset, client_for) -> None:
    run, pool, _ = mine
    before = (Pool.objects.count(), Batch.objects.count())
    client = client_for(mallory)
    whole_batch = {
        "pool": pool.pk, "name": "x", "assessors": [mallory.pk], "sharing": "by-question", "overlap": 1,
        "overlap_percent": 0, "lease_minutes": 30,
    }  # fmt: skip
    whole_pool = {"run": [run.pk], "k": 5, "strategy": "depth", "name": "x"}
    asked = {"release": 1, "measures": "Recall@5"}
    for name, fields in (
        ("judging:batch-new", whole_batch | {"pool": theirs.pool.pk}),
        ("judging:batch-new", whole_batch | {"assessors": [theirs.alice.pk]}),
        ("judging:pool-new", whole_pool | {"run": [theirs.run.pk]}),
        ("judging:pool-new", whole_pool | {"extends": theirs.pool.pk}),
        ("scoring:score-new", asked | {"runs_chosen": ["sekrit"]}),
        ("scoring:comparison-new", asked | {"a": "mine", "b": "sekrit"}),
    ):
        response = client.post(reverse(name, args=["elsewhere"]), fields)
        assert response.status_code in (302, 422), name
        if response.status_code == 302:
            response = client.get(response["Location"])
        said = response.content.decode().replace("There is no run sekrit here", "")
        assert "sekrit" not in said, name
    assert (Pool.objects.count(), Batch.objects.count()) == before
    assert not Comparison.objects.exists()
    assert not ScoreResult.objects.exists()
    # The same with what is Mallory's own goes through, so that it was the IDs that did not.
    assert client.post(reverse("judging:batch-new", args=["elsewhere"]), whole_batch).status_code == 302
    assert Batch.objects.count() == before[1] + 1


def test_a_batchs_acts_take_nothing_of_another_batch(theirs, mine, mallory, client_for) -> None:
    *_, batch = mine
    client = client_for(mallory)
    foreign_question = theirs.batch.batch_questions.get()
    foreign_assessor = theirs.batch.assessors.get()
    own_question = batch.batch_questions.get()
    for name, fields in (
        ("judging:batch-extend", {"assessors": [theirs.alice.pk]}),
        ("judging:batch-reassign", {"questions": [foreign_question.pk], "to": ""}),
        ("judging:batch-reassign", {"questions": [own_question.pk], "to": foreign_assessor.pk}),
    ):
        client.post(reverse(name, args=["elsewhere", batch.pk]), fields)
    foreign_question.refresh_from_db()
    assert [person.user for person in batch.assessors.all()] == [mallory]
    assert theirs.batch.batch_questions.get() == foreign_question


def test_the_desk_takes_no_pair_of_another_batch(theirs, mine, mallory, client_for) -> None:
    *_, batch = mine
    client = client_for(mallory)
    foreign = pair_of(theirs.batch, "q1", "c1")
    fields = {
        "pair": foreign.pk,
        "key": str(uuid.uuid4()),
        "as_user": mallory.pk,
        "act": "grade:3",
        "revision": 1,
    }
    answer = client.post(
        reverse("judging:desk-save", args=["elsewhere", batch.pk]),
        fields,
        headers={"Accept": "application/json"},
    )
    assert answer.status_code in (404, 409, 422)
    assert not Judgment.objects.exists()


def test_nobody_judges_in_anothers_name(theirs, alice, carol, client_for) -> None:
    pair = pair_of(theirs.batch, "q1", "c1")
    fields = {"pair": pair.pk, "key": str(uuid.uuid4()), "as_user": carol.pk, "act": "grade:3", "revision": 1}
    answer = client_for(alice).post(
        reverse("judging:desk-save", args=["handbook", theirs.batch.pk]),
        fields,
        headers={"Accept": "application/json"},
    )
    assert answer.status_code != 200
    assert not Judgment.objects.exists()


# --- fields that a form does not have ---


def test_forms_set_no_field_that_they_do_not_show(evalset, carol, alice, client_for) -> None:
    client = client_for(carol)
    settings_page = client.get("/e/handbook/settings/")
    shown = settings_page.context["form"]
    fields = {name: shown[name].value() for name in shown.fields}
    fields["scale"] = "\n".join(f"{item['name']}: {item['definition']}" for item in evalset.scale)
    fields = {name: value for name, value in fields.items() if value not in (None, False)}
    client.post(
        "/e/handbook/settings/", {**fields, "name": "New name", "slug": "stolen", "id": 999, "created_at": ""}
    )
    evalset.refresh_from_db()
    assert (evalset.name, evalset.slug) == ("New name", "handbook")

    new = {
        "username": "dora",
        "role": "assessor",
        "password": NEW_PASSWORD,
        "is_superuser": "on",
        "is_staff": "on",
    }
    client.post("/e/handbook/members/add/", new)
    dora = User.objects.get(username="dora")
    assert (dora.is_superuser, dora.is_staff) == (False, False)


# --- files and names ---


NAMES = [
    "../../../etc/passwd",
    "..\\..\\evil.exe",
    'a"; filename="evil.html',
    "a\r\nX-Evil: 1",
    "\u202egpj.exe",
    "/",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_files_name_is_only_a_label(name, settings, evalset, carol) -> None:
    program = ApiClient(token_for(evalset, carol))
    answer = program.call(
        "post",
        "/imports/run",
        b"q1 Q0 c1 1 1 dense\n",
        content_type="text/plain",
        query_params={"file_name": name},
    )
    assert answer.status_code in (202, 400, 422), answer.content
    for upload in evalset.uploads.all():
        assert upload.file.name.startswith("uploads/")
        assert "upload-" in upload.file.name
        assert "/" not in upload.original_name


def test_json_of_great_depth_is_refused(evalset, carol) -> None:
    program = ApiClient(token_for(evalset, carol))
    deep = "[" * 100_000 + "]" * 100_000
    for body in (deep, json.dumps({"runs": "x"})[:-2] + deep + "}"):
        answer = program.call("post", "/pools/preview", body)
        assert answer.status_code in (400, 422), answer.content[:300]

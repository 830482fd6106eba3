"""API tokens: made, shown once, weakened with their maker, revoked; by page, command and service."""

import hashlib
import json
import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from evalsets.errors import BadInput, Refused
from evalsets.models import ApiToken, Event, Member
from evalsets.services.jobs import JobOutcome, run_job, start_job
from evalsets.services.tokens import create_token, find_token, note_use, revoke_token

TOKENS = "/e/handbook/tokens/"
LEAD, ASSESSOR, VIEWER = Member.Role.LEAD, Member.Role.ASSESSOR, Member.Role.VIEWER


def test_only_the_hash_is_stored(evalset, carol) -> None:
    token, text = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    assert re.fullmatch(r"fairpool_[\w-]{43}", text)
    assert token.hash == hashlib.sha256(text.encode()).hexdigest()
    assert text.startswith(token.start)
    assert len(token.start) < 15
    found = find_token(text)
    assert found == token
    assert found.user.acting_token == token


@pytest.mark.parametrize(
    "text", ["", "fairpool_", "fairpool_wrong", "Fairpool_x", "fairpool_\x00", "fairpool_é"]
)
def test_other_texts_find_nothing(text, evalset, carol) -> None:
    create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    assert find_token(text) is None


@pytest.mark.parametrize("maker", ["alice", "victor", "mallory"])
def test_only_a_lead_makes_tokens(maker, request, evalset) -> None:
    with pytest.raises(Refused, match="does not lead"):
        create_token(evalset=evalset, by=request.getfixturevalue(maker), name="ci", role=VIEWER)
    assert not ApiToken.objects.exists()


def test_a_superuser_counts_as_lead(evalset, root) -> None:
    token, _ = create_token(evalset=evalset, by=root, name="ci", role=LEAD)
    assert token.role_under(evalset.role_of(root)) == LEAD


@pytest.mark.parametrize(
    ("role", "maker", "power"),
    [
        (LEAD, LEAD, LEAD),
        (LEAD, ASSESSOR, ASSESSOR),
        (LEAD, VIEWER, VIEWER),
        (LEAD, None, None),
        (VIEWER, LEAD, VIEWER),
        (VIEWER, VIEWER, VIEWER),
        (VIEWER, ASSESSOR, None),  # an assessor judges blind and may not read what a viewer reads
        (VIEWER, None, None),
        (ASSESSOR, LEAD, ASSESSOR),
        (ASSESSOR, ASSESSOR, ASSESSOR),
        (ASSESSOR, VIEWER, None),
        (ASSESSOR, None, None),
    ],
)
def test_never_more_than_its_maker(role, maker, power) -> None:
    assert ApiToken(role=role).role_under(maker) == power


def test_names_are_free_again_after_revoking(evalset, carol) -> None:
    token, _ = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    with pytest.raises(BadInput, match="a token named ci here already"):
        create_token(evalset=evalset, by=carol, name="ci", role=VIEWER)
    revoke_token(token=token, by=carol)
    create_token(evalset=evalset, by=carol, name="ci", role=VIEWER)
    with pytest.raises(Refused, match="revoked already"):
        revoke_token(token=token, by=carol)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "  "}, "1 to 100"),
        ({"name": "x" * 101}, "1 to 100"),
        ({"days": 0}, "1 to 3650"),
        ({"days": 4000}, "1 to 3650"),
    ],
)
def test_what_cannot_be_is_said(changes, message, evalset, carol) -> None:
    with pytest.raises(BadInput, match=message):
        create_token(**{"evalset": evalset, "by": carol, "name": "ci", "role": LEAD, **changes})


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("token_name_twice", {"name": "ci"}),
        ("token_without_name", {"name": ""}),
        ("token_role_unknown", {"role": "emperor"}),
        ("token_hash_malformed", {"hash": "short"}),
    ],
)
def test_the_database_refuses(constraint, fields, evalset, carol) -> None:
    create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    row = {"evalset": evalset, "user": carol, "name": "other", "role": "lead", "start": "", "hash": "0" * 64}
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        ApiToken.objects.create(**{**row, **fields})


def test_states(evalset, carol) -> None:
    token, _ = create_token(evalset=evalset, by=carol, name="ci", role=LEAD, days=1)
    assert token.state == "active"
    token.expires_at = timezone.now() - timedelta(seconds=1)
    assert token.state == "expired"
    token.revoked_at = timezone.now()
    assert token.state == "revoked"


def test_use_is_written_down_once_a_minute(evalset, carol, django_assert_num_queries) -> None:
    token, _ = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    note_use(token)
    token.refresh_from_db()
    assert timezone.now() - token.last_used_at < timedelta(minutes=1)
    with django_assert_num_queries(0):
        note_use(token)


def test_a_job_that_a_token_began_acts_by_the_token(
    evalset, carol, django_capture_on_commit_callbacks
) -> None:
    _, text = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    job = start_job(evalset=evalset, task="none", title="A job", by=find_token(text).user)

    def work(job, progress):
        from evalsets.services.events import record_event

        record_event(evalset=job.evalset, by=job.created_by, verb="worked", summary="It worked.")
        return JobOutcome({})

    run_job(job.pk, work)
    job.refresh_from_db()
    assert job.actor == "token ci of Carol"
    assert [event.actor for event in Event.objects.order_by("pk")] == ["Carol", "token ci of Carol"]


# The page


def test_the_page_shows_the_token_once_with_a_line_to_copy(evalset, carol, client_for) -> None:
    client = client_for(carol)
    response = client.post(f"{TOKENS}new/", {"name": "ci", "role": "lead", "days": "30"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    [text] = set(re.findall(r"fairpool_[\w-]{43}", response.content.decode()))
    assert f"Bearer {text}" in response.content.decode()
    assert find_token(text).role == "lead"
    listed = client.get(TOKENS).content.decode()
    assert text not in listed
    assert text[:13] in listed
    assert "token ci of Carol" in client.get("/e/handbook/audit/").content.decode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "required"),
        ({"role": "emperor"}, "valid choice"),
        ({"days": "7000"}, "valid choice"),
        ({"name": "ci"}, "here already"),
    ],
)
def test_the_page_says_what_is_wrong(changes, message, evalset, carol, client_for) -> None:
    create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    response = client_for(carol).post(f"{TOKENS}new/", {"name": "new", "role": "lead", "days": "", **changes})
    assert response.status_code == 422
    assert message in response.content.decode()
    assert ApiToken.objects.count() == 1


def test_revoking_on_the_page(evalset, carol, client_for) -> None:
    token, _ = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    client = client_for(carol)
    page = client.post(f"{TOKENS}{token.pk}/revoke/", follow=True).content.decode()
    assert "opens nothing any more" in page
    assert "revoked already" in client.post(f"{TOKENS}{token.pk}/revoke/", follow=True).content.decode()
    token.refresh_from_db()
    assert (token.state, token.revoked_by) == ("revoked", carol)
    assert evalset.events.first().summary == "Revoked token ci of Carol."


def test_the_page_says_which_tokens_have_lost_power(evalset, carol, root, client_for) -> None:
    create_token(evalset=evalset, by=carol, name="pushes", role=LEAD)
    create_token(evalset=evalset, by=carol, name="reads", role=VIEWER)
    evalset.members.filter(user=carol).update(role="assessor")
    page = client_for(root).get(TOKENS).content.decode()
    assert "only assessor now, as Carol is" in page
    assert "opens nothing: Carol may no longer do this" in page


def test_tokens_of_another_eval_set_are_not_there(evalset, other_evalset, carol, mallory, client_for) -> None:
    token, _ = create_token(evalset=evalset, by=carol, name="ci", role=LEAD)
    assert client_for(mallory).post(f"/e/elsewhere/tokens/{token.pk}/revoke/").status_code == 404
    token.refresh_from_db()
    assert token.state == "active"


# The commands


def test_commands_make_and_revoke(evalset, carol, capsys) -> None:
    call_command(
        "create_token",
        "handbook",
        "--user",
        "carol",
        "--name",
        "ci",
        "--role",
        "lead",
        "--days",
        "5",
        "--json",
    )
    document = json.loads(capsys.readouterr().out)
    assert find_token(document["token"]).name == "ci"
    assert document["role"] == "lead"
    call_command("revoke_token", "handbook", "ci", "--json")
    assert json.loads(capsys.readouterr().out) == {"name": "ci", "evalset": "handbook", "user": "carol"}
    assert find_token(document["token"]).state == "revoked"


def test_the_command_prints_the_token_alone_on_standard_output(evalset, carol, capsys) -> None:
    call_command("create_token", "handbook", "--user", "carol", "--name", "ci", "--role", "viewer")
    assert find_token(capsys.readouterr().out.strip()).name == "ci"


@pytest.mark.parametrize(
    "line",
    [
        "create_token handbook --user alice --name ci --role lead",
        "create_token handbook --user nobody --name ci --role lead",
        "create_token handbook --user carol --name ci --role lead --days -1",
        "revoke_token handbook other",
        "revoke_token handbook twice",
    ],
)
def test_commands_end_with_3_on_bad_input(line, evalset, alice, carol, root) -> None:
    for lead in (carol, root):
        create_token(evalset=evalset, by=lead, name="twice", role=LEAD)
    with pytest.raises(CommandError) as error:
        call_command(*line.split())
    assert error.value.returncode == 3


def test_tokens_are_searched_by_name_and_maker(evalset, carol, client_for) -> None:
    for name in ("ci", "nightly"):
        create_token(evalset=evalset, by=carol, name=name, role=VIEWER)

    def listed(text: str) -> list[str]:
        return [token.name for token in client_for(carol).get(TOKENS, {"q": text}).context["page"]]

    assert listed("NIGHT") == ["nightly"]
    assert listed("carol") == ["nightly", "ci"]
    assert "No token matches “weekly”." in client_for(carol).get(TOKENS, {"q": "weekly"}).content.decode()

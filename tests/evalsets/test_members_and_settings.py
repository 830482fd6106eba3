"""Members, settings and new eval sets, through their pages."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from evalsets.models import EvalSet, Member, User, default_scale

MEMBERS = "/e/handbook/members/"


def test_lead_adds_somebody_who_can_sign_in_already(evalset, carol, client_for) -> None:
    User.objects.create_user("dora")
    client_for(carol).post(f"{MEMBERS}add/", {"username": "dora", "role": "viewer"})
    assert evalset.members.get(user__username="dora").role == "viewer"
    assert evalset.events.get().summary == "dora became viewer."


def test_lead_makes_a_new_user_with_a_first_password(evalset, carol, client_for) -> None:
    data = {"username": "dora", "role": "assessor", "password": "quite long and odd"}
    client_for(carol).post(f"{MEMBERS}add/", data)
    assert User.objects.get(username="dora").check_password("quite long and odd")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"username": "dora", "role": "viewer"}, "Nobody is called"),
        ({"username": "dora", "role": "viewer", "password": "short"}, "too short"),
        ({"username": "alice", "role": "viewer"}, "is a member already"),
        ({"username": "alice", "role": "viewer", "password": "quite long and odd"}, "can sign in already"),
        (
            {"username": "dora", "role": "emperor", "password": "quite long and odd"},
            "not one of the available",
        ),
    ],
)
def test_adding_says_what_is_wrong(data, message, evalset, alice, carol, client_for) -> None:
    before = evalset.members.count()
    response = client_for(carol).post(f"{MEMBERS}add/", data)
    assert response.status_code == 422
    assert message in response.content.decode()
    assert evalset.members.count() == before


def test_the_last_lead_stays(evalset, carol, client_for) -> None:
    member = evalset.members.get(user=carol)
    client = client_for(carol)
    client.post(f"{MEMBERS}{member.pk}/role/", {"role": "viewer"})
    client.post(f"{MEMBERS}{member.pk}/remove/")
    assert Member.objects.get(pk=member.pk).role == "lead"


def test_removing_ends_access_at_once(evalset, alice, carol, client_for) -> None:
    client_for(carol).post(f"{MEMBERS}{evalset.members.get(user=alice).pk}/remove/")
    assert client_for(alice).get("/e/handbook/").status_code == 404


def settings_of(evalset: EvalSet, **changes) -> dict:
    return {
        "name": evalset.name,
        "description": evalset.description,
        "scale": "\n".join(f"{item['name']}: {item['definition']}" for item in evalset.scale),
        "threshold": evalset.threshold,
        "gain": evalset.gain,
        "settle_policy": evalset.settle_policy,
        "adjudication_tolerance": evalset.adjudication_tolerance,
        "low_unjudged_rate": evalset.low_unjudged_rate,
        "seconds_per_judgment": evalset.seconds_per_judgment,
        **changes,
    }


def test_settings_are_saved_and_written_down(evalset, carol, client_for) -> None:
    response = client_for(carol).post("/e/handbook/settings/", settings_of(evalset, threshold=2))
    assert response.status_code == 302
    evalset.refresh_from_db()
    assert evalset.threshold == 2
    assert evalset.events.get().details == {"threshold": 2}


def test_saving_without_a_change_writes_no_event(evalset, carol, client_for) -> None:
    client_for(carol).post("/e/handbook/settings/", settings_of(evalset))
    assert not evalset.events.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 0}, "greater than or equal to 1"),
        ({"threshold": 4}, "nothing would be relevant"),
        ({"scale": "No: not\nYes: is"}, "not shortened"),
        ({"scale": "Irrelevant"}, "has no colon"),
        ({"low_unjudged_rate": 10}, "less than or equal to 1"),
        ({"adjudication_tolerance": -1}, "greater than or equal to 0"),
    ],
)
def test_settings_say_what_is_wrong(changes, message, evalset, carol, client_for) -> None:
    response = client_for(carol).post("/e/handbook/settings/", settings_of(evalset, **changes))
    assert response.status_code == 422
    assert message in response.content.decode()
    evalset.refresh_from_db()
    assert (evalset.threshold, evalset.scale) == (1, default_scale())


def test_whoever_makes_an_eval_set_leads_it(alice, client_for) -> None:
    data = settings_of(EvalSet(name="Second set"), slug="second")
    response = client_for(alice).post("/evalsets/new/", data)
    assert response.status_code == 302
    assert Member.objects.get(evalset__slug="second").user == alice


def test_a_slug_is_taken_once(evalset, alice, client_for) -> None:
    response = client_for(alice).post("/evalsets/new/", settings_of(EvalSet(name="Another"), slug="handbook"))
    assert response.status_code == 422
    assert EvalSet.objects.count() == 1


def test_command_gives_a_role(evalset, capsys) -> None:
    User.objects.create_user("dora")
    call_command("add_member", "handbook", "dora", "--role", "viewer", "--json")
    assert json.loads(capsys.readouterr().out) == {"evalset": "handbook", "user": "dora", "role": "viewer"}
    assert evalset.members.get(user__username="dora").role == "viewer"


def test_command_says_who_is_unknown(evalset) -> None:
    with pytest.raises(CommandError, match="There is no user 'nobody'") as caught:
        call_command("add_member", "handbook", "nobody", "--role", "viewer")
    assert caught.value.returncode == 3


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(evalset) -> None:
    answer = Client().post(f"{MEMBERS}add/", headers={"Referer": f"http://testserver{MEMBERS}?page=2"})
    assert answer["Location"] == "/sign-in/?next=%2Fe%2Fhandbook%2Fmembers%2F%3Fpage%3D2"


def test_a_forms_address_opened_by_hand_is_a_page(evalset, carol, client_for) -> None:
    answer = client_for(carol).get(f"{MEMBERS}add/")
    assert answer.status_code == 405
    assert "Go back to the page of the form" in answer.content.decode()


def test_a_wrong_short_name_is_told_in_the_words_of_the_page(carol, client_for) -> None:
    html = (
        client_for(carol)
        .post("/evalsets/new/", {"name": "Support", "slug": "The Handbook!"})
        .content.decode()
    )
    assert "Use lower-case letters, digits and hyphens." in html
    assert "slug”" not in html


def test_members_are_searched_filtered_sorted_and_paged(evalset, alice, bob, carol, client_for) -> None:
    lead = client_for(carol)

    def listed(**address) -> list[str]:
        return [member.user.username for member in lead.get(MEMBERS, address).context["page"]]

    assert listed() == ["alice", "bob", "carol"]
    assert listed(sort="-who") == ["carol", "bob", "alice"]
    assert listed(sort="-role") == ["carol", "bob", "alice"]
    assert listed(q="AL") == ["alice"]
    assert listed(only="assessor") == ["alice", "bob"]
    assert f'No member is like that. <a href="{MEMBERS}">' in lead.get(MEMBERS, {"q": "x"}).content.decode()
    for n in range(50):
        evalset.members.create(user=User.objects.create(username=f"m{n:02}"), role="viewer")
    assert listed(page="2") == ["m47", "m48", "m49"]
    refused = lead.post(f"{MEMBERS}add/", {}).content.decode()
    assert f'href="{MEMBERS}?page=2">Next</a>' in refused
    assert f'<a class="link-body-emphasis text-decoration-none" href="{MEMBERS}?sort=who">' in refused
    assert f'<form method="get" action="{MEMBERS}" role="search"' in refused

"""create_demo makes the demo eval set once, and whole or not at all."""

import io
import json
import shutil

import pytest
from django.core.management import CommandError, call_command

from config import demo_evalset
from config.demo_evalset import PASSWORD, make_demo, sign_ins
from evalsets.models import EvalSet, Member, User
from judging.models import Judgment
from labels.models import Release

pytestmark = pytest.mark.django_db


def test_making_it_again_changes_nothing():
    demo = make_demo()
    judgments, events = Judgment.objects.count(), demo.events.count()
    assert make_demo() == demo
    assert (Judgment.objects.count(), demo.events.count()) == (judgments, events)
    assert Release.objects.count() == 1


def test_somebody_who_is_there_already_keeps_their_password():
    User.objects.create_user("bob", password="something of his own")
    demo = make_demo()
    assert {person.username: person.password for person in sign_ins(demo)}["bob"] is None
    assert User.objects.get(username="bob").check_password("something of his own")
    assert Member.objects.get(evalset=demo, user__username="bob").role == "assessor"


def test_a_broken_file_leaves_nothing_behind(tmp_path, monkeypatch):
    folder = tmp_path / "demo"
    shutil.copytree(demo_evalset.FOLDER, folder)
    run = folder / "runs" / "lsa.trec"
    run.write_text(run.read_text() + "q01 Q0 start#01 21 not-a-number lsa\n")
    monkeypatch.setattr(demo_evalset, "FOLDER", folder)
    with pytest.raises(CommandError, match=r"not-a-number"):
        call_command("create_demo")
    assert not EvalSet.objects.exists()
    assert not User.objects.exists()


def test_the_command_says_what_is_there_and_who_may_sign_in():
    first, second = io.StringIO(), io.StringIO()
    call_command("create_demo", "--json", stdout=first)
    document = json.loads(first.getvalue())
    assert document["created"] is True
    assert (document["questions"], document["chunks"], len(document["runs"])) == (60, 198, 7)
    assert document["judgments"] > 900
    call_command("create_demo", stdout=second)
    assert "The eval set 'demo' is there: 60 questions" in second.getvalue()
    assert f"carol    lead       password: {PASSWORD}" in second.getvalue()

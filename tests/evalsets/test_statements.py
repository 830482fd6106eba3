"""Statements that give several models a row, against the query sets that would give the same."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from evalsets.models import EvalSet, Member, Question
from evalsets.statements import Statement
from tests.conftest import make_questions

MEMBERS = Statement(
    """
    SELECT {member}, {evalset}, upper(member.role) FROM evalsets_member member
    JOIN evalsets_evalset evalset ON evalset.id = member.evalset_id
    WHERE evalset.slug = %(slug)s ORDER BY member.id
    """,
    member=Member,
    evalset=EvalSet,
)


def test_a_row_holds_the_models_in_their_order_and_then_the_rest(evalset, alice, carol):
    rows = MEMBERS.all({"slug": evalset.slug})
    expected = Member.objects.filter(evalset=evalset).select_related("evalset").order_by("pk")
    assert [row[:2] for row in rows] == [(member, member.evalset) for member in expected]
    assert [row[2] for row in rows] == [member.role.upper() for member in expected]


def test_each_field_has_the_value_that_a_query_set_gives(evalset):
    """Times, JSON and lists too."""
    [question] = make_questions(evalset, "q1")
    Question.objects.filter(pk=question.pk).update(facts=[{"id": "f1", "text": "Ein Fall: “=1”"}])
    statement = Statement(
        "SELECT {question}, {evalset} FROM evalsets_question question "
        "JOIN evalsets_evalset evalset ON evalset.id = question.evalset_id WHERE question.id = %(pk)s",
        question=Question,
        evalset=EvalSet,
    )
    for found, model in zip(statement.one({"pk": question.pk}), (Question, EvalSet), strict=True):
        expected = model.objects.get(pk=found.pk)
        for field in model._meta.concrete_fields:
            assert getattr(found, field.attname) == getattr(expected, field.attname), field.name
        assert not found._state.adding


def test_no_row_is_none(evalset):
    assert MEMBERS.first({"slug": "no-such-set"}) is None
    assert MEMBERS.all({"slug": "no-such-set"}) == []


def test_a_statement_that_changes_rows_says_how_many(evalset):
    make_questions(evalset, "q1", "q2")
    rename = Statement("UPDATE evalsets_question SET text = %(text)s WHERE evalset_id = %(evalset)s")
    assert rename.run({"text": "Why?", "evalset": evalset.pk}) == 2
    assert set(Question.objects.values_list("text", flat=True)) == {"Why?"}


def test_its_errors_are_those_of_django(evalset):
    twice = Statement("INSERT INTO evalsets_evalset SELECT * FROM evalsets_evalset WHERE id = %(pk)s")
    with pytest.raises(IntegrityError), transaction.atomic():
        twice.run({"pk": evalset.pk})


def test_it_is_counted_among_the_queries(evalset):
    with CaptureQueriesContext(connection) as captured:
        MEMBERS.all({"slug": evalset.slug})
    assert len(captured) == 1


def test_a_connection_plans_it_once(evalset):
    with transaction.atomic(), connection.cursor() as cursor:
        for _ in range(3):
            MEMBERS.all({"slug": evalset.slug})
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%upper(member.role)%'"
        )
        assert cursor.fetchone() == (1,)

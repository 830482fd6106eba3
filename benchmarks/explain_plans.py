"""How Postgres goes about the hottest statements: EXPLAIN (ANALYZE, BUFFERS) of each, on 100,000 judgments.

    .venv/bin/python benchmarks/explain_plans.py [--questions 200] [--chunks 500] [--others 4] [--json]

The eval set has as many judgments as questions times chunks, one in twenty of a second person, one in fifty regraded.
As many `--others` of the same size lie in the same tables, judgment by judgment in turn, as they would after months of
work side by side: a plan that reads what is theirs shows it in its buffers. docs/judging.md says what the plans must
look like. A database of its own is made and dropped.
"""

from __future__ import annotations

# ruff: noqa: E402 (Django is set up before its models are imported)
import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.db import connection

from benchmarks.database import own_database
from evalsets.models import EvalSet
from judging.models import Assessor
from judging.pair_states import _STATES
from judging.services.remainder import QUESTIONS_AT_A_TIME
from labels.settling import JUDGED, SETTLED, settle_parameters

COLUMNS = (
    "evalset_id, question_id, chunk_id, revision, assessor_id, kind, grade, reason, source, note, spans, facts, "
    "details, replaces_id, id"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=500, help="How many are judged for each question.")
    parser.add_argument("--others", type=int, default=4, help="Eval sets of the same size beside it.")
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    options = parser.parse_args()
    with own_database():
        plans = explain(fill(options))
    if options.json:
        print(json.dumps(plans))
        return
    for title, plan in plans.items():
        print(f"== {title}\n{plan}\n")


def fill(options: argparse.Namespace) -> EvalSet:
    """The eval sets with their judgments; the first of them."""
    evalsets = [
        EvalSet.objects.create(slug=f"e{number}", name=f"e{number}") for number in range(options.others + 1)
    ]
    people = {
        evalset.pk: [
            Assessor.objects.create(evalset=evalset, kind=Assessor.Kind.FILE, name=f"person {number}").pk
            for number in range(3)
        ]
        for evalset in evalsets
    }
    with connection.cursor() as cursor:
        for evalset in evalsets:
            cursor.execute(
                "INSERT INTO evalsets_question (evalset_id, external_id, text, narrative, slices, split, answerable, "
                "\"group\", scope, facts) SELECT %s, 'q' || n, 'q', '', '{}', '', true, '', '', '[]' "
                "FROM generate_series(1, %s) n",
                [evalset.pk, options.questions],
            )
            cursor.execute(
                "INSERT INTO evalsets_chunk (evalset_id, external_id, has_text, revision) "
                "SELECT %s, 'c' || n, true, CASE WHEN n %% 100 = 0 THEN 2 ELSE 1 END FROM generate_series(1, %s) n",
                [evalset.pk, 20 * options.chunks],
            )
        cursor.execute("SELECT evalset_id, min(id) FROM evalsets_question GROUP BY 1")
        first_question = dict(cursor.fetchall())
        cursor.execute("SELECT evalset_id, min(id) FROM evalsets_chunk GROUP BY 1")
        first_chunk = dict(cursor.fetchall())
        number = 0
        with cursor.copy(f"COPY judging_judgment ({COLUMNS}) FROM STDIN") as copy:
            for question in range(options.questions):
                for at in range(options.chunks):
                    for evalset in evalsets:
                        key = evalset.pk
                        chunk = first_chunk[key] + (question * 37 + at * 13) % (20 * options.chunks)
                        said = [(people[key][0], None)]
                        if at % 20 == 0:
                            said.append((people[key][1], None))
                        if at % 50 == 0:
                            said.append((people[key][0], number + 1))
                        for assessor, replaces in said:
                            number += 1
                            pair = (key, first_question[key] + question, chunk, 1)
                            rest = (assessor, "grade", number % 4, "", "import", "", "[]", "{}", "{}")
                            copy.write_row((*pair, *rest, replaces, number))
        cursor.execute("VACUUM ANALYZE")
    return evalsets[0]


def explain(evalset: EvalSet) -> dict[str, str]:
    """The plan of each statement, as Postgres writes it, by what the statement is for."""
    question_ids = list(evalset.questions.order_by("pk").values_list("pk", flat=True))
    whole, one = settle_parameters(evalset), settle_parameters(evalset, questions=question_ids[:1])
    states = {"evalset": evalset.pk, "questions": question_ids[:QUESTIONS_AT_A_TIME]}
    statements: dict[str, tuple[str, dict[str, Any]]] = {
        "labels of the eval set": (f"{SETTLED} SELECT count(label) FROM settled", whole),
        "labels of one question": (f"{SETTLED} SELECT question_id, chunk_id, label, why FROM settled", one),
        "what is judged": (JUDGED, {"evalset": evalset.pk}),
        "what is left of a pool: all questions": (_STATES, states),
        "what is left of a pool: one question": (_STATES, {**states, "questions": question_ids[:1]}),
    }
    plans = {}
    with connection.cursor() as cursor:
        for title, (statement, parameters) in statements.items():
            for _again in range(2):  # the first reads what lies on the disk
                cursor.execute(
                    f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) {statement}", parameters
                )
            plans[title] = "\n".join(line for (line,) in cursor.fetchall())
    return plans


if __name__ == "__main__":
    main()

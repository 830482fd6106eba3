"""Whatever the bytes, an import down to the database gives its report, and a file with faults changes nothing.

The readers are put to it in `fuzz/properties.py`; here it is the database that must be able to keep what they give.
"""

import json

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsets.errors import BadInput
from evalsets.models import Chunk, EvalSet, Event, ImportedFile, Question
from fuzz.seeds import seeds, tokens
from judging.models import Judgment
from judging.services.import_judge import import_judge
from judging.services.import_qrels import import_qrels
from judging.services.import_verdicts import import_verdicts
from pooling.models import Run
from pooling.services.importing import import_chunks, import_questions, import_run
from tests.conftest import make_chunks, make_questions

READERS = {
    "questions": (import_questions, {}),
    "chunks": (import_chunks, {}),
    "run": (import_run, {"unknown_questions": "skip", "duplicates": "keep-first", "missing": "empty"}),
    "qrels": (import_qrels, {"unknown_questions": "skip", "negative": "zero"}),
    "verdicts": (import_verdicts, {"assessor": "alice"}),
    "judge": (import_judge, {"judge": "rule"}),
}


@pytest.mark.parametrize("kind", READERS)
def test_any_bytes_give_a_report_and_faults_change_nothing(kind, evalset, alice, tmp_path):
    make_questions(evalset, "q1", "7")
    make_chunks(evalset, "c1", "c2")
    service, options = READERS[kind]
    path = tmp_path / "file"
    pieces = st.sampled_from(tokens()) | st.binary(max_size=4) | st.characters(codec="utf-8").map(str.encode)
    files = [seed[5:] for seed in seeds("qrels" if kind == "judge" else kind)]

    @settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(files), st.lists(st.tuples(st.floats(0, 1), pieces, st.integers(0, 3)), max_size=3)
    )
    def check(content: bytes, changes: list[tuple[float, bytes, int]]) -> None:
        for place, piece, left_out in changes:
            at = int(place * len(content))
            content = content[:at] + piece + content[at + left_out :]
        path.write_bytes(content)
        before = counts(evalset)
        with transaction.atomic():
            try:
                with transaction.atomic():
                    report = service(evalset=evalset, source=path, by=alice, **options).as_json()
                assert not report["faults"]
            except BadInput as error:
                report = error.report
                assert counts(evalset) == before
            json.dumps(report, allow_nan=False).encode()
            transaction.set_rollback(True)

    check()


def counts(evalset: EvalSet) -> list[int]:
    models = (Question, Chunk, Run, Judgment, ImportedFile, Event)
    return [model.objects.filter(evalset=evalset).count() for model in models]

"""The role matrix: who may open which address. An address without a row here fails the test."""

from __future__ import annotations

import pytest
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern, URLResolver

from evalsets.services.jobs import start_job
from judging.services.batches import make_batch
from pooling.services.pools import build_pool
from tests.conftest import make_chunks, make_questions, make_run

# Inside an eval set: address name -> (method, roles that may open it). A lead may do all that is listed here.
LEAD, READER, ASSESSOR, MEMBER = (
    {"lead"},
    {"lead", "viewer"},
    {"lead", "assessor"},
    {"lead", "viewer", "assessor"},
)
MATRIX: dict[str, tuple[str, set[str]]] = {
    "evalset-home": ("get", MEMBER),
    "evalsets:token-list": ("get", LEAD),
    "evalsets:token-new": ("post", LEAD),
    "evalsets:token-revoke": ("post", LEAD),
    "evalsets:settings": ("get", LEAD),
    "evalsets:split-draw": ("get", LEAD),
    "evalsets:member-list": ("get", LEAD),
    "evalsets:member-add": ("post", LEAD),
    "evalsets:member-role": ("post", LEAD),
    "evalsets:member-remove": ("post", LEAD),
    "evalsets:job-list": ("get", LEAD),
    "evalsets:job": ("get", LEAD),
    "evalsets:job-cancel": ("post", LEAD),
    "evalsets:job-retry": ("post", LEAD),
    "evalsets:audit": ("get", LEAD),
    "judging:import": ("get", LEAD),
    "judging:import-start": ("post", LEAD),
    "judging:import-report": ("get", LEAD),
    "judging:import-recheck": ("post", LEAD),
    "judging:import-write": ("post", LEAD),
    "judging:pool-list": ("get", READER),
    "judging:pool-new": ("get", LEAD),
    "judging:pool-mend": ("post", LEAD),
    "judging:pool-simulation": ("get", READER),
    "judging:pool-simulate": ("post", LEAD),
    "judging:pool": ("get", READER),
    "judging:pool-question": ("get", READER),
    "judging:pool-order": ("get", READER),
    "judging:pool-remainder": ("get", LEAD),
    "judging:batch-list": ("get", MEMBER),
    "judging:batch-new": ("get", LEAD),
    "judging:batch": ("get", READER),
    "judging:batch-pause": ("post", LEAD),
    "judging:batch-resume": ("post", LEAD),
    "judging:batch-cancel": ("post", LEAD),
    "judging:batch-extend": ("post", LEAD),
    "judging:batch-reassign": ("post", LEAD),
    "judging:batch-remove": ("get", LEAD),
    "judging:desk": ("get", ASSESSOR),
    "judging:desk-next": ("post", ASSESSOR),
    "judging:desk-save": ("post", ASSESSOR),
    "judging:desk-same": ("get", ASSESSOR),
    "judging:desk-stop": ("post", ASSESSOR),
    "judging:desk-highlight": ("post", ASSESSOR),
    "labels:question-list": ("get", READER),
    "labels:question": ("get", READER),
    "labels:chunk-list": ("get", READER),
    "labels:chunk": ("get", READER),
    "labels:system-list": ("get", READER),
    "labels:system": ("get", READER),
    "labels:system-family": ("post", LEAD),
    "labels:run": ("get", READER),
    "labels:ranking": ("get", READER),
    "labels:run-file": ("get", READER),
    "labels:reckon": ("post", LEAD),
    "labels:agreement": ("get", LEAD),
    "labels:agreement-pairs": ("get", LEAD),
    "labels:judge-list": ("get", READER),
    "labels:judge": ("get", READER),
    "labels:contested": ("get", READER),
    "labels:settle-next": ("get", LEAD),
    "labels:settle": ("get", LEAD),
    "labels:settle-take-back": ("post", LEAD),
    "labels:duplicate-list": ("get", LEAD),
    "labels:duplicate-find": ("post", LEAD),
    "labels:duplicate-join-equal": ("post", LEAD),
    "labels:duplicate": ("get", LEAD),
    "labels:duplicate-verdict": ("post", LEAD),
    "labels:verdict-take-back": ("post", LEAD),
    "labels:class": ("get", READER),
    "labels:chunk-verdict": ("post", LEAD),
    "labels:mapping-list": ("get", LEAD),
    "labels:mapping-find": ("post", LEAD),
    "labels:mapping-carry": ("post", LEAD),
    "labels:mapping": ("get", LEAD),
    "labels:mapping-decide": ("post", LEAD),
    "labels:release-list": ("get", MEMBER),
    "labels:release-new": ("get", LEAD),
    "labels:release-difference": ("get", READER),
    "labels:release": ("get", MEMBER),
    "labels:release-unlabelled": ("get", READER),
    "labels:release-file": ("get", READER),
    "scoring:score-list": ("get", READER),
    "scoring:score-new": ("post", LEAD),
    "scoring:score": ("get", READER),
    "scoring:score-download": ("get", READER),
    "scoring:comparison-list": ("get", READER),
    "scoring:comparison-new": ("post", LEAD),
    "scoring:comparison": ("get", READER),
    "scoring:comparison-question": ("get", READER),
    "scoring:release-effects": ("get", READER),
    "scoring:sweep": ("get", READER),
    "scoring:sweep-new": ("post", LEAD),
    "scoring:unjudged": ("get", READER),
    "scoring:reusability": ("get", READER),
    "scoring:reusability-new": ("post", LEAD),
    "scoring:definitions": ("get", READER),
    "scoring:stages": ("get", READER),
    "scoring:stages-new": ("post", LEAD),
}
# Outside of eval sets: anybody who is signed in may open these, and strangers only those that say so.
SIGNED_IN = {"my-work", "password-change", "evalset-new", "sign-out"}
PUBLIC = {"sign-in", "health", "health-ready", "metrics"}  # metrics: see tests/config/test_probes.py

PERSONAS = ["alice", "bob", "carol", "victor", "mallory", "root", None]
ROLE_OF = {"alice": "assessor", "bob": "assessor", "carol": "lead", "victor": "viewer", "root": "lead"}


def addresses(resolver: URLResolver | None = None, prefix: str = "") -> dict[str, list[str]]:
    """Every address name with the arguments it takes."""
    found: dict[str, list[str]] = {}
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            namespace = f"{prefix}{entry.namespace}:" if entry.namespace else prefix
            inner = {
                name: list(entry.pattern.converters) + arguments
                for name, arguments in addresses(entry, namespace).items()
            }
            found.update(inner)
        elif isinstance(entry, URLPattern):
            assert entry.name, f"{entry.pattern} has no name"
            found[prefix + entry.name] = list(entry.pattern.converters)
    return found


# The HTTP API has a matrix of its own, by tokens: tests/config/test_api_roles.py.
ARGUMENTS = {
    name: arguments for name, arguments in addresses().items() if not name.startswith(("api:", "api-"))
}


def test_every_address_has_a_row() -> None:
    assert ARGUMENTS.keys() == MATRIX.keys() | SIGNED_IN | PUBLIC


def address_of(name: str, slug: str) -> str:
    """The address with IDs that exist nowhere: whether somebody may come in is decided before it is looked for."""
    return reverse(name, args=[slug if argument == "slug" else 0 for argument in ARGUMENTS[name]])


@pytest.mark.parametrize("persona", PERSONAS)
def test_matrix(persona, request, evalset, other_evalset, client_for) -> None:
    client = client_for(request.getfixturevalue(persona) if persona else None)
    wrong = {}
    for name, (method, allowed) in MATRIX.items():
        response = getattr(client, method)(address_of(name, evalset.slug))
        if persona is None:
            as_it_should = response.status_code == 302 and response["Location"].startswith("/sign-in/")
        elif persona not in ROLE_OF:
            as_it_should = response.status_code == 404
        elif ROLE_OF[persona] in allowed:
            as_it_should = response.status_code in (200, 302, 400, 404, 422)
        else:
            as_it_should = response.status_code == 403
        if not as_it_should:
            wrong[name] = response.status_code
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(SIGNED_IN))
def test_signed_in_pages_send_strangers_to_sign_in(name, client_for, db) -> None:
    response = client_for(None).get(reverse(name))
    assert response.status_code in (302, 405)
    if response.status_code == 302:
        assert response["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_pages_open_for_all(name, client_for, db) -> None:
    assert client_for(None).get(reverse(name)).status_code == 200


def test_an_unknown_eval_set_and_a_foreign_one_look_alike(mallory, evalset, client_for) -> None:
    client = client_for(mallory)
    foreign, unknown = client.get("/e/handbook/"), client.get("/e/no-such-set/")
    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert foreign.content == unknown.content


@pytest.fixture
def things(evalset, alice, carol) -> dict[str, int]:
    """One of everything in Carol's eval set: the kind of thing -> its ID."""
    [question] = make_questions(evalset, "q1")
    [chunk] = make_chunks(evalset, "c1")
    run = make_run(evalset, "bm25", {"q1": ["c1"]})
    pool, _ = build_pool(evalset=evalset, name="pool", runs=[(run, 10)], by=carol)
    batch = make_batch(pool=pool, name="batch", by=carol, assessors=[alice])
    job = start_job(evalset=evalset, task="none", title="A job", by=carol)
    judge = evalset.assessors.create(kind="model", name="gpt")
    return {
        "labels:judge": judge.pk,
        "labels:question": question.pk,
        "labels:chunk": chunk.pk,
        "labels:system": run.system_id,
        "labels:system-family": run.system_id,
        "labels:run": run.pk,
        "labels:run-file": run.pk,
        "judging:pool": pool.pk,
        "judging:pool-order": pool.pk,
        "judging:pool-remainder": pool.pk,
        "judging:batch": batch.pk,
        "judging:batch-pause": batch.pk,
        "judging:batch-cancel": batch.pk,
        "judging:desk": batch.pk,
        "judging:desk-next": batch.pk,
        "evalsets:job": job.pk,
        "evalsets:job-cancel": job.pk,
        "evalsets:member-remove": evalset.members.get(user=alice).pk,
    }


def test_ids_of_another_eval_set_are_not_there(things, mallory, carol, client_for) -> None:
    stranger, lead = client_for(mallory), client_for(carol)
    found = {}
    for name, pk in things.items():
        method = MATRIX[name][0]
        found[name] = getattr(stranger, method)(reverse(name, args=["elsewhere", pk])).status_code
    assert found == dict.fromkeys(things, 404)
    for name, pk in things.items():
        if MATRIX[name][0] == "get" and name != "judging:desk":
            assert lead.get(reverse(name, args=["handbook", pk])).status_code == 200, name

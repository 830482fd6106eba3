"""The role matrix: who may open which address. An address without a row here fails the test."""

from __future__ import annotations

import pytest
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern, URLResolver

# Inside an eval set: address name -> (method, roles that may open it). A lead may do all that is listed here.
LEAD, READER, ASSESSOR, MEMBER = (
    {"lead"},
    {"lead", "viewer"},
    {"lead", "assessor"},
    {"lead", "viewer", "assessor"},
)
MATRIX: dict[str, tuple[str, set[str]]] = {
    "evalset-home": ("get", MEMBER),
    "evalsets:settings": ("get", LEAD),
    "evalsets:member-list": ("get", LEAD),
    "evalsets:member-add": ("post", LEAD),
    "evalsets:member-role": ("post", LEAD),
    "evalsets:member-remove": ("post", LEAD),
    "evalsets:job-list": ("get", LEAD),
    "evalsets:job": ("get", LEAD),
    "evalsets:job-cancel": ("post", LEAD),
    "evalsets:job-retry": ("post", LEAD),
    "evalsets:audit": ("get", LEAD),
    "labels:question-list": ("get", READER),
    "labels:question": ("get", READER),
    "labels:chunk-list": ("get", READER),
    "labels:chunk": ("get", READER),
    "labels:system-list": ("get", READER),
    "labels:system": ("get", READER),
    "labels:system-family": ("post", LEAD),
    "labels:run": ("get", READER),
    "labels:ranking": ("get", READER),
    "judging:pool-list": ("get", READER),
    "judging:pool-new": ("get", LEAD),
    "judging:pool-mend": ("post", LEAD),
    "judging:pool": ("get", READER),
    "judging:pool-question": ("get", READER),
    "judging:pool-remainder": ("get", LEAD),
    "scoring:score-list": ("get", READER),
    "scoring:score-new": ("post", LEAD),
    "scoring:score": ("get", READER),
    "scoring:score-download": ("get", READER),
    "scoring:comparison-list": ("get", READER),
    "scoring:comparison-new": ("post", LEAD),
    "scoring:comparison": ("get", READER),
    "scoring:comparison-question": ("get", READER),
    "scoring:sweep": ("get", READER),
    "scoring:sweep-new": ("post", LEAD),
    "scoring:unjudged": ("get", READER),
    "scoring:reusability": ("get", READER),
    "scoring:reusability-new": ("post", LEAD),
    "scoring:stages": ("get", READER),
    "scoring:stages-new": ("post", LEAD),
}
# Outside of eval sets: anybody who is signed in may open these, and strangers only those that say so.
SIGNED_IN = {"my-work", "password-change", "evalset-new", "sign-out"}
PUBLIC = {"sign-in", "health"}

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


ARGUMENTS = addresses()


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

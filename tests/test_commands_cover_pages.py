"""Everything a page does to data has a command over the same service; a page that sends a form without a row fails."""

from __future__ import annotations

import re

import pytest
from django.core.management import get_commands, load_command_class
from django.test import Client

from judging.import_forms import FORMS
from tests.test_roles import ARGUMENTS, address_of

# Address name -> the command that does the same, with the options by which it does.
COMMANDS: dict[str, str] = {
    "password-change": "changepassword",
    "evalset-new": "create_evalset --lead",
    "evalsets:settings": "settings --threshold --by",
    "evalsets:split-draw": "draw_split --by",
    "evalsets:member-add": "add_member --role --by",  # create_user for somebody new
    "evalsets:member-role": "members --role --by",
    "evalsets:member-remove": "members --remove --by",
    "evalsets:token-new": "create_token --user",
    "evalsets:token-revoke": "revoke_token --by",
    "evalsets:job-cancel": "jobs --cancel",
    "evalsets:job-retry": "jobs --retry",
    "judging:import-start": "import_run --check --by",  # and the other kinds, see below
    "judging:import-recheck": "import_run --check --by",
    "judging:import-write": "import_run --by",
    "judging:pool-new": "build_pool --preview --by",
    "judging:pool-mend": "build_pool --run --by",
    "judging:pool-simulate": "simulate_pooling --evalset",
    "judging:batch-new": "make_batch --instructions --by",
    "judging:batch-pause": "batch --pause --by",
    "judging:batch-resume": "batch --resume --by",
    "judging:batch-cancel": "batch --cancel --by",
    "judging:batch-extend": "batch --add --due --more-pairs --by",
    "judging:batch-reassign": "batch --give --free --by",
    "judging:batch-remove": "batch --take-out --by",
    "judging:desk-save": "import_verdicts --assessor",  # judged elsewhere, from the file of `remainder`
    "judging:desk-same": "verdict --by",
    "labels:system-family": "systems --family --by",
    "labels:settle": "adjudicate --grade --by",
    "labels:settle-take-back": "adjudicate --take-back --by",
    "labels:duplicate-find": "find_duplicates",
    "labels:duplicate-join-equal": "find_duplicates --join-equal",
    "labels:duplicate-verdict": "verdict --by",
    "labels:chunk-verdict": "verdict --by",
    "labels:verdict-take-back": "verdict --by",
    "labels:mapping-find": "carry_labels",
    "labels:mapping-carry": "carry_labels --by-rule",
    "labels:mapping-decide": "mappings --by",
    "labels:release-new": "publish_release --include-judge --by",
    "scoring:score-new": "score --policy --by",
    "scoring:comparison-new": "compare --split --by",
    "scoring:sweep-new": "sweep --confirm --by",
    "scoring:reusability-new": "reusability --by",
    "scoring:stages-new": "stages --system --by",
}
# Address name -> why no command does the same.
NO_COMMAND: dict[str, str] = {
    "sign-in": "a session of one browser",
    "sign-out": "a session of one browser",
    "judging:desk-next": "what lies on an assessor's desk; a file of `remainder` needs no claims",
    "judging:desk-stop": "what lies on an assessor's desk; `batch --take-out` gives it back for somebody else",
    "judging:desk-highlight": "a cookie of one browser",
    "labels:reckon": "figures kept for pages; `agreement`, `judges`, `build_pool --preview` work theirs out each time",
}


def takes_a_form(name: str, carol: Client) -> bool:
    """Whether the address takes POST. A method that none takes is refused before anything is done."""
    client = Client() if name == "sign-in" else carol
    response = client.patch(address_of(name, "handbook"))
    assert response.status_code == 405, (
        f"{name} does not say which methods it takes: require_GET, require_POST, …"
    )
    return "POST" in response["Allow"]


def test_every_form_has_a_command_or_a_reason(evalset, carol, client_for):
    client = client_for(carol)
    forms = {name for name in ARGUMENTS if takes_a_form(name, client)}
    assert forms == COMMANDS.keys() | NO_COMMAND.keys()
    assert not COMMANDS.keys() & NO_COMMAND.keys()


@pytest.mark.parametrize("line", sorted({*COMMANDS.values(), *(f"import_{kind}" for kind in FORMS)}))
def test_the_command_is_there_and_takes_the_options(line):
    name, *options = line.split()
    known = get_commands()
    assert name in known
    parser = load_command_class(known[name], name).create_parser("manage.py", name)
    told = parser.format_help()
    assert [option for option in options if not re.search(rf"{option}\b", told)] == []
    if not known[name].startswith("django."):
        assert "--json" in told

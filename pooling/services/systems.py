from __future__ import annotations

from django.db import transaction

from evalsets.errors import BadInput
from evalsets.models import User
from evalsets.services.events import record_event
from pooling.models import System

LONGEST_FAMILY = 200  # as System.family can hold


@transaction.atomic
def change_family(*, system: System, family: str, by: User | None) -> None:
    """Mark the system as related to others of that family; an empty name ends that.

    Raises BadInput for a name that is too long.
    """
    family = family.strip()
    if len(family) > LONGEST_FAMILY:
        raise BadInput(f"A family's name has at most {LONGEST_FAMILY} characters; got {len(family)}.")
    system.family = family
    system.save(update_fields=["family"])
    record_event(
        evalset=system.evalset,
        by=by,
        verb="system-family-changed",
        summary=f"System {system.name} belongs to the family {system.family or '(none)'}.",
        details={"system": system.name, "family": system.family},
    )

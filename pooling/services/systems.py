from __future__ import annotations

from django.db import transaction

from evalsets.models import User
from evalsets.services.events import record_event
from pooling.models import System


@transaction.atomic
def change_family(*, system: System, family: str, by: User) -> None:
    """Mark the system as related to others of that family; an empty name ends that."""
    system.family = family.strip()
    system.save(update_fields=["family"])
    record_event(
        evalset=system.evalset,
        by=by,
        verb="system-family-changed",
        summary=f"System {system.name} belongs to the family {system.family or '(none)'}.",
        details={"system": system.name, "family": system.family},
    )

"""How IDs are searched."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.lookups import IContains


@models.TextField.register_lookup
@models.CharField.register_lookup
class CollatedIContains(IContains):
    """`icontains` by the collation of the column on both sides.

    An ID's collation, C, has no upper case but that of a to z. Without it on the side of what is searched, "é" would
    be made "É" there and not in the column, and never be found.
    """

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        collation = getattr(self.lhs.output_field, "db_collation", None)
        if collation:
            rhs = f"{rhs} COLLATE {connection.ops.quote_name(collation)}"
        return super().get_rhs_op(connection, rhs)

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser

if TYPE_CHECKING:
    from evalsets.models.tokens import ApiToken


class User(AbstractUser):
    """A person who signs in. What they may do is said per eval set by `Member`."""

    # The token that acts in the user's name just now, where it is not the person; what is recorded names it.
    acting_token: ApiToken | None = None

    def __str__(self) -> str:
        return self.get_full_name() or self.username
